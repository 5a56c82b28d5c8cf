// The service worker of a reader who has run Python on this site: what was fetched is there without a network as well.
// It is copied to the root of the site, below which lies all that it may answer for.

const CACHE = "plainformer"; // as in `memory.mjs`

addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method === "GET" && url.startsWith(registration.scope)) event.respondWith(answer(event));
});

/** The newest that there is; but what lies below `python/` never changes, since its folder is named after its content. */
async function answer(event) {
  const cache = await caches.open(CACHE);
  const kept = await cache.match(event.request, { ignoreSearch: true });
  if (kept && event.request.url.includes("/_static/python/")) return kept;
  try {
    const reply = await fetch(event.request);
    if (reply.status === 200) event.waitUntil(cache.put(event.request, reply.clone()));
    return reply;
  } catch {
    return kept ?? Response.error();
  }
}
