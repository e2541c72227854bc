// Elements, numbers and colours. Tokens only become text nodes, attribute values and text on a canvas.
const data = JSON.parse(document.getElementById("data").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const printing = window.matchMedia("print");

function element(name, attributes, ...children) {
  const node = name.startsWith("svg:")
    ? document.createElementNS("http://www.w3.org/2000/svg", name.slice(4))
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function sign(value, digits) {
  return digits ? (value < 0 ? "\u2212" : "+") + digits.replace("-", "\u2212") : "0";
}

// As Python writes it: an exponent has two digits at least.
function scientific(size, decimals) {
  return size.toExponential(decimals).replace(/(?<=[+-])(\d)$/, "0$1");
}

function signed(value) {
  const size = Math.abs(value);
  if (size >= 1e5 && size < 1e10) return sign(value, size.toFixed(0));
  return sign(value, size === 0 ? "" : size >= 0.0005 && size < 1e5 ? size.toFixed(3) : scientific(size, 1));
}

// For a cell: the smaller the limit of the colour scale, the more decimals.
function brief(value, limit) {
  const size = Math.abs(value);
  const decimals = limit > 0 ? Math.max(2, 1 - Math.floor(Math.log10(limit))) : 2;
  if (size < 0.5 * 10 ** -decimals) return sign(value, "");
  return sign(value, decimals > 4 || size >= 999999.5 ? scientific(size, 0) : size.toFixed(size < 100 ? decimals : 0));
}

function percent(share) {
  return share > 0.9995 && share < 1 ? "> 99.9%" : share > 0 && share < 0.0005 ? "< 0.1%" : `${(100 * share).toFixed(1)}%`;
}

function step(value, limit) {
  return limit === 0 ? data.steps : data.steps + Math.round(data.steps * Math.max(-1, Math.min(1, value / limit)));
}

function shades() {
  return dark.matches && !printing.matches ? data.dark : data.light;
}

// The width that a drawing has; on paper, where nothing scrolls, that of a page of letter or A4.
function widthOf(node) {
  return printing.matches ? Math.min(660, node.clientWidth || 660) : node.clientWidth;
}

function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function short(text, length) {
  const letters = Array.from(text);
  return letters.length > length ? letters.slice(0, length - 1).join("") + "\u2026" : text;
}

function legend(limit, name) {
  const ends = limit ? [sign(-1, String(limit)), "0", sign(1, String(limit))] : ["0", "0", "0"];
  return element("figure", { class: "legend" },
    element("figcaption", {}, name),
    element("div", { class: "ramp", role: "img", "aria-label": `Colour scale from ${ends[0]} to ${ends[2]}; zero in the middle` }),
    element("div", { class: "ticks", "aria-hidden": "true" }, ...ends.map((end) => element("span", {}, end))));
}

// A group of buttons of which one is pressed.
function choice(name, entries, pressed, act) {
  const buttons = entries.map(([value, text, title]) => {
    const button = element("button", { type: "button", "data-value": value, "aria-pressed": String(value === pressed), title }, text);
    button.addEventListener("click", () => act(value));
    return button;
  });
  return element("div", { class: "choice", role: "group", "aria-label": name }, ...buttons);
}

function press(group, value) {
  for (const button of group.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.value === value));
}

// A canvas as large as the visible part of a scrolled area; paint(context, width, height) draws it.
function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
