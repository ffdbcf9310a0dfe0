// Lines over the last minutes, in SVG. A chart can be read with the keyboard: the arrow keys move through time.
import { fill, h, setText } from "./dom.js";
import { clock } from "./format.js";
import { live } from "./server.js";

const left = 54, right = 6, above = 8, below = 20;

/**
 * A chart. Its options: title, unit, series (() → [{name, at: sample → number or null}]), show (number → text), log (logarithmic axis),
 * least (the smallest upper end of the axis), area.
 */
export class Chart {
  constructor(options) {
    this.options = options;
    this.chosen = null; // index of the sample at the cross
    this.svg = h("svg", { class: "plot", role: "img", tabindex: "0", "aria-label": options.title });
    this.legend = h("ul", { class: "legend" });
    this.tip = h("div", { class: "tip", hidden: true });
    this.element = h("figure", { class: "card chart" },
      h("figcaption", null, h("h2", null, options.title, options.unit ? [" ", h("small", null, options.unit)] : null)), this.legend, this.svg, this.tip);
    this.svg.addEventListener("pointermove", (e) => this.point(e));
    this.svg.addEventListener("pointerleave", () => this.choose(null));
    this.svg.addEventListener("blur", () => this.choose(null));
    this.svg.addEventListener("keydown", (e) => this.key(e));
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(this.svg);
  }

  close() {
    this.resized.disconnect();
  }

  draw() {
    const { width, height } = this.svg.getBoundingClientRect();
    if (width < 80) return;
    this.width = width;
    this.height = height;
    this.series = this.options.series();
    this.end = live.samples.at(-1)?.t ?? Date.now();
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const axis = this.axis();
    this.y = axis.y;
    fill(this.svg, this.rules(axis), this.times(), this.series.map((s, i) => this.line(s, i)), this.cross());
    this.describe();
  }

  x(t) {
    return left + (this.width - left - right) * (1 - (this.end - t) / 1000 / live.window);
  }

  values() {
    return live.samples.flatMap((sample) => this.series.map((s) => s.at(sample))).filter((v) => v !== null && v !== undefined);
  }

  axis() {
    const low = this.height - below, high = above, values = this.values();
    if (this.options.log) {
      const seen = values.filter((v) => v > 0);
      const from = Math.floor(Math.log10(seen.length ? Math.min(...seen) : 1e-5));
      const to = Math.max(from + 2, Math.ceil(Math.log10(seen.length ? Math.max(...seen) : 1e-3)));
      const ticks = [];
      for (let e = from; e <= to; e++) ticks.push(10 ** e);
      return { ticks, y: (v) => low - ((Math.log10(Math.max(v, 10 ** from)) - from) / (to - from)) * (low - high) };
    }
    const top = Math.max(this.options.least ?? 1, ...values);
    const step = nice(top / 4, this.options.binary);
    const max = Math.ceil(top / step - 1e-9) * step;
    const ticks = [];
    for (let v = 0; v <= max + step / 2; v += step) ticks.push(v);
    return { ticks, y: (v) => low - (v / max) * (low - high) };
  }

  rules({ ticks, y }) {
    return ticks.map((v, i) => [
      h("line", { class: i ? "rule" : "rule base", x1: left, x2: this.width - right, y1: Math.round(y(v)), y2: Math.round(y(v)) }),
      h("text", { x: left - 7, y: Math.round(y(v)) + 4, "text-anchor": "end" }, v ? this.options.show(v) : "0"),
    ]);
  }

  times() {
    const marks = [];
    const minutes = Math.round(live.window / 60);
    for (let m = 0; m <= minutes; m++) {
      if (this.width < 420 && m % 2 && m !== minutes) continue;
      if (this.width < 420 && m === minutes - 1) continue;
      const anchor = m === 0 ? "end" : m === minutes ? "start" : "middle";
      marks.push(h("text", { x: this.x(this.end - m * 60000), y: this.height - 4, "text-anchor": anchor }, m ? `−${m} min` : "now"));
    }
    return marks;
  }

  line(series, i) {
    let d = "", open = false, first = 0, last = 0, area = "";
    for (const sample of live.samples) {
      const v = series.at(sample), x = this.x(sample.t);
      if (x < left - 1) continue;
      if (v === null || v === undefined) {
        open = false;
        continue;
      }
      const y = this.y(v).toFixed(1);
      if (!open) first = x;
      d += `${open ? "L" : "M"}${x.toFixed(1)} ${y}`;
      if (!open && area) area += `L${last.toFixed(1)} ${this.height - below}Z`;
      area += `${open ? "L" : `M${first.toFixed(1)} ${this.height - below}L`}${x.toFixed(1)} ${y}`;
      open = true;
      last = x;
    }
    if (area) area += `L${last.toFixed(1)} ${this.height - below}Z`;
    return h("g", { class: "c" + (series.color ?? i) }, this.options.area && area ? h("path", { class: "area", d: area }) : null, h("path", { d }));
  }

  cross() {
    const sample = this.chosen === null ? null : live.samples[this.chosen];
    this.tip.hidden = !sample;
    if (!sample) return null;
    const x = this.x(sample.t);
    const rows = this.series.map((s, i) => [s, s.at(sample), s.color ?? i]).filter(([, v]) => v !== null && v !== undefined);
    fill(this.tip, h("p", null, clock(sample.t)), h("table", null, h("tbody", null, rows.map(([s, v]) =>
      h("tr", null, h("td", null, s.name), h("td", { class: "number" }, this.options.show(v)))))));
    const box = this.svg.getBoundingClientRect(), outer = this.element.getBoundingClientRect();
    const at = x + box.left - outer.left, width = this.tip.offsetWidth;
    this.tip.style.transform = `translate(${Math.round(at + width + 16 > outer.width ? at - width - 10 : at + 10)}px, ${Math.round(box.top - outer.top + 6)}px)`;
    return [h("line", { class: "cross", x1: x, x2: x, y1: above, y2: this.height - below }),
      rows.map(([, v, c]) => h("g", { class: "c" + c }, h("circle", { cx: x, cy: this.y(v), r: 3.5 })))];
  }

  describe() {
    const sample = live.samples.at(-1);
    const rows = this.series.map((s, i) => {
      const v = sample ? s.at(sample) : null;
      return { name: s.name, text: v === null || v === undefined ? "–" : this.options.show(v), color: s.color ?? i };
    });
    if (this.legend.children.length !== rows.length) {
      fill(this.legend, rows.map((r) => h("li", { class: "c" + r.color }, h("i", { "aria-hidden": "true" }), h("span"), h("b"))));
    }
    rows.forEach((r, i) => {
      setText(this.legend.children[i].children[1], r.name);
      setText(this.legend.children[i].children[2], r.text);
    });
    this.svg.setAttribute("aria-label", `${this.options.title}: ${rows.map((r) => `${r.name} ${r.text}`).join(", ")}. Arrow keys move through time.`);
  }

  choose(i) {
    this.chosen = i;
    if (this.series) this.draw();
  }

  point(e) {
    const box = this.svg.getBoundingClientRect();
    const x = e.clientX - box.left;
    let best = null;
    live.samples.forEach((s, i) => {
      if (best === null || Math.abs(this.x(s.t) - x) < Math.abs(this.x(live.samples[best].t) - x)) best = i;
    });
    this.choose(best);
  }

  key(e) {
    const last = live.samples.length - 1;
    const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
    if (!(e.key in moves) || last < 0) return;
    e.preventDefault();
    const i = Math.max(0, Math.min(last, (this.chosen ?? last) + moves[e.key]));
    this.choose(i);
    const sample = live.samples[i];
    this.svg.setAttribute("aria-label", `${clock(sample.t)}: ` + this.series.map((s) => `${s.name} ${s.at(sample) === null ? "none" : this.options.show(s.at(sample))}`).join(", "));
  }
}

// nice is the next step of 1, 2, 2.5 or 5 with zeros, or a power of two.
function nice(n, binary) {
  if (binary) return 2 ** Math.ceil(Math.log2(Math.max(n, 1)));
  const power = 10 ** Math.floor(Math.log10(n));
  for (const m of [1, 2, 2.5, 5, 10]) if (n <= m * power * (1 + 1e-9)) return m * power;
  return 10 * power;
}
