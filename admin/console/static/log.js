// Update logs, and slow requests.
import { Table, facts, fill, h, offText, pill } from "./dom.js";
import { ago, clock, count, duration, moment, plural, relative, size } from "./format.js";
import { head, poll } from "./section.js";

// What the kinds of holders are called.
const KINDS = {
  database: "database file", snapshot: "snapshot", copy: "copy or backup under way", slave: "follower", away: "follower that has gone",
  hold: "hold of an operator",
};

export function log(root) {
  root.append(head("Update log", "Every update, in the order in which it was made."));
  return poll(root, "log", (box, first) => {
    const cards = new Map();
    if (first.off) box.append(h("section", { class: "card" }, offText(first.off)));
    return (answer) => {
      for (const l of answer.logs) {
        if (!cards.has(l.dir)) cards.set(l.dir, new LogCard(box, l));
        cards.get(l.dir).update(l);
      }
    };
  });
}

class LogCard {
  constructor(box, l) {
    this.facts = h("div");
    this.table = new Table("Segments", [
      { name: "File", cell: (s) => h("span", { class: "mono" }, s.path.slice(s.path.lastIndexOf("/") + 1)) },
      { name: "Size", number: true, cell: (s) => size(s.bytes) },
      { name: "Newest update", cell: (s) => (s.last ? moment(s.last) : "none") },
      { name: "Age", number: true, cell: (s) => (s.last ? relative(s.last) : "–") },
      { name: "Time stamp", number: true, mono: true, cell: (s) => (s.last ? s.stamp : "–") },
    ], { key: (s) => s.path, empty: "There are no segments yet." });
    this.holds = new Table("Who needs segments", [
      { name: "Who", long: true, cell: (o) => o.what },
      { name: "Kind", cell: (o) => KINDS[o.kind] || o.kind },
      { name: "Keeps", number: true, cell: (o) => (o.files ? `${size(o.bytes)} in ${plural(o.files, "segment")}` : "nothing old") },
      { name: "Since", nowrap: true, cell: (o) => moment(o.since) },
      { name: "Ends", cell: (o) => (o.until ? moment(o.until) : "–") },
      { name: "Needs what is newer than", number: true, mono: true, cell: (o) => o.stamp },
    ], { key: (o) => `${o.what} ${o.since}`, empty: "Nobody needs a segment." });
    const card = h("section", { class: "card", "aria-label": l.dir }, h("div", { class: "card-head" }, h("h2", { class: "mono wrap" }, l.dir), l.private ? pill("private to one file") : pill("followers can read it", "good")), this.facts, h("br"), this.table.element, h("br"), this.holds.element);
    box.append(card);
  }

  update(l) {
    const now = JSON.stringify([l.bytes, l.last, l.error, l.fsyncs, l.holds, l.overdue, l.removed]);
    if (now !== this.before) {
      this.before = now;
      fill(this.facts, l.error ? h("p", { class: "note", "data-tone": "bad" }, "Nothing is acknowledged any more: ", l.error) : null, facts([
        ["Size", `${size(l.bytes)} in ${plural(l.segments.length, "segment")}`],
        ["Newest update", ago(l.last)],
        ["Segments are needed for", l.holds.map((o) => `${o.what} (${size(o.bytes)})`).join(", ") || "nobody"],
        ["Beyond the limits, and needed", l.overdue ? size(l.overdue) : "nothing"],
        ["Removed since the start", plural(l.removed, "segment")],
        ["Written to the disk", l.fsyncs ? `${count(l.fsyncs)} times, ${duration(l.fsync)} each on average` : "not yet"]]));
    }
    this.table.update(l.segments);
    this.holds.update(l.holds);
  }
}

export function slow(root) {
  root.append(head("Slow requests", "From the arrival of a request to when its reply may leave."));
  return poll(root, "slow", (box, first) => {
    if (first.off) {
      box.append(h("section", { class: "card" }, offText(first.off)));
      return null;
    }
    const intro = h("p", { class: "muted" });
    const table = new Table("Slow requests", [
      { name: "Request", cell: (o) => `${o.protocol} ${o.command}` },
      { name: "Took", number: true, cell: (o) => duration(o.seconds) },
      { name: "Of it, the log", number: true, cell: (o) => duration(o.wait) },
      { name: "When", nowrap: true, cell: (o) => clock(o.time) },
      { name: "Database", cell: (o) => o.database || "–" },
      { name: "Key", mono: true, cell: (o) => o.key || "–" },
      { name: "In", number: true, cell: (o) => (o.in ? size(o.in) : "–") },
      { name: "Out", number: true, cell: (o) => (o.out ? size(o.out) : "–") },
      { name: "Client", mono: true, cell: (o) => o.peer },
      { name: "Result", cell: (o) => (o.failed ? "failed" : "done") + (o.batch > 1 ? `, one of ${o.batch}` : "") },
    ], { key: (o) => o.n, empty: "No request has taken that long." });
    box.append(h("section", { class: "card", "aria-label": "Slow requests" }, intro, h("br"), table.element));
    return (a) => {
      const text = `${count(a.seen)} took longer than ${duration(a.threshold)} since the start. The latest ${a.operations.length === 100 ? "100" : ""} are shown, newest first.`.replace("  ", " ");
      if (intro.textContent !== text) intro.textContent = text;
      a.operations.forEach((o, i) => (o.n = a.seen - i));
      table.update(a.operations);
    };
  });
}
