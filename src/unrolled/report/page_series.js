// Numeric inputs: time on the x axis, each feature's series above, its contributions as a heat strip below.
const GUTTER = "12px system-ui, sans-serif";
const AXIS = "11px system-ui, sans-serif";

// The text, or as much of it as is at most so wide in the font of the canvas.
function fitted(c, text, width) {
  const letters = Array.from(text);
  for (let kept = letters.length; kept > 1; kept--) {
    const shown = kept === letters.length ? text : letters.slice(0, kept).join("") + "\u2026";
    if (c.measureText(shown).width <= width) return shown;
  }
  return short(text, 2);
}

class Series {
  constructor(host, told) {
    this.told = told; // called with a time and a row, or null; the row after the last feature is the total
    this.canvas = element("canvas", {});
    this.space = element("div", { class: "space" }, this.canvas);
    this.scroll = element("div", { class: "scroll canvas", tabindex: "0", role: "application", "aria-label": "Input series and contributions over time. Arrow keys move." }, this.space);
    host.replaceChildren(this.scroll);
    this.at = null;
    this.scroll.addEventListener("scroll", () => this.paint());
    this.canvas.addEventListener("pointermove", (event) => this.point(this.under(event)));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    this.scroll.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => { if (this.rows && widthOf(this.scroll) !== this.seen) this.layout(); }).observe(this.scroll);
  }

  show(names, values, rows, limit, steps) {
    const total = rows[0].map((_, t) => rows.reduce((sum, row) => sum + row[t], 0));
    Object.assign(this, { names: [...names, "the whole step"], values, rows: [...rows, total], limit, steps, count: total.length });
    this.layout();
  }

  layout() {
    this.seen = widthOf(this.scroll);
    const c = this.canvas.getContext("2d");
    const widest = (texts, font) => { c.font = font; return Math.max(...texts.map((text) => c.measureText(text).width)); };
    this.left = Math.min(0.3 * this.seen, widest(this.names, GUTTER) + 24);
    this.label = Math.min(0.25 * this.seen, widest(this.steps, AXIS));
    this.width = Math.max(printing.matches ? 0 : 3, (this.seen - this.left - 6) / this.count);
    this.band = this.values.length <= 6 ? 44 : this.values.length <= 16 ? 28 : 18;
    this.strip = this.values.length <= 16 ? 20 : 14;
    this.top = this.values.length * this.band + 14;
    this.tall = this.top + this.rows.length * this.strip + 30;
    const wide = this.left + this.count * this.width + 6;
    this.space.style.width = `${wide}px`;
    this.space.style.height = `${this.tall}px`;
    this.scroll.style.height = `${this.tall + (wide > this.seen + 1 ? 16 : 0)}px`;
    this.paint();
  }

  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const time = Math.floor((event.clientX - box.left - this.left + this.scroll.scrollLeft) / this.width);
    const y = event.clientY - box.top;
    const row = y < this.top ? Math.floor(y / this.band) : Math.floor((y - this.top) / this.strip);
    return event.clientX - box.left >= this.left && time >= 0 && time < this.count && row >= 0 && row < this.rows.length ? { time, row } : null;
  }

  key(event) {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (!(event.key in moves) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const here = this.at || { time: -moves[event.key][0], row: -moves[event.key][1] };
    const time = here.time + moves[event.key][0];
    const row = here.row + moves[event.key][1];
    if (time >= 0 && time < this.count && row >= 0 && row < this.rows.length) this.point({ time, row });
    const x = this.left + time * this.width;
    if (x < this.scroll.scrollLeft + this.left || x > this.scroll.scrollLeft + this.seen - 8) this.scroll.scrollLeft = x - this.seen / 2;
  }

  point(place) {
    this.at = place;
    this.told(place);
    this.paint();
  }

  paint() {
    if (!this.rows || !this.seen) return;
    const c = sized(this.canvas, this.seen, this.tall);
    const { scale } = shades();
    const x0 = this.left - this.scroll.scrollLeft;
    const first = Math.max(0, Math.floor(-(x0 - this.left) / this.width) - 1);
    const last = Math.min(this.count - 1, Math.ceil((this.seen - x0) / this.width));
    c.lineWidth = 1.5;
    this.values.forEach((row, f) => this.line(c, row, f * this.band, x0, first, last));
    this.rows.forEach((row, f) => {
      const y = this.top + f * this.strip;
      for (let t = first; t <= last; t++) {
        c.fillStyle = scale[step(row[t], this.limit)];
        c.fillRect(x0 + t * this.width, y, this.width - (this.width >= 8 ? 1 : 0), this.strip - 2);
      }
    });
    this.axis(c, x0, first, last);
    if (this.at) {
      c.strokeStyle = ink("--ink");
      c.lineWidth = 1;
      c.strokeRect(x0 + this.at.time * this.width - 0.5, 0.5, this.width, this.tall - 30);
    }
    this.gutter(c);
  }

  line(c, row, y, x0, first, last) {
    const read = row.filter((value) => value !== null);
    const low = Math.min(...read);
    const high = Math.max(...read);
    const place = (value) => y + this.band - 6 - (high > low ? (value - low) / (high - low) : 0.5) * (this.band - 12);
    c.strokeStyle = ink("--line");
    c.lineWidth = 1;
    c.beginPath();
    c.moveTo(x0, y + this.band - 0.5);
    c.lineTo(x0 + this.count * this.width, y + this.band - 0.5);
    c.stroke();
    c.strokeStyle = ink("--ink");
    c.lineWidth = 1.4;
    c.beginPath();
    c.fillStyle = ink("--ink");
    // null is a missing number: the line has a gap there, and a number alone between two gaps is a dot
    const missing = (t) => t < first || t > last || row[t] === null;
    for (let t = first; t <= last; t++) {
      if (missing(t)) continue;
      const x = x0 + (t + 0.5) * this.width;
      if (missing(t - 1)) c.moveTo(x, place(row[t]));
      else c.lineTo(x, place(row[t]));
      if (missing(t - 1) && missing(t + 1)) c.fillRect(x - 2, place(row[t]) - 2, 4, 4);
    }
    c.stroke();
  }

  axis(c, x0, first, last) {
    // half a label more, since the first one moves to the right of the gutter
    const room = Math.max(46, 1.5 * this.label + 8);
    const every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000].find((n) => n * this.width >= room) || 10000;
    c.fillStyle = ink("--soft");
    c.font = AXIS;
    c.textAlign = "center";
    c.textBaseline = "top";
    for (let t = first; t <= last; t++) if (t % every === 0) {
      const text = fitted(c, this.steps[t], this.label);
      const half = c.measureText(text).width / 2;
      const x = Math.max(x0 + (t + 0.5) * this.width, this.left + half);
      if (x + half <= this.seen || t === first) c.fillText(text, x, this.tall - 26);
    }
    c.fillText("time", this.left + (this.seen - this.left) / 2, this.tall - 13);
  }

  gutter(c) {
    c.fillStyle = ink("--paper");
    c.fillRect(0, 0, this.left - 6, this.tall);
    c.textAlign = "right";
    c.textBaseline = "middle";
    const write = (name, y, bold) => {
      c.fillStyle = ink(bold ? "--ink" : "--soft");
      c.font = `${bold ? "600 " : ""}${GUTTER}`;
      c.fillText(fitted(c, name, this.left - 14), this.left - 12, y);
    };
    const row = this.at ? this.at.row : -1;
    this.values.forEach((_, f) => write(this.names[f], (f + 0.5) * this.band, f === row));
    this.rows.forEach((_, f) => write(this.names[f], this.top + (f + 0.5) * this.strip - 1, f === row));
  }
}
