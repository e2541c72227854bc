"use strict";
// Draws the triangles, switches between expansions, and shows the values of a cell. Tokens only become text nodes
// and attribute values. The address stores the view: #expansion=zero&show=contribution&ngram=2-5&direction=forward
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const panels = [...document.querySelectorAll(".panel")];
  let current = 0;
  let quantity = "score";

  function element(name, attributes, ...children) {
    const node = name.startsWith("svg:") ? document.createElementNS(SVG, name.slice(4)) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  }

  function signed(value) {
    const size = Math.abs(value);
    return sign(value, size === 0 ? "" : size >= 0.0005 && size < 1e5 ? size.toFixed(3) : size.toExponential(1));
  }

  // For a cell: the smaller the limit of the colour scale, the more decimals.
  function brief(value) {
    const size = Math.abs(value);
    const decimals = data.limits[quantity] > 0 ? Math.max(2, 1 - Math.floor(Math.log10(data.limits[quantity]))) : 2;
    if (size < 0.5 * 10 ** -decimals) return sign(value, "");
    return sign(value, decimals > 4 || size >= 1e4 ? size.toExponential(0) : size.toFixed(size < 100 ? decimals : 0));
  }

  function sign(value, digits) {
    return digits ? (value < 0 ? "\u2212" : "+") + digits.replace("-", "\u2212") : "0";
  }

  function step(value) {
    const limit = data.limits[quantity];
    if (limit === 0) return data.steps;
    return data.steps + Math.round(data.steps * Math.max(-1, Math.min(1, value / limit)));
  }

  function short(text, length) {
    const letters = Array.from(text);
    return letters.length > length ? letters.slice(0, length - 1).join("") + "\u2026" : text;
  }

  // The n-grams of a phrase that end at its end: its last token forward, its first token backward.
  function inside(direction, start, stop) {
    const orders = Array.from({ length: stop - start }, (_, k) => k + 1);
    return orders.map((order) => (direction === "forward" ? [stop - order, stop] : [start, start + order]));
  }

  function geometry(tokens, rows, directions) {
    const count = tokens.length;
    const longest = Math.max(...tokens.map((t) => Array.from(t).length));
    const least = Math.max(46, Math.min(longest, 12) * 7.4 + 14);
    // Two directions are placed side by side if their words fit.
    const share = directions > 1 && least * count <= 486 ? 486 : 1020;
    const room = Math.floor(share / count);
    const upright = longest <= 12 && least <= room;
    const width = upright ? Math.max(least, Math.min(88, room)) : Math.max(15, Math.min(64, room));
    const numbers = width >= 44;
    const height = numbers ? Math.min(36, Math.round(width * 0.44) + 4) : Math.max(9, Math.round(width * 0.62));
    const left = upright ? 2 : Math.max(2, Math.min(longest, 16) * 6 - width / 2);
    const foot = upright ? 30 : Math.min(longest, 16) * 5.6 + 24;
    return { upright, width, height, numbers, left, foot, total: left + count * width + 2, ground: rows * height };
  }

  function cell(start, order, g, rows) {
    const x = g.left + (start + (order - 1) / 2) * g.width;
    const y = (rows - order) * g.height;
    const node = element("svg:g", {
      class: "cell", role: "img", tabindex: start === 0 && order === 1 ? "0" : "-1",
      "data-start": start, "data-stop": start + order,
    });
    node.append(element("svg:rect", { x: x + 0.5, y: y + 0.5, width: g.width - 1, height: g.height - 1, rx: g.numbers ? 2 : 1 }));
    if (g.numbers) node.append(element("svg:text", { x: x + g.width / 2, y: y + g.height / 2 + 4 }));
    return node;
  }

  function label(token, index, g) {
    const x = g.left + (index + 0.5) * g.width;
    const place = g.upright
      ? { x, y: g.ground + 20, "text-anchor": "middle" }
      : { transform: `translate(${x + 4} ${g.ground + 14}) rotate(-45)`, "text-anchor": "end" };
    return element("svg:text", { class: "label", "data-index": index, ...place }, short(token, 16));
  }

  function triangle(panel, direction) {
    const tokens = panel.tokens;
    const rows = direction.score.length;
    const g = geometry(tokens, rows, panel.directions.length);
    const svg = element("svg:svg", {
      viewBox: `0 0 ${g.total} ${g.ground + g.foot}`, width: g.total, height: g.ground + g.foot,
      role: "group", "aria-label": `N-grams, ${direction.name}; arrow keys move`, "data-direction": direction.name,
    });
    for (let order = 1; order <= rows; order++) {
      for (let start = 0; start + order <= tokens.length; start++) svg.append(cell(start, order, g, rows));
    }
    tokens.forEach((token, index) => svg.append(label(token, index, g)));
    const on = (type, act) => svg.addEventListener(type, (event) => {
      const node = event.target.closest(".cell");
      if (node) act(node, event);
    });
    on("pointerover", (node) => show(svg, panel, direction, node));
    on("focusin", (node) => show(svg, panel, direction, node));
    on("keydown", (node, event) => move(svg, node, event));
    svg.addEventListener("pointerleave", () => hide());
    svg.addEventListener("focusout", () => hide());
    const figure = element("figure", {}, element("div", { class: "scroll" }, svg));
    if (panel.directions.length > 1) {
      const way = direction.name === "forward" ? "reads left to right, ends at the last token" : "reads right to left, ends at the first token";
      figure.append(element("figcaption", {}, `${direction.name}: ${way}`));
    }
    return figure;
  }

  function at(svg, start, stop) {
    return svg.querySelector(`.cell[data-start="${start}"][data-stop="${stop}"]`);
  }

  function move(svg, node, event) {
    const start = Number(node.dataset.start);
    const stop = Number(node.dataset.stop);
    const moves = { ArrowLeft: [-1, -1], ArrowRight: [1, 1], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (event.key === "Escape") return hide();
    if (!(event.key in moves)) return undefined;
    event.preventDefault();
    const [a, b] = moves[event.key];
    // At the right edge no cell lies above the same first token; take the one to the left.
    const next = at(svg, start + a, stop + b) || (event.key === "ArrowUp" && at(svg, start - 1, stop));
    if (!next) return undefined;
    node.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    return next.focus();
  }

  function paint() {
    const panel = data.panels[current];
    for (const svg of panels[current].querySelectorAll("svg[data-direction]")) {
      const direction = panel.directions.find((d) => d.name === svg.dataset.direction);
      for (const node of svg.querySelectorAll(".cell")) {
        const start = Number(node.dataset.start);
        const stop = Number(node.dataset.stop);
        const value = direction[quantity][stop - start - 1][start];
        node.setAttribute("class", `cell s${step(value)}`);
        node.setAttribute("aria-label", `${short(panel.tokens.slice(start, stop).join(" "), 160)}: ${quantity} ${signed(value)}`);
        const text = node.querySelector("text");
        if (text) text.textContent = brief(value);
      }
    }
    for (const node of document.querySelectorAll("[data-quantity]")) node.setAttribute("aria-pressed", String(node.dataset.quantity === quantity));
    for (const node of document.querySelectorAll("[data-legend]")) node.hidden = node.dataset.legend !== quantity;
  }

  function hide() {
    tip.hidden = true;
    for (const node of document.querySelectorAll(".here, .part, .lit")) node.classList.remove("here", "part", "lit");
  }

  function show(svg, panel, direction, node) {
    hide();
    const start = Number(node.dataset.start);
    const stop = Number(node.dataset.stop);
    const parts = inside(direction.name, start, stop);
    const phrase = parts.reduce((sum, [a, b]) => sum + direction.score[b - a - 1][a], 0);
    const facts = [
      ["tokens", `[${start}, ${stop})`],
      ["score", signed(direction.score[stop - start - 1][start])],
      ["contribution", signed(direction.contribution[stop - start - 1][start])],
      ["phrase score", signed(phrase)],
    ];
    const list = element("dl", {});
    for (const [name, value] of facts) list.append(element("dt", {}, name), element("dd", {}, value));
    tip.replaceChildren(element("b", {}, element("bdi", {}, short(panel.tokens.slice(start, stop).join(" "), 160))), list);
    tip.hidden = false;
    for (const [a, b] of parts) at(svg, a, b).classList.add("part");
    node.classList.add("here");
    for (const token of panels[current].querySelectorAll("[data-index]")) {
      const index = Number(token.dataset.index);
      if (index >= start && index < stop) token.classList.add("lit");
    }
    const box = node.getBoundingClientRect();
    const width = document.documentElement.clientWidth;
    const x = Math.max(8, Math.min(width - tip.offsetWidth - 8, box.left + box.width / 2 - tip.offsetWidth / 2));
    const above = box.top - tip.offsetHeight - 10;
    tip.style.left = `${x + window.scrollX}px`;
    tip.style.top = `${(above > 8 ? above : box.bottom + 10) + window.scrollY}px`;
  }

  function select(index) {
    current = index;
    hide();
    tabs.forEach((tab, k) => {
      tab.setAttribute("aria-selected", String(k === index));
      tab.setAttribute("tabindex", k === index ? "0" : "-1");
    });
    panels.forEach((panel, k) => { panel.hidden = k !== index; });
    for (const body of document.querySelectorAll("[data-panel]")) body.classList.toggle("current", Number(body.dataset.panel) === index);
    const place = panels[index].querySelector(".triangles");
    if (!place.querySelector("svg")) place.replaceChildren(...data.panels[index].directions.map((d) => triangle(data.panels[index], d)));
    paint();
  }

  function remember() {
    const wanted = new URLSearchParams({ expansion: data.panels[current].label, show: quantity });
    try { history.replaceState(null, "", `#${wanted}`); } catch { /* a sandboxed frame has no address */ }
  }

  function open() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    if (["score", "contribution"].includes(wanted.get("show"))) quantity = wanted.get("show");
    const found = data.panels.findIndex((panel) => panel.label === wanted.get("expansion"));
    select(Math.max(0, found));
    const span = /^(\d+)-(\d+)$/.exec(wanted.get("ngram") || "");
    if (!span) return;
    for (const svg of panels[current].querySelectorAll("svg[data-direction]")) {
      const node = at(svg, span[1], span[2]);
      if (!node || (wanted.get("direction") || svg.dataset.direction) !== svg.dataset.direction) continue;
      const panel = data.panels[current];
      show(svg, panel, panel.directions.find((d) => d.name === svg.dataset.direction), node);
      return;
    }
  }

  document.querySelector(".tabs").hidden = tabs.length < 2;
  tabs.forEach((tab, k) => {
    tab.addEventListener("click", () => { select(k); remember(); });
    tab.addEventListener("keydown", (event) => {
      const turn = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!turn) return;
      const next = (k + turn + tabs.length) % tabs.length;
      tabs[next].focus();
      select(next);
      remember();
    });
  });
  for (const button of document.querySelectorAll("[data-quantity]")) {
    button.addEventListener("click", () => { quantity = button.dataset.quantity; paint(); remember(); });
  }
  window.addEventListener("hashchange", open);
  open();
})();
