// A picture of what a figure shows, drawn by the browser itself: its stage, with the styles of the page, inside an SVG.

const [SCALE, MARGIN] = [2, 16]; // pixels of the picture for one of the page; pixels of the page around the stage

const loaded = (address) => performance.getEntriesByType("resource").some(({ name }) => name === address);

async function dataOf(address) {
  const reader = new FileReader();
  reader.readAsDataURL(await (await fetch(address)).blob());
  await new Promise((resolve) => reader.addEventListener("load", resolve));
  return reader.result;
}

/** All rules of the page, with the fonts that it has: a picture may fetch nothing. */
async function styles() {
  const parts = [];
  for (const sheet of document.styleSheets) {
    for (const rule of sheet.cssRules) {
      const font = rule instanceof CSSFontFaceRule && /url\("(.*?)"\)/.exec(rule.cssText);
      const address = font && new URL(font[1], sheet.href ?? location.href).href;
      if (!font) parts.push(rule.cssText);
      else if (loaded(address)) parts.push(rule.cssText.replace(font[0], `url("${await dataOf(address)}")`));
    }
  }
  return parts.join("\n").replaceAll(":root", "html");
}

const computed = (node, names) => names.map((name) => `${name}: ${getComputedStyle(node).getPropertyValue(name)}`).join("; ");

/** A copy of the stage that needs no script: canvases become images, and fields say what stands in them. */
function still(stage) {
  const copy = stage.cloneNode(true);
  const [from, to] = [stage, copy].map((node) => [...node.querySelectorAll("canvas, input, textarea")]);
  from.forEach((node, i) => {
    if (node instanceof HTMLCanvasElement) {
      const image = document.createElement("img");
      image.src = node.toDataURL();
      image.style.cssText = computed(node, ["display", "position", "inset", "width", "height", "image-rendering", "background-color"]);
      to[i].replaceWith(image);
    } else if (node.type === "checkbox" || node.type === "radio") to[i].toggleAttribute("checked", node.checked);
    else if (node.tagName === "TEXTAREA") to[i].textContent = node.value;
    else to[i].setAttribute("value", node.value);
  });
  return copy;
}

/** The stage of a figure as a PNG. */
export async function pictureOf(stage) {
  const { width, height } = stage.getBoundingClientRect();
  const [root, body, figure, style] = ["html", "body", "div", "style"].map((tag) => document.createElement(tag));
  for (const { name, value } of document.documentElement.attributes) root.setAttribute(name, value);
  style.textContent = await styles();
  figure.className = "lf";
  figure.style.cssText = `${computed(stage, ["font", "color"])}; box-sizing: border-box; width: ${width + 2 * MARGIN}px; padding: ${MARGIN}px; margin: 0; border: 0`;
  body.style.margin = 0;
  figure.append(still(stage));
  body.append(style, figure);
  root.append(body);
  // As wide as the window, so that the page's rules for its width hold.
  const size = { width: Math.ceil(width + 2 * MARGIN), height: Math.ceil(height + 2 * MARGIN) };
  const drawing = `<svg xmlns="http://www.w3.org/2000/svg" width="${Math.max(innerWidth, size.width)}" height="${size.height}">` +
    `<foreignObject width="100%" height="100%">${new XMLSerializer().serializeToString(root)}</foreignObject></svg>`;
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(drawing)}`;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: SCALE * size.width, height: SCALE * size.height });
  const context = canvas.getContext("2d");
  context.fillStyle = getComputedStyle(stage.closest(".lf")).getPropertyValue("--lf-paper") || "white";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.scale(SCALE, SCALE);
  context.drawImage(image, 0, 0);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** Put a picture on the clipboard, or, where that takes none, among the reader's files. Says which. */
export async function copyPicture(stage, name) {
  const picture = await pictureOf(stage);
  try {
    await navigator.clipboard.write([new ClipboardItem({ "image/png": picture })]);
    return "Copied";
  } catch {
    const address = URL.createObjectURL(picture);
    Object.assign(document.createElement("a"), { href: address, download: `${name}.png` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
    return "Saved";
  }
}
