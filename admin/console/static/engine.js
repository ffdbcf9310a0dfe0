// The engine that this server shares with others: whether it answers, what an answer is worth, and what is under way.
import { facts, fill, h, offText, pill, setText } from "./dom.js";
import { count, duration, short, size } from "./format.js";
import { head, poll } from "./section.js";

export function engine(root) {
  root.append(head("Engine", "The PostgreSQL that keeps the records, and that other servers use as well."));
  return poll(root, "engine", (box, first) => {
    if (first.off) {
      box.append(h("section", { class: "card" }, offText(first.off)));
      return null;
    }
    return build(box);
  });
}

function build(box) {
  const card = (title, ...content) => h("section", { class: "card", "aria-label": title }, h("div", { class: "card-head" }, h("h2", null, title)), content);
  const figures = {};
  const figure = (key, name) => h("div", null, h("dt", null, name), (figures[key] = h("dd", null, "–")));
  const about = h("div"), work = h("div"), trouble = h("div");
  box.append(h("dl", { class: "stats" }, figure("state", "State"), figure("groups", "Groups"), figure("operations", "Operations per group"), figure("write", "Write of a group"),
    figure("read", "Read of a group's keys"), figure("wait", "Wait for a turn"), figure("queue", "Queue")),
  h("div", { class: "grid" }, card("Engine", about), card("Work", work), card("What went wrong", trouble)));
  let last = null, before = "";
  return ({ state: s }) => {
    // The figures are those of the time between two looks.
    const passed = last && s.now > last.now ? (s.now - last.now) / 1000 : 0;
    const mean = (name, show) => {
      const n = last ? s[name].count - last[name].count : 0;
      return n > 0 ? show((s[name].sum - last[name].sum) / n) : "–";
    };
    const rate = (name) => (passed ? short((s[name].count - last[name].count) / passed) + "/s" : "–");
    fill(figures.state, pill(s.up ? "answers" : "away", s.up ? "good" : "bad"));
    setText(figures.groups, rate("groups"));
    setText(figures.operations, mean("groups", (n) => n.toFixed(1)));
    setText(figures.write, mean("write", duration));
    setText(figures.read, mean("read", duration));
    setText(figures.wait, mean("wait", duration));
    setText(figures.queue, count(s.queue));
    const rows = [described(s), [
      ["Operations that wait or are under way", `${count(s.queue)} of ${count(s.queueLimit)}, ${size(s.queueBytes)}`],
      ["Requests of reads", rate("keys")],
      ["Keys of a request", mean("keys", (n) => n.toFixed(1))],
      ["Groups since the start", count(s.groups.count)],
      ["Operations in them", count(s.groups.sum)],
    ], [
      ["Operations that another server was faster than", count(s.lost)],
      ["Groups whose keys were locked for that", count(s.held)],
      ["Groups tried again after a failed call", count(s.undone)],
      ["Groups without an answer", count(s.unknown)],
      ["Of them, settled since", count(s.settled)],
      ["Refused, as busy or while the engine was away", count(s.refused)],
    ]];
    last = s;
    const now = JSON.stringify(rows);
    if (now === before) return;
    before = now;
    [about, work, trouble].forEach((at, i) => fill(at, facts(rows[i])));
  };
}

function described(s) {
  const rows = [["Address", s.name]], in_ = s.inside;
  if (in_) {
    rows.push(["Version", "PostgreSQL " + in_.version], ["Durability", in_.durability + (in_.weak ? " – weak" : "")], ["Log of updates", size(in_.logBytes)],
      ["Oldest update in it", in_.logAge === null ? "it has none" : duration(in_.logAge) + " ago"], ["Dead versions of records", count(in_.deadTuples)],
      ["Oldest transaction", in_.oldestTransaction > 0 ? duration(in_.oldestTransaction) : "none is open"], ["Slowest standby behind", in_.replicaLag === null ? "no standby, or not to be seen" : duration(in_.replicaLag)]);
  } else {
    rows.push(["What it says of itself", s.up ? "it has not answered within a second" : "it does not answer"]);
  }
  rows.push(["Connections of this server", count(s.connections)]);
  return rows;
}
