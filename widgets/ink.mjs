// Ink on paper (chapter on vision): what a pen leaves on a bitmap, and how scikit-learn's digits were made of such bitmaps.
// Each of them was stretched to 20 of 32 columns and all 32 rows, its strokes were made thicker or thinner until about
// as much was inked as in the others, and in each block of 4 x 4 the inked pixels were counted.

export const BLOCK = 4; // pixels of the bitmap, down and right, in one of the image
const [WIDE, SHARE] = [20, 0.305]; // columns of a stretched digit; the mean share of ink, the standard deviation is 0.03
const [THINNEST, THICKEST] = [1, 6]; // radius of a pen that fits
const SLENDER = 1.5; // a stretch to the side is at most so many times that in height, or a 1 would become a square
const FLAT = 3; // and in height at most so many times that to the side
const STEP = 0.5; // between two points of a stroke

/** A place on the paper: the nearest half pixel, so that a stroke can be named. */
export const onPaper = (x, size) => Math.max(0, Math.min(2 * size - 1, Math.round(2 * x))) / 2;

const SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"; // as many as half pixels
const LONGEST = 1500; // signs of all strokes
/** Strokes in an address: two signs for each place. */
export const strokesKind = {
  read(words) {
    if (words.length > LONGEST || !/^(([\w-]{2})+(\.|$))*$/.test(words)) return undefined;
    return words.split(".").filter(Boolean).map((stroke) => stroke.match(/../g).map((two) => [...two].map((sign) => SIGNS.indexOf(sign) / 2)));
  },
  write(strokes) {
    const words = strokes.map((stroke) => stroke.flat().map((x) => SIGNS[2 * x]).join("")).join(".");
    return words.length <= LONGEST ? words : undefined;
  },
};

/** The points of strokes. */
export const pointsOf = (strokes) => strokes.flatMap((stroke) => stroke.flatMap((to, i) => between(stroke[i - 1] ?? to, to)));

/** Points on the way from one point to another, the last one included. */
export function between([x, y], [toX, toY]) {
  const steps = Math.max(1, Math.ceil(Math.hypot(toX - x, toY - y) / STEP));
  return Array.from({ length: steps }, (_, i) => [x + ((toX - x) * (i + 1)) / steps, y + ((toY - y) * (i + 1)) / steps]);
}

/** Write `value` on each pixel of a bitmap whose middle is within `radius` of one of the points. */
export function stamp({ height, width, bits }, points, radius, value = 1) {
  for (const [x, y] of points) {
    for (let i = Math.max(0, Math.floor(y - radius)); i < Math.min(height, y + radius); i++) {
      for (let j = Math.max(0, Math.floor(x - radius)); j < Math.min(width, x + radius); j++) {
        if ((i + 0.5 - y) ** 2 + (j + 0.5 - x) ** 2 <= radius ** 2) bits[i * width + j] = value;
      }
    }
  }
}

export const blank = (height, width, bits = new Uint8Array(height * width)) => ({ height, width, bits });

/** How many pixels of each block are inked, as rows. */
export function counted({ height, width, bits }) {
  const rows = Array.from({ length: height / BLOCK }, () => new Array(width / BLOCK).fill(0));
  bits.forEach((bit, n) => { rows[Math.floor(n / width / BLOCK)][Math.floor((n % width) / BLOCK)] += bit; });
  return rows;
}

/** A bitmap that is counted to this image; inked in each block are the pixels that lie towards its dark neighbours. */
export function bitmapOf(image) {
  const map = blank(image.length * BLOCK, image[0].length * BLOCK);
  const at = (i, j) => image[i]?.[j] ?? 0;
  const darkness = (i, j) => { // between the middles of four pixels of the image
    const [y, x] = [(i + 0.5) / BLOCK - 0.5, (j + 0.5) / BLOCK - 0.5];
    const [top, left] = [Math.floor(y), Math.floor(x)];
    const across = (row) => at(row, left) * (left + 1 - x) + at(row, left + 1) * (x - left);
    return across(top) * (top + 1 - y) + across(top + 1) * (y - top);
  };
  image.forEach((row, i) => row.forEach((count, j) => {
    const places = Array.from({ length: BLOCK ** 2 }, (_, n) => [BLOCK * i + Math.floor(n / BLOCK), BLOCK * j + (n % BLOCK)]);
    const ranked = places.map((place) => [darkness(...place), place]).sort(([a], [b]) => b - a);
    for (const [, [y, x]] of ranked.slice(0, count)) map.bits[y * map.width + x] = 1;
  }));
  return map;
}

/** Points moved and stretched so that a pen of this radius fills the height, and the middle 20 columns or fewer. */
function stretched(points, size, radius) {
  const span = (k) => { const all = points.map((point) => point[k]); return [Math.min(...all), Math.max(...all)]; };
  const [[left, right], [top, bottom]] = [span(0), span(1)];
  const ratio = (room, length) => Math.min(size, room / Math.max(length, 1e-9));
  let [across, down] = [ratio(WIDE - 2 * radius, right - left), ratio(size - 2 * radius, bottom - top)];
  [across, down] = [Math.min(across, SLENDER * down), Math.min(down, FLAT * across)];
  return points.map(([x, y]) => [size / 2 + (x - (left + right) / 2) * across, size / 2 + (y - (top + bottom) / 2) * down]);
}

/** The bitmap, `size` rows and columns, that the makers of the digits would have had of these strokes. */
export function fitted(points, size = 32) {
  let [thin, thick] = [THINNEST, THICKEST];
  const drawn = (radius) => {
    const map = blank(size, size);
    if (points.length) stamp(map, stretched(points, size, radius), radius);
    return map;
  };
  for (let i = 0; i < 6; i++) { // the thinnest pen that leaves enough ink
    const radius = (thin + thick) / 2;
    const isEnough = drawn(radius).bits.reduce((sum, bit) => sum + bit, 0) >= SHARE * size ** 2;
    [thin, thick] = isEnough ? [thin, radius] : [radius, thick];
  }
  return drawn(thick);
}
