// The list of examples on a page of several: a search, filters, an order, and the examples before and after.
function startList() {
  const region = document.getElementById("list");
  if (data.items.length < 2) return;
  const texts = data.items.map((item) => [item.number === null ? "" : `example ${item.number}: `, item.name ? `${item.name}: ` : "", item.tokens.join(" ")].join(""));
  const classes = (read) => [...new Set(data.items.map((item) => item.outputs && read(item.outputs)).filter((name) => name !== null && name !== undefined))].sort();
  const predictedOf = (outputs) => outputs.names[outputs.predicted];
  const trueOf = (outputs) => (outputs.true === null ? null : outputs.names[outputs.true]);
  const probabilityName = [...new Set(data.items.map((item) => item.outputs && item.outputs.probability_name).filter(Boolean))].join(" or ");
  const named = data.items.some((item) => item.name);
  // Of sequences of one output each shows what its n-grams contribute; else without classes the explained output.
  const explained = ({ name, panels }) => panels[0].options[0].ledger.at(name ? 0 : -1).value;
  const highest = (item) => (!item.outputs ? explained(item) : (item.outputs.probability_name ? item.outputs.probabilities : item.outputs.values)[item.outputs.predicted]);
  const wrong = (item) => Boolean(item.outputs) && item.outputs.true !== null && item.outputs.true !== item.outputs.predicted;
  const labelled = data.items.some((item) => item.outputs && item.outputs.true !== null);
  const search = element("input", { type: "search", id: "search" });
  const pick = (id, names) => element("select", { id }, element("option", { value: "" }, "any"), ...names.map((name) => element("option", { value: name }, name)));
  const predicted = pick("predicted", classes(predictedOf));
  const truth = pick("truth", classes(trueOf));
  const errors = element("input", { type: "checkbox", id: "errors" });
  const order = element("select", { id: "order" }, ...["as given", "highest first", "lowest first"].map((name, k) => element("option", { value: k }, name)));
  const field = (id, name, control) => element("span", { class: "field" }, element("label", { for: id }, name), control);
  const filters = element("div", { class: "filters" }, field("search", "text", search), classes(predictedOf).length ? field("predicted", "highest output", predicted) : null,
    labelled ? field("truth", "right answer", truth) : null, labelled ? field("errors", "errors only", errors) : null, field("order", "order", order));
  const count = element("p", { class: "quiet", role: "status" });
  const body = element("tbody", {});
  const head = ["text", ...(labelled ? ["right answer"] : []), classes(predictedOf).length ? "highest output" : "output", probabilityName || (named ? "n-grams" : "value")];
  const table = element("div", { class: "rows", tabindex: "0", role: "region", "aria-label": "Examples" }, element("table", {},
    element("thead", {}, element("tr", {}, ...head.map((name, k) => element("th", { scope: "col", class: k === head.length - 1 ? "number" : null }, name)))), body));
  const rows = data.items.map((item, k) => {
    const button = element("button", { type: "button", class: "link" }, element("bdi", {}, short(texts[k], 140)));
    button.addEventListener("click", () => go(k));
    return element("tr", { "data-item": k }, element("th", { scope: "row" }, button),
      labelled ? element("td", { "data-name": "right answer" }, element("bdi", {}, (item.outputs && trueOf(item.outputs)) || "")) : null,
      element("td", {}, item.outputs ? element("bdi", {}, predictedOf(item.outputs)) : explainedName(item.options[0]), wrong(item) ? element("span", { class: "tag wrong" }, "wrong") : null),
      element("td", { class: "number" }, item.outputs && item.outputs.probability_name ? percent(highest(item)) : signed(highest(item))));
  });
  let shown = rows.map((_, k) => k);
  const before = element("button", { type: "button" }, "\u2190 before");
  const after = element("button", { type: "button" }, "next \u2192");
  before.addEventListener("click", () => turn(-1));
  after.addEventListener("click", () => turn(1));
  region.replaceChildren(filters, table, element("div", { class: "turn" }, before, after, count));
  region.hidden = false;

  function filter() {
    const sought = search.value.trim().toLowerCase();
    shown = data.items.map((_, k) => k).filter((k) => {
      const { outputs } = data.items[k];
      return (!sought || texts[k].toLowerCase().includes(sought)) && (!predicted.value || (outputs && predictedOf(outputs) === predicted.value))
        && (!truth.value || (outputs && trueOf(outputs) === truth.value)) && (!errors.checked || wrong(data.items[k]));
    });
    const ways = [(a, b) => a - b, (a, b) => highest(data.items[b]) - highest(data.items[a]), (a, b) => highest(data.items[a]) - highest(data.items[b])];
    shown.sort(ways[Number(order.value)]);
    body.replaceChildren(...shown.map((k) => rows[k]));
    count.textContent = `${shown.length} of ${data.items.length} shown`;
    mark();
  }

  function mark() {
    rows.forEach((row, k) => row.classList.toggle("current", k === state.item));
    const place = shown.indexOf(state.item);
    before.disabled = place <= 0;
    after.disabled = place < 0 || place >= shown.length - 1;
  }

  function go(k) {
    choose(k);
    mark();
    rows[k].scrollIntoView({ block: "nearest" });
  }

  function turn(way) {
    const place = shown.indexOf(state.item) + way;
    if (shown[place] !== undefined) go(shown[place]);
  }

  for (const control of [search, predicted, truth, errors, order]) control.addEventListener("input", filter);
  window.addEventListener("hashchange", mark);
  filter();
}

document.getElementById("static").remove();
open();
startList();
window.addEventListener("hashchange", open);
dark.addEventListener("change", () => { view.drawn.paint(); if (view.line) view.line.paint(); });
printing.addEventListener("change", () => { view.drawn.layout(true); if (view.line) view.line.layout(); });
