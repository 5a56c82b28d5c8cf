// What the book remembers of a reader, under one key in this browser; whoever shows it hears of each change.

const KEY = "plainformer";
export const CACHE = "plainformer"; // what `offline.mjs` keeps
export const root = new URL(document.documentElement.dataset.content_root, location.href).href;

export function memory() {
  let kept = null;
  try {
    kept = JSON.parse(localStorage.getItem(KEY)?.replace(/chapters\/(\d\d|[ABC])_/g, "chapters/") ?? null); // as they were called
  } catch { /* what stands there is not ours, or nothing may be kept */ }
  return { isEmpty: !kept, done: {}, read: {}, answers: {}, ...kept };
}

export function remember(change) {
  const { isEmpty, ...all } = memory();
  change(all);
  try {
    localStorage.setItem(KEY, JSON.stringify(all));
  } catch { /* nothing may be kept: the page works all the same */ }
  dispatchEvent(new Event("remembered"));
}

export async function forget() {
  localStorage.removeItem(KEY);
  dispatchEvent(new Event("remembered"));
  await globalThis.caches?.delete(CACHE);
  for (const each of await navigator.serviceWorker?.getRegistrations() ?? []) if (each.scope === root) await each.unregister();
}
