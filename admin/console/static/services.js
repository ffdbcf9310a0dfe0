// Locks, counters, sequences and quotas.
import { Table, h, offText, pill, setText } from "./dom.js";
import { count, duration, moment, plural, relative, short } from "./format.js";
import { head, poll } from "./section.js";

function figures(box, names) {
  const dds = names.map(() => h("dd", null, "–"));
  box.append(h("dl", { class: "stats" }, names.map((n, i) => h("div", null, h("dt", null, n), dds[i]))));
  return (...values) => values.forEach((v, i) => setText(dds[i], v));
}

function offCard(box, title, text) {
  box.append(h("section", { class: "card" }, title ? h("h2", null, title) : null, offText(text)));
}

export function locks(root) {
  root.append(head("Locks", "Who holds them, and who waits."));
  return poll(root, "locks", (box, first) => {
    if (first.off) {
      offCard(box, null, first.off);
      return null;
    }
    const show = figures(box, ["Keys in use", "Holders", "Waiters", "Longest wait", "Granted", "Timed out", "Expired", "Clients"]);
    const table = new Table("Locks", [
      { name: "Key", mono: true, cell: (k) => k.name },
      { name: "Holders", number: true, cell: (k) => count(k.holders) },
      { name: "Waiters", number: true, cell: (k) => count(k.waiters) },
      { name: "Clients", cell: (k) => clients(k) },
    ], { key: (k) => k.name, empty: "Nobody holds a lock." });
    const rest = h("p", { class: "muted" });
    box.append(h("section", { class: "card", "aria-label": "Locks" }, table.element, rest));
    return (a) => {
      show(count(a.all), count(a.holders), count(a.waiters), a.waiters ? duration(a.oldestWait) : "–", short(a.grants), short(a.timeouts), short(a.expiries), count(a.conns));
      table.update(a.keys);
      setText(rest, a.all > a.keys.length ? `The ${count(a.keys.length)} that most wait for, of ${count(a.all)}.` : "");
    };
  });
}

function clients(k) {
  return h("div", { class: "stack" }, k.requests.map((r, i) => h("div", { class: "actions" },
    i < k.holders ? pill("holds", "good") : pill("waits", "warn"), h("span", { class: "mono" }, r.client),
    h("span", { class: "muted" }, `for ${duration(r.age)}`, r.left < 0 ? ", without end" : `, ${i < k.holders ? "expires" : "gives up"} in ${duration(r.left)}`, r.max > 1 ? `, up to ${r.max} holders` : "", r.token !== "0" ? `, token ${r.token}` : ""))),
    k.holders + k.waiters > k.requests.length ? h("p", { class: "muted" }, `and ${plural(k.holders + k.waiters - k.requests.length, "more client")}`) : null);
}

export function counters(root) {
  root.append(head("Counters", "What clients have acquired of each resource."));
  let prefix = "";
  const filter = h("input", { type: "search", "data-search": true, class: "mono", autocomplete: "off", spellcheck: "false" });
  let end = null;
  const begin = () => {
    end?.();
    const box = h("div");
    old?.remove();
    root.append(box);
    old = box;
    end = poll(box, "counters?prefix=" + encodeURIComponent(prefix), (inner, first) => {
      if (first.off) {
        form.hidden = true;
        offCard(inner, null, first.off);
        return null;
      }
      form.hidden = false;
      const show = figures(inner, ["Counters", "Created since the start", "Acquired", "Released", "Clients"]);
      const table = new Table("Counters", [
        { name: "Name", mono: true, cell: (c) => c.name },
        { name: "Acquired", number: true, cell: (c) => count(c.current) },
        { name: "Most in this interval", number: true, cell: (c) => count(c.maximum) },
        { name: "Share of it", hide: true, fit: true, cell: (c, td) => bar(c, td) },
      ], { key: (c) => c.name, empty: prefix ? "No counter begins with this." : "There are no counters." });
      const rest = h("p", { class: "muted" });
      inner.append(h("section", { class: "card", "aria-label": "Counters" }, table.element, rest));
      return (a) => {
        show(count(a.all), count(a.created), short(a.acquires), short(a.releases), count(a.conns));
        table.update(a.counters);
        setText(rest, a.all > a.counters.length && !prefix ? `The ${count(a.counters.length)} largest of ${count(a.all)}.` : "");
      };
    });
  };
  let old = null, typing = 0;
  filter.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      prefix = filter.value;
      begin();
    }, 250);
  });
  const form = h("form", { class: "filter", hidden: true, onsubmit: (e) => e.preventDefault() }, h("label", { class: "field grow" }, h("span", null, "Names that begin with"), filter));
  root.append(form);
  begin();
  return () => end();
}

function bar(c, td) {
  const part = c.maximum ? c.current / c.maximum : 0;
  let inner = td.querySelector(".bar > span");
  if (inner) inner.style.transform = `scaleX(${part})`;
  else {
    inner = h("span");
    inner.style.transform = `scaleX(${part})`;
    return h("span", { class: "bar", "aria-hidden": "true" }, inner);
  }
  return undefined;
}

export function numbers(root) {
  root.append(head("Sequences and quotas"));
  const left = h("div"), right = h("div");
  root.append(left, right);
  const ends = [poll(left, "sequences", buildSequences), poll(right, "quotas", buildQuotas)];
  return () => ends.forEach((end) => end());
}

const named = (r) => (r.name ? h("span", { class: "mono" }, r.name) : h("span", { class: "muted" }, "without a name"));

function buildSequences(box, first) {
  if (first.off) {
    offCard(box, "Sequences", first.off);
    return null;
  }
  const table = new Table("Sequences", [
    { name: "Sequence", cell: named },
    { name: "Numbers given out are of times before", cell: (s) => moment(s.bound) },
    { name: "Age", number: true, cell: (s) => relative(s.bound) },
  ], { key: (s) => s.name, empty: "No number has been given out yet." });
  box.append(h("section", { class: "card", "aria-label": "Sequences" }, h("h2", null, "Sequences"), table.element));
  return (a) => table.update(a.sequences);
}

function buildQuotas(box, first) {
  box.append(h("br"));
  if (first.off) {
    offCard(box, "Quotas", first.off);
    return null;
  }
  const table = new Table("Quotas", [
    { name: "Quota", cell: named },
    { name: "Left", number: true, cell: (q) => count(q.remaining) },
    { name: "Latest journal", number: true, cell: (q) => count(q.journal) },
    { name: "State", cell: (q) => pill(q.open ? "open" : "used up", q.open ? "good" : "warn") },
  ], { key: (q) => q.name, empty: "There are no quotas." });
  box.append(h("section", { class: "card", "aria-label": "Quotas" }, h("h2", null, "Quotas"), table.element));
  return (a) => table.update(a.quotas);
}
