// The triangle: row k - 1 holds the spans of k tokens by their first token. Only what is visible is drawn.

// One quantity of all spans for one choice of outputs: rows of numbers by order.
function spanValues(panel, option, quantity, way) {
  const names = panel.directions.filter((name) => way === "both" || way === name);
  const sums = names.map((name) => directionValues(panel, option, quantity, panel.directions.indexOf(name), name));
  if (sums.length === 1) return sums[0];
  return sums[0].map((row, k) => row.map((value, start) => value + sums[1][k][start]));
}

function directionValues(panel, option, quantity, d, name) {
  const key = quantity === "contribution" ? "contribution" : "score";
  const plus = panel.classes[option.plus === null ? 0 : option.plus][key][d];
  const minus = option.minus === null ? null : panel.classes[option.minus][key][d];
  const own = minus ? plus.map((row, k) => row.map((value, start) => value - minus[k][start])) : plus;
  if (quantity !== "phrase") return own;
  // A phrase is the sum over the n-grams inside it that end at its end: its last token, or its first one backward.
  const rows = [];
  own.forEach((row, k) => rows.push(row.map((value, start) => value + (k ? rows[k - 1][name === "forward" ? start + 1 : start] : 0))));
  return rows;
}

class Triangle {
  constructor(host, told) {
    this.told = told; // called with the span that is pointed at or pinned, or null
    this.canvas = element("canvas", {});
    this.space = element("div", { class: "space" }, this.canvas);
    this.scroll = element("div", {
      class: "scroll canvas", tabindex: "0", role: "application",
      "aria-label": "Triangle of n-grams. Arrow keys move, Enter pins, Escape unpins, plus and minus zoom.",
    }, this.space);
    host.replaceChildren(this.scroll);
    this.at = this.pinned = null;
    this.wanted = 0;
    this.scroll.addEventListener("scroll", () => this.paint());
    this.canvas.addEventListener("pointermove", (event) => this.point(this.under(event)));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    this.canvas.addEventListener("click", (event) => this.pin(this.under(event)));
    this.scroll.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => { if (this.tokens && widthOf(this.scroll) !== this.seen) this.layout(); }).observe(this.scroll);
  }

  show(tokens, starts, rows, limit) {
    const fresh = this.tokens !== tokens;
    Object.assign(this, { tokens, starts, rows, limit });
    if (fresh) this.at = this.pinned = null;
    this.layout(fresh);
  }

  // The width of a cell: what fits, but not less than can be read; the wanted one after a zoom.
  layout(fresh = false) {
    const count = this.tokens.length;
    const longest = this.tokens.reduce((most, t) => Math.max(most, Array.from(t).length), 0);
    const least = Math.max(46, Math.min(longest, 12) * 7.4 + 14);
    this.seen = widthOf(this.scroll);
    const room = (this.seen - 4) / count;
    // A slanted label reaches beyond the left of its own column.
    const beyond = (width) => Math.max(2, ...this.tokens.slice(0, 40).map((t, k) => Math.min(Array.from(t).length, 16) * 5.3 - (k + 0.5) * width));
    const slanted = room >= least ? 2 : beyond(room);
    this.fit = Math.max(1.5, Math.min(88, (this.seen - 14 - slanted) / count));
    const start = this.fit >= 14 || printing.matches ? this.fit : 15;
    const width = (!printing.matches && this.wanted) || (this.fit >= least ? this.fit : start);
    this.width = width;
    this.upright = longest <= 12 && width >= least;
    this.numbers = width >= 44;
    this.left = this.upright || width < 9 ? 2 : beyond(width);
    this.foot = this.upright ? 30 : width >= 9 ? Math.min(longest, 16) * 5.6 + 20 : 8;
    const tallest = printing.matches ? 800 : Math.max(280, Math.min(900, 0.78 * window.innerHeight));
    const usual = this.numbers ? Math.min(34, Math.round(width * 0.44) + 4) : Math.max(1, Math.min(24, width * 0.62));
    // Where all rows fit with legible numbers, they are not scrolled.
    this.height = Math.min(usual, Math.max(this.numbers ? 17 : usual, (tallest - this.foot) / this.rows.length));
    this.total = { width: this.left + count * width + 10, height: this.rows.length * this.height + this.foot };
    const bar = this.total.width > this.seen + 1 ? 16 : 0;
    this.tall = Math.min(this.total.height, tallest);
    this.scroll.style.height = `${Math.ceil(this.tall + bar)}px`;
    this.space.style.width = `${this.total.width}px`;
    this.space.style.height = `${this.total.height}px`;
    if (fresh) this.scroll.scrollTop = this.total.height;
    this.paint();
  }

  zoom(factor) {
    const middle = (this.scroll.scrollLeft + this.seen / 2 - this.left) / this.width;
    this.wanted = factor === 0 ? this.fit : Math.max(1.5, Math.min(88, this.width * factor));
    this.layout();
    this.scroll.scrollLeft = this.left + middle * this.width - this.seen / 2;
    this.scroll.scrollTop = this.total.height;
    this.paint();
  }

  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left + this.scroll.scrollLeft - this.left;
    const y = event.clientY - box.top + this.scroll.scrollTop;
    if (event.clientY - box.top > this.tall - this.foot) {
      const token = Math.floor(x / this.width); // the labels
      return token >= 0 && token < this.tokens.length ? { start: token, stop: token + 1 } : null;
    }
    const order = this.rows.length - Math.floor(y / this.height);
    const start = Math.floor(x / this.width - (order - 1) / 2);
    return this.has(start, start + order) ? { start, stop: start + order } : null;
  }

  has(start, stop) {
    return start >= 0 && start < stop && stop <= this.tokens.length && stop - start <= this.rows.length
      && !this.starts.some((each) => start < each && each < stop); // no n-gram is of two sequences
  }

  value(span) {
    return this.rows[span.stop - span.start - 1][span.start];
  }

  point(span) {
    this.at = span;
    this.told(span || this.pinned, !span && this.pinned);
    this.paint();
  }

  pin(span) {
    const same = span && this.pinned && span.start === this.pinned.start && span.stop === this.pinned.stop;
    this.pinned = same ? null : span;
    this.at = null;
    this.told(this.pinned, Boolean(this.pinned));
    this.paint();
  }

  key(event) {
    const here = this.at || this.pinned || { start: 0, stop: 1 };
    const moves = { ArrowLeft: [-1, -1], ArrowRight: [1, 1], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const acts = {
      Enter: () => this.pin(here), " ": () => this.pin(here), Escape: () => this.pin(null),
      "+": () => this.zoom(1.4), "-": () => this.zoom(1 / 1.4), 0: () => this.zoom(0),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in moves || event.key in acts)) return;
    event.preventDefault();
    if (event.key in acts) { acts[event.key](); return; }
    const [a, b] = moves[event.key];
    const there = [{ start: here.start + a, stop: here.stop + b }, { start: here.start - 1, stop: here.stop }];
    const next = there.slice(0, event.key === "ArrowUp" ? 2 : 1).find((span) => this.has(span.start, span.stop));
    if (!next) return;
    this.reveal(next);
    this.point(next);
  }

  reveal(span) {
    const x = this.left + ((span.start + span.stop) / 2) * this.width;
    const y = (this.rows.length - (span.stop - span.start)) * this.height;
    const { scrollLeft, scrollTop } = this.scroll;
    if (x < scrollLeft + this.width || x > scrollLeft + this.seen - this.width) this.scroll.scrollLeft = x - this.seen / 2;
    if (y < scrollTop || y > scrollTop + this.tall - this.foot - this.height) this.scroll.scrollTop = y - this.tall / 2;
  }

  paint() {
    if (!this.tokens || !this.seen) return;
    const wide = Math.min(this.seen, this.total.width);
    const c = sized(this.canvas, wide, this.tall);
    const { scale, inks } = shades();
    const { scrollLeft, scrollTop } = this.scroll;
    const { width, height, rows, left } = this;
    const ground = this.tall - this.foot;
    const gap = width >= 9 ? 1 : width >= 4 ? 0.5 : 0;
    c.textAlign = "center";
    c.textBaseline = "middle";
    c.font = "12px system-ui, sans-serif";
    for (let k = 0; k < rows.length; k++) {
      const y = (rows.length - 1 - k) * height - scrollTop;
      if (y + height < 0 || y > ground) continue;
      const shift = left + (k / 2) * width - scrollLeft;
      const first = Math.max(0, Math.floor(-shift / width));
      const last = Math.min(rows[k].length - 1, Math.ceil((wide - shift) / width));
      for (let start = first; start <= last; start++) {
        if (!this.has(start, start + k + 1)) continue;
        const value = rows[k][start];
        const at = step(value, this.limit);
        c.fillStyle = scale[at];
        c.fillRect(shift + start * width, y, width - gap, height - gap);
        if (this.numbers) {
          c.fillStyle = inks[at];
          c.fillText(brief(value, this.limit), shift + (start + 0.5) * width, y + height / 2);
        }
      }
    }
    this.labels(c, wide, ground);
    if (this.pinned) this.outline(c, this.pinned, 2.5);
    if (this.at) this.outline(c, this.at, 1.5);
  }

  labels(c, wide, ground) {
    const { width, left } = this;
    const lit = this.at || this.pinned;
    c.fillStyle = ink("--paper");
    c.fillRect(0, ground, wide, this.foot);
    if (this.foot < 12) return;
    const every = Math.max(1, Math.ceil(14 / width));
    const size = this.upright ? 13 : Math.min(12, 0.7 * every * width); // slanted lines are so far apart
    this.tokens.forEach((token, index) => {
      const x = left + (index + 0.5) * width - this.scroll.scrollLeft;
      const inside = lit && index >= lit.start && index < lit.stop;
      if (x < -width || x > wide + width || (index % every && !inside)) return;
      c.fillStyle = ink(lit && !inside ? "--soft" : "--ink");
      c.font = `${inside ? "600 " : ""}${size}px system-ui, sans-serif`;
      c.save();
      c.translate(x + (this.upright ? 0 : 4), ground + (this.upright ? 16 : 9));
      if (!this.upright) { c.rotate(-Math.PI / 4); c.textAlign = "right"; } else c.textAlign = "center";
      c.fillText(short(token, 16), 0, 0);
      c.restore();
    });
  }

  // The cell, and the sides of the triangle over its tokens.
  outline(c, span, line) {
    const { width, height, left, rows } = this;
    const order = span.stop - span.start;
    const x = left + span.start * width - this.scroll.scrollLeft;
    const y = (rows.length - order) * height - this.scroll.scrollTop;
    const foot = rows.length * height - this.scroll.scrollTop;
    const middle = x + ((order - 1) / 2) * width;
    c.save();
    c.beginPath();
    c.rect(0, 0, this.seen, this.tall - this.foot);
    c.clip();
    c.strokeStyle = ink("--ink");
    c.lineWidth = line;
    c.strokeRect(middle + 0.5, y + 0.5, width - 1, height - 1);
    if (order > 1) {
      c.lineWidth = 1;
      c.setLineDash([3, 3]);
      c.beginPath();
      c.moveTo(middle, y + height);
      c.lineTo(x, foot);
      c.moveTo(middle + width, y + height);
      c.lineTo(x + order * width, foot);
      c.stroke();
    }
    c.restore();
  }
}
