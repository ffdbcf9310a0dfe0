// Numbers, times and bytes as people read them.

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** A count with groups of three digits. */
export function count(n) {
  return grouped.format(n).replaceAll(",", "\u202f");
}

/** A number of three digits with a unit prefix. */
export function short(n) {
  for (const [size, unit] of [[1e9, " G"], [1e6, " M"], [1e4, " k"]]) {
    if (n >= size) return digits(n / (size === 1e4 ? 1e3 : size)) + unit;
  }
  return n >= 100 || Number.isInteger(n) ? count(n) : n.toFixed(n < 10 ? 1 : 0);
}

function digits(n) {
  return n >= 100 ? n.toFixed(0) : n >= 10 ? n.toFixed(1) : n.toFixed(2);
}

/** Bytes in powers of 1024. */
export function size(n) {
  for (const [i, unit] of [[4, "TiB"], [3, "GiB"], [2, "MiB"], [1, "KiB"]]) {
    if (n >= 1024 ** i) return digits(n / 1024 ** i) + "\u00a0" + unit;
  }
  return Math.round(n) + "\u00a0B";
}

/** A time in the unit that fits: 12 µs, 3.4 ms, 5.0 s. */
export function duration(s) {
  if (s < 1e-3) return (s * 1e6).toFixed(s < 1e-5 ? 1 : 0) + "\u00a0µs";
  if (s < 1) return (s * 1e3).toFixed(s < 1e-2 ? 2 : s < 1e-1 ? 1 : 0) + "\u00a0ms";
  if (s < 120) return s.toFixed(s < 10 ? 2 : 1) + "\u00a0s";
  return span(s);
}

/** A long time in its two largest units. */
export function span(s) {
  s = Math.max(0, Math.round(s));
  const units = [[86400 * 365, "y"], [86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const i = units.findIndex(([n]) => s >= n);
  if (i < 0) return "0\u00a0s";
  const first = Math.floor(s / units[i][0]) + "\u00a0" + units[i][1];
  if (i === units.length - 1) return first;
  const rest = Math.floor((s % units[i][0]) / units[i + 1][0]);
  return rest ? first + " " + rest + "\u00a0" + units[i + 1][1] : first;
}

/** A moment in the time zone of the reader: 2026-11-21 14:05:09. */
export function moment(ms) {
  const d = new Date(ms);
  const two = (n) => String(n).padStart(2, "0");
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${clock(ms)}`;
}

export function clock(ms) {
  const d = new Date(ms);
  return [d.getHours(), d.getMinutes(), d.getSeconds()].map((n) => String(n).padStart(2, "0")).join(":");
}

/** How long ago, or until when. */
export function relative(ms, now = Date.now()) {
  const s = (ms - now) / 1000;
  if (Math.abs(s) < 1) return "now";
  return s > 0 ? "in\u00a0" + span(s) : span(-s) + "\u00a0ago";
}

/** A moment and how long ago that was. */
export function ago(ms) {
  return ms ? moment(ms) + ", " + relative(ms) : "never";
}

export function plural(n, one, many) {
  return count(n) + "\u00a0" + (n === 1 ? one : many ?? one + "s");
}
