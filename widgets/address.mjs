// The address of a figure: the settings that differ from its start, behind its name, as `#fig-relations-kernel?query=4`.
// A kind says how a setting stands there: `write(value)` makes words of it, and `read(words)` gives the value, or nothing
// where it is none. `of(settings)` and `into(value, settings)` say where it belongs, unless that is the setting of the key.

const LONGEST = 2000; // letters of a text

/** A number between two ends, rounded to so many digits. */
export const number = (low, high, digits = 2) => ({
  read(words) {
    const value = /^-?\d+(\.\d+)?$/.test(words) ? Number(Number(words).toFixed(digits)) : NaN;
    return value >= low && value <= high ? value : undefined;
  },
  write: (value) => String(Number(value.toFixed(digits))),
});
export const whole = (low, high) => number(low, high, 0);
/** What is counted from 0 in the figure, and from 1 by readers. */
export const place = (count, first = 1) => ({ read: (words) => { const n = whole(first, count).read(words); return n && n - 1; }, write: (n) => String(n + 1) });
export const flag = { read: (words) => (words === "yes" ? true : words === "no" ? false : undefined), write: (on) => (on ? "yes" : "no") };
export const text = (longest = LONGEST) => {
  const fitting = (words) => (words.length <= longest ? words : undefined);
  return { read: fitting, write: fitting };
};
export const oneOf = (values) => ({ read: (words) => values.find((value) => String(value) === words), write: String });
/** Nothing chosen, or one of a kind. */
export const maybe = (kind) => ({ read: (words) => (words === "" ? null : kind.read(words)), write: (value) => (value === null ? "" : kind.write(value)) });
/** At most so many values of a kind; and one of each of several kinds, as the two numbers of a point. */
export const list = (kind, most) => ({
  read(words) {
    const values = words === "" ? [] : words.split(",").map(kind.read);
    return values.length <= most && !values.includes(undefined) ? values : undefined;
  },
  write: (values) => (values.length <= most ? values.map(kind.write).join(",") : undefined),
});
export const tuple = (...kinds) => ({
  read(words) {
    const parts = words.split(",");
    const values = kinds.map((kind, i) => kind.read(parts[i] ?? ""));
    return parts.length === kinds.length && !values.includes(undefined) ? values : undefined;
  },
  write: (values) => values.map((value, i) => kinds[i].write(value)).join(","),
});

/** A kind for another setting than that of the key; for one of several values, by its place; and, of several that are on or off, those that are off. */
export const setting = (name, kind) => ({ ...kind, of: (settings) => settings[name], into: (value) => ({ [name]: value }) });
export const among = (name, n, kind) => ({ ...kind, of: (settings) => settings[name][n],
  into: (value, settings) => ({ [name]: settings[name].map((each, i) => (i === n ? value : each)) }) });
export const off = (name, count) => ({ ...list(place(count), count), of: (settings) => [...settings[name].keys()].filter((i) => !settings[name][i]),
  into: (places, settings) => ({ [name]: settings[name].map((_, i) => !places.includes(i)) }) });

const valueOf = (key, { of }, settings) => (of ? of(settings) : settings[key]);

/** What stands behind the # for these settings, and the keys of those that are too long for it. */
export function write(name, kinds, start, settings) {
  const differ = Object.entries(kinds).map(([key, kind]) => [key, ...[start, settings].map((each) => kind.write(valueOf(key, kind, each)))])
    .filter(([, before, now]) => now !== before);
  const spelt = (words) => encodeURIComponent(words).replace(/%20/g, "+").replace(/%2C/g, ",");
  const parts = differ.filter(([, , words]) => words !== undefined).map(([key, , words]) => `${key}=${spelt(words)}`);
  return { fragment: parts.length ? `${name}?${parts.join("&")}` : name, missing: differ.filter(([, , words]) => words === undefined).map(([key]) => key) };
}

/** The settings that a fragment names, from `start` on; null if it is not of this figure, or says nothing that it understands. */
export function read(fragment, name, kinds, start) {
  if (!isOf(fragment, name)) return null;
  const said = new URLSearchParams(fragment.slice(name.length + 2));
  let settings = null;
  for (const [key, kind] of Object.entries(kinds)) {
    const value = said.has(key) ? kind.read(said.get(key)) : undefined;
    if (value !== undefined) settings = { ...start, ...settings, ...(kind.into ? kind.into(value, settings ?? start) : { [key]: value }) };
  }
  return settings;
}

/** Whether a fragment sets the figure of that name. */
export const isOf = (fragment, name) => fragment.startsWith(`#${name}?`);

/** The name of the figure that an element is in; a notebook has none. */
export const nameOf = (element) => element.closest("figure[id]")?.id;

/** Call `follow(fragment)` with that of the page, and whenever it changes or its link is pressed once more. */
export function whenAddressed(follow) {
  addEventListener("hashchange", () => follow(location.hash));
  document.addEventListener("click", ({ target }) => {
    const link = target.closest?.("a[href*='#']");
    if (link && link.href === location.href) follow(location.hash);
  });
  return follow(location.hash);
}
