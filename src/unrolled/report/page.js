// The page: choice of example, expansion, output and quantity. The address stores them:
// #item=2&expansion=zero&explain=1&show=contribution&ngram=2-5&direction=forward
const QUANTITIES = [
  ["phrase", "phrase scores", "The sum of an n-gram and of all n-grams inside it that end at its end"],
  ["score", "n-gram terms", "The n-gram’s own term"],
  ["contribution", "contributions", "The n-gram’s part of this output"],
];
const app = document.getElementById("app");
const state = { item: 0, panel: 0, option: 0, quantity: "phrase", way: "both" };
let view = null;

const current = () => data.items[state.item];
const currentPanel = () => current().panels[state.panel];
const currentOption = () => currentPanel().options[state.option];

// The words of a span; of a long one the first and the last.
function phraseOf(span, length) {
  const words = current().tokens.slice(span.start, span.stop);
  const shown = words.length > 10 ? [...words.slice(0, 4), "\u2026", ...words.slice(-5)] : words;
  return short(shown.join(" "), length);
}

// What is explained: "A rather than B" is English, also if A and B are written from right to left.
const explainedName = (option) => element("bdi", { dir: "ltr" }, option.name);
const wordy = (span) => element("bdi", {}, phraseOf(span, 160));

function outputs(item) {
  const given = item.outputs;
  if (!given) return null;
  const { names, values, probabilities, probability_name: probabilityName, predicted } = given;
  const size = probabilities.length ? probabilities : values;
  const order = names.map((_, k) => k).sort((a, b) => size[b] - size[a]);
  const shown = order.filter((k, place) => place < 8 || k === given.true);
  const rows = shown.map((k) => element("tr", { class: k === predicted ? "predicted" : null },
    element("th", { scope: "row" }, element("bdi", {}, names[k]), k === given.true ? element("span", { class: "tag" }, "right answer") : null),
    probabilities.length ? element("td", { class: "share" },
      element("svg:svg", { viewBox: "0 0 1000 12", preserveAspectRatio: "none", "aria-hidden": "true", focusable: "false" },
        element("svg:rect", { width: Math.max(2, 1000 * probabilities[k]), height: 12 }))) : null,
    probabilities.length ? element("td", { class: "number" }, percent(probabilities[k])) : null,
    element("td", { class: "number quiet" }, values[k] === null ? "not finite" : signed(values[k]))));
  const head = element("tr", {}, ...["class", ...(probabilityName ? [probabilityName, ""] : []), "output"].map((name, k, all) =>
    name || k === 0 ? element("th", { scope: "col", class: k === all.length - 1 ? "number" : null, colspan: name === probabilityName ? "2" : null }, name) : null));
  return element("div", { class: "outputs" },
    element("p", { class: "verdict" }, names.length > 1 ? "Highest output: " : "Output: ", element("b", {}, element("bdi", {}, names[predicted])),
      probabilityName ? `, ${probabilityName} ${percent(probabilities[predicted])}` : ` ${signed(values[predicted])}`,
      given.true !== null && given.true !== predicted ? element("span", { class: "tag wrong" }, "wrong") : null),
    names.length > 1 ? element("table", { class: "classes" }, element("thead", {}, head), element("tbody", {}, ...rows)) : null,
    shown.length < names.length ? element("p", { class: "quiet" }, `and ${names.length - shown.length} lower`) : null);
}

function build() {
  const item = current();
  const one = item.options.length < 2;
  view = { explained: element("p", { class: "lede", "aria-live": "polite" }) };
  view.select = element("select", { id: "explain" }, ...item.options.map((option, k) => element("option", { value: k }, option.name)));
  view.select.addEventListener("change", () => { state.option = Number(view.select.value); update(); remember(); });
  const picker = one ? null : element("p", { class: "picker" }, element("label", { for: "explain" }, "Explain "), view.select);
  view.tabs = item.panels.map((panel, k) => {
    const tab = element("button", { type: "button", role: "tab", id: `tab-${k}`, "aria-controls": "panel" }, panel.label);
    tab.addEventListener("click", () => { state.panel = k; update(); remember(); });
    tab.addEventListener("keydown", (event) => {
      const turn = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!turn) return;
      state.panel = (k + turn + view.tabs.length) % view.tabs.length;
      update();
      view.tabs[state.panel].focus();
      remember();
    });
    return tab;
  });
  const tabs = view.tabs.length > 1 ? element("div", { class: "tabs", role: "tablist", "aria-label": "Expansions" }, ...view.tabs) : null;
  for (const name of ["kind", "sentence", "triangle", "ledger", "top", "comparison", "detail", "moment"]) view[name] = element("div", { class: name });
  for (const told of [view.detail, view.moment]) told.setAttribute("role", "status");
  const series = item.series ? element("section", { "aria-label": "Series" }, view.seriesHead = element("div", { class: "head" }), view.moment, view.series = element("div", { class: item.tokens.length > 60 ? "wide" : null }), view.features = element("div", {})) : null;
  const sentence = item.series && !item.series.named ? null : element("section", { "aria-label": item.series ? "Steps" : "Sentence" }, view.sentenceHead = element("div", { class: "head" }), view.sentence);
  view.show = choice("What the cells show", QUANTITIES, state.quantity, (value) => { state.quantity = value; update(); remember(); });
  const both = item.panels.some((panel) => panel.directions.length > 1);
  const ways = [["both", "both directions"], ["forward", "forward"], ["backward", "backward"]];
  view.ways = both ? choice("Direction", ways, state.way, (value) => { state.way = value; update(); remember(); }) : null;
  view.legend = element("div", { class: "end" });
  const zoom = element("div", { class: "choice", role: "group", "aria-label": "Zoom" },
    ...[["\u2212", 1 / 1.4, "Smaller cells"], ["+", 1.4, "Larger cells"], ["fit", 0, "Fit the whole triangle"]].map(([text, factor, name]) => {
      const button = element("button", { type: "button", "aria-label": name }, text);
      button.addEventListener("click", () => view.drawn.zoom(factor));
      return button;
    }));
  app.replaceChildren(...[
    element("div", { class: "top-line" }, outputs(item), element("div", {}, picker, view.explained)), tabs,
    element("div", tabs ? { id: "panel", role: "tabpanel" } : { id: "panel" }, view.kind, series, sentence,
      element("section", { "aria-label": "N-grams" },
        element("div", { class: "head" }, element("h2", {}, "N-grams"), view.show, view.ways, zoom, view.legend),
        view.detail, element("div", { class: item.tokens.length > 24 ? "wide" : null }, view.triangle), view.left = element("p", { class: "quiet" })),
      element("div", { class: "columns" }, element("section", { "aria-label": "Ledger" }, element("div", { class: "head" }, element("h2", {}, "Ledger")), view.ledger),
        element("section", { "aria-label": "Largest contributions" }, element("div", { class: "head" }, element("h2", {}, "Largest contributions")), view.top))),
    item.panels.length > 1 ? element("section", { "aria-label": "Expansions" }, view.compareHead = element("div", { class: "head" }), view.comparison) : null,
  ].filter(Boolean));
  view.drawn = new Triangle(view.triangle, tell);
  if (item.series) view.line = new Series(view.series, tellMoment);
  update();
}

function update() {
  const item = current();
  const panel = currentPanel();
  const option = item.options[state.option];
  const told = currentOption();
  view.select.value = String(state.option);
  const total = told.ledger[told.ledger.length - 1].value;
  const summands = told.ledger.slice(0, -1).flatMap((bar, k, all) => [k ? k === all.length - 1 ? " and " : ", " : "", `${bar.name} `, element("span", { class: "number" }, signed(bar.value))]);
  view.explained.replaceChildren(element("b", {}, explainedName(option)), " is ", element("b", { class: "number" }, signed(total)), ": the sum of ", ...summands, ".");
  view.tabs.forEach((tab, k) => {
    tab.setAttribute("aria-selected", String(k === state.panel));
    tab.setAttribute("tabindex", k === state.panel ? "0" : "-1");
    if (k === state.panel && view.tabs.length > 1) document.getElementById("panel").setAttribute("aria-labelledby", tab.id);
  });
  view.kind.replaceChildren(element("b", {}, panel.label), element("span", {}, panel.verdict), element("span", {}, panel.local ? "local: an n-gram depends on its own tokens alone" : "not local: an n-gram also depends on what came before it"));
  press(view.show, state.quantity);
  const way = panel.directions.length > 1 ? state.way : panel.directions[0];
  if (view.ways) press(view.ways, way);
  if (item.series) drawSeries(item, told);
  if (!item.series || item.series.named) {
    view.sentenceHead.replaceChildren(element("h2", {}, item.series ? "Steps" : "Sentence"), element("div", { class: "end" }, legend(told.limits.token, item.series ? "a step’s contribution" : "a token’s contribution")));
    view.sentence.replaceChildren(sentence(item.tokens, told.tokens, told.limits.token, item.tokens.length <= 40), ...marks(told).map((note) => element("p", { class: "quiet" }, note)));
  }
  const limit = told.limits[state.quantity];
  const unit = { phrase: "a phrase’s score", score: "an n-gram’s term", contribution: "an n-gram’s contribution" }[state.quantity];
  view.legend.replaceChildren(legend(limit, unit));
  view.drawn.show(item.tokens, item.starts, spanValues(panel, option, state.quantity, way), limit);
  tell(view.drawn.pinned, Boolean(view.drawn.pinned));
  view.left.hidden = panel.longest >= item.tokens.length;
  view.left.textContent = `This sequence has ${item.tokens.length} tokens. The triangle shows n-grams of up to ${panel.longest} tokens; the ledger counts all n-grams.${panel.limit === null ? "" : ` Those of more than ${panel.limit} contribute ${signed(told.longer)}.`}`;
  drawLedger(panel, told);
  drawTop(told);
  if (item.panels.length > 1) drawComparison(item);
}

/** The notes that explain a mark in the sentence; they stand below it. */
function marks(told) {
  return told.notes.filter((note) => note.startsWith("†"));
}

function sentence(tokens, totals, limit, numbers) {
  return element("p", { class: numbers ? "sentence" : "sentence dense" }, ...tokens.map((token, index) => {
    const node = element("span", { class: "token", "data-index": index, title: `${token}: ${signed(totals[index])}` },
      element("bdi", { class: `word s${step(totals[index], limit)}` }, token), numbers ? element("small", {}, signed(totals[index])) : null);
    node.addEventListener("click", () => { const span = { start: index, stop: index + 1 }; view.drawn.reveal(span); view.drawn.pin(span); });
    return node;
  }));
}

function tell(span, pinned) {
  const item = current();
  for (const token of app.querySelectorAll(".sentence [data-index]")) {
    if (!token.closest(".comparison")) token.classList.toggle("lit", Boolean(span) && Number(token.dataset.index) >= span.start && Number(token.dataset.index) < span.stop);
  }
  view.detail.classList.toggle("pinned", Boolean(pinned));
  if (!span) {
    view.detail.replaceChildren(element("p", { class: "quiet" }, "Point at a cell to read it; click to pin it and see its sum. Arrow keys move."));
    return;
  }
  const panel = currentPanel();
  const option = item.options[state.option];
  const way = panel.directions.length > 1 ? state.way : panel.directions[0];
  const facts = QUANTITIES.map(([quantity, name]) => [name.replace(/s$/, ""), numberOf(panel, option, quantity, way, span)]);
  const list = element("dl", {}, ...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, signed(value))]));
  view.detail.replaceChildren(element("b", {}, wordy(span)), element("span", { class: "quiet" }, ` tokens [${span.start}, ${span.stop})${way === "both" ? "" : panel.directions.length > 1 ? `, ${way}` : ""}`), list, pinned ? sums(panel, option, way, span) : "");
  if (pinned) remember();
}

// One span's number, without computing the whole triangle.
function numberOf(panel, option, quantity, way, span) {
  return panel.directions.filter((name) => way === "both" || way === name).reduce((sum, name) =>
    sum + parts(panel, option, name, span, quantity).reduce((total, [, value]) => total + value, 0), 0);
}

// The n-grams that a span's number is the sum of, with their values, the shortest first.
function parts(panel, option, name, span, quantity) {
  const key = quantity === "contribution" ? "contribution" : "score";
  const d = panel.directions.indexOf(name);
  const read = (a, b) => panel.classes[option.plus === null ? 0 : option.plus][key][d][b - a - 1][a]
    - (option.minus === null ? 0 : panel.classes[option.minus][key][d][b - a - 1][a]);
  const orders = quantity === "phrase" ? Array.from({ length: span.stop - span.start }, (_, k) => k + 1) : [span.stop - span.start];
  return orders.map((order) => {
    const [a, b] = name === "forward" ? [span.stop - order, span.stop] : [span.start, span.start + order];
    return [{ start: a, stop: b }, read(a, b)];
  });
}

function sums(panel, option, way, span) {
  const quantity = state.quantity === "contribution" ? "contribution" : "phrase";
  const lines = panel.directions.filter((name) => way === "both" || way === name).map((name) => {
    const all = parts(panel, option, name, span, quantity);
    const kept = new Set([...all].sort((p, q) => Math.abs(q[1]) - Math.abs(p[1])).slice(0, 8));
    const rest = all.filter((part) => !kept.has(part));
    const total = all.reduce((sum, [, value]) => sum + value, 0);
    const terms = all.filter((part) => kept.has(part)).flatMap(([part, value]) => [" ", element("span", { class: "term" }, element("bdi", {}, phraseOf(part, 40)), " ", element("span", { class: "number" }, signed(value)))]);
    if (rest.length) terms.push(" ", element("span", { class: "term" }, `${rest.length} others `, element("span", { class: "number" }, signed(rest.reduce((sum, [, value]) => sum + value, 0)))));
    return element("p", { class: "sum" }, panel.directions.length > 1 ? `${name}: ` : "", element("b", { class: "number" }, signed(total)), " =", ...terms);
  });
  return element("div", {}, ...lines);
}

function drawSeries(item, told) {
  view.seriesHead.replaceChildren(element("h2", {}, "Series"), element("div", { class: "end" }, legend(told.features.limit, "a number’s contribution")));
  view.line.show(item.series.names, item.series.values, told.features.rows, told.features.limit, item.tokens);
  tellMoment(null);
  const totals = told.features.rows.map((row, f) => [item.series.names[f], row.reduce((sum, value) => sum + value, 0)]).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  view.features.replaceChildren(element("details", { class: "plain" }, element("summary", {}, "Contributions by feature"),
    element("table", {}, element("tbody", {}, ...totals.map(([name, value]) => element("tr", {}, element("th", { scope: "row" }, element("bdi", {}, name)), element("td", { class: "number" }, signed(value))))))));
}

function tellMoment(place) {
  const { series } = current();
  if (!place) {
    view.moment.replaceChildren(element("p", { class: "quiet" }, "Above: the numbers that the model read. Below: what each contributed."));
    return;
  }
  const rows = view.line.rows;
  const name = view.line.names[place.row];
  const value = place.row < series.values.length ? series.values[place.row][place.time] : undefined;
  const read = value === undefined ? "" : value === null ? ", missing" : `, read ${value}`;
  view.moment.replaceChildren(element("p", {}, element("b", {}, element("bdi", {}, name)), ` at ${current().tokens[place.time]}${read}, contributes `, element("span", { class: "number" }, signed(rows[place.row][place.time]))));
}

function drawLedger(panel, told) {
  const rows = told.ledger.map((bar, k) => {
    const last = k === told.ledger.length - 1;
    return element("tr", { class: last ? "total" : null }, element("th", { scope: "row" }, bar.name),
      element("td", { class: "bar" }, element("svg:svg", { viewBox: "0 0 1000 20", preserveAspectRatio: "none", "aria-hidden": "true", focusable: "false" },
        element("svg:line", { x1: bar.zero, x2: bar.zero, y1: 0, y2: 20, class: "zero" }),
        element("svg:rect", { x: bar.left, width: bar.width, y: 4, height: 12, class: last ? "sum" : bar.value > 0 ? "up" : "down" }))),
      element("td", { class: "number" }, signed(bar.value)));
  });
  view.ledger.replaceChildren(element("table", { class: "ledger" }, element("tbody", {}, ...rows)),
    element("p", { class: "quiet" }, `The remainder is ${told.share}.`),
    ...told.notes.filter((note) => !marks(told).includes(note)).map((note) => element("p", { class: "quiet" }, note)),
    element("details", { class: "numerics quiet" }, element("summary", {}, "Numerical details"),
      element("p", {}, `Cancellation ${told.cancellation}: how many times as large the contributions of all n-grams are as their sum.`),
      element("p", {}, `Residual ${panel.residual}: the largest relative error of the sum of all n-grams against the network’s own state.`),
      element("p", {}, `Parity ${panel.parity}: the largest difference between the states that unrolled recomputes and the network’s own.`)));
}

function drawTop(told) {
  const head = ["n-gram", current().series ? "steps" : "tokens", "contribution", "phrase score"].map((name, k) => element("th", { scope: "col", class: k > 1 ? "number" : k ? "spare" : null }, name));
  const rows = told.top.map((row) => {
    const near = row.copies ? element("span", { class: "quiet" }, ` with ${row.copies} near-cop${row.copies > 1 ? "ies" : "y"}`) : null;
    const button = element("button", { type: "button", class: "link" }, wordy(row));
    button.addEventListener("click", () => { if (view.drawn.has(row.start, row.stop)) { view.drawn.reveal(row); view.drawn.pin({ start: row.start, stop: row.stop }); } });
    return element("tr", {}, element("th", { scope: "row" }, button, near), element("td", { class: "spare" }, `[${row.start}, ${row.stop})`),
      element("td", { class: "number" }, element("span", { class: `chip s${step(row.contribution, told.limits.contribution)}` }), signed(row.contribution)),
      element("td", { class: "number" }, signed(row.score)));
  });
  view.top.replaceChildren(element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table of the largest contributions" }, element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows))));
}

function drawComparison(item) {
  const shared = item.shared[state.option];
  const names = ["expansion", "exact", "local", ...currentOption().ledger.map((bar) => bar.name)];
  view.compareHead.replaceChildren(element("h2", {}, "Expansions side by side"), element("div", { class: "end" }, legend(shared, "one scale for all")));
  const bodies = item.panels.map((panel, k) => element("tbody", { class: k === state.panel ? "current" : null },
    element("tr", {}, element("th", { scope: "row" }, panel.label), element("td", {}, panel.exact ? "yes" : "no"), element("td", {}, panel.local ? "yes" : "no"),
      ...panel.options[state.option].ledger.map((bar) => element("td", { class: "number" }, signed(bar.value)))),
    item.tokens.length <= 60 ? element("tr", { class: "strip" }, element("td", { colspan: names.length }, sentence(item.tokens, panel.options[state.option].tokens, shared, false))) : null));
  view.comparison.replaceChildren(element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table of the expansions" }, element("table", {},
    element("thead", {}, element("tr", {}, ...names.map((name, k) => element("th", { scope: "col", class: k > 2 ? "number" : null }, name)))), ...bodies)));
}

function remember() {
  const wanted = new URLSearchParams({ expansion: currentPanel().label, show: state.quantity });
  if (data.items.length > 1) wanted.set("item", state.item + 1);
  if (state.option) wanted.set("explain", state.option);
  if (view.ways && state.way !== "both") wanted.set("direction", state.way);
  const span = view.drawn.pinned;
  if (span) wanted.set("ngram", `${span.start}-${span.stop}`);
  try { history.replaceState(null, "", `#${wanted}`); } catch { /* a sandboxed frame has no address */ }
}

function open() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const among = (value, names, otherwise) => (names.includes(value) ? value : otherwise);
  const item = Number(wanted.get("item")) - 1;
  state.item = data.items[item] ? item : 0;
  state.quantity = among(wanted.get("show"), QUANTITIES.map(([name]) => name), "phrase");
  state.panel = Math.max(0, current().panels.findIndex((panel) => panel.label === wanted.get("expansion")));
  state.option = current().options[Number(wanted.get("explain"))] ? Number(wanted.get("explain")) : 0;
  state.way = among(wanted.get("direction"), ["forward", "backward"], "both");
  build();
  const span = /^(\d+)-(\d+)$/.exec(wanted.get("ngram") || "");
  if (span && view.drawn.has(Number(span[1]), Number(span[2]))) {
    const pinned = { start: Number(span[1]), stop: Number(span[2]) };
    view.drawn.reveal(pinned);
    view.drawn.pin(pinned);
  }
}

function choose(item) {
  Object.assign(state, { item, option: 0, panel: Math.min(state.panel, data.items[item].panels.length - 1) });
  build();
  remember();
}
