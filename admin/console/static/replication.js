// Who follows whom, and how far behind.
import { fill, h, offText, pill } from "./dom.js";
import { ago, count, duration, moment, plural } from "./format.js";
import { head, poll } from "./section.js";

export function replication(root) {
  root.append(head("Replication", "Updates flow along the arrows."));
  return poll(root, "replication", (box) => {
    const picture = h("div", { class: "topology" });
    const more = h("section", { class: "card", "aria-label": "About the master" });
    box.append(h("section", { class: "card", "aria-label": "Picture" }, picture), more);
    let before = "";
    return (a) => {
      const now = JSON.stringify(a) + Math.floor(Date.now() / 1000);
      if (now === before) return;
      before = now;
      draw(picture, a);
      about(more, a);
    };
  });
}

function draw(picture, a) {
  const m = a.master, following = Boolean(m?.following);
  const self = h("div", { class: "node self" }, h("span", { class: "role" }, "this server"), h("b", null, a.identity.host), h("span", { class: "mono muted" }, a.identity.address),
    h("span", { class: "muted" }, a.identity.serverId >= 0 ? `server ID ${a.identity.serverId}` : "no server ID"));
  const master = following
    ? h("div", { class: "node" }, h("span", { class: "role" }, "master"), h("b", { class: "mono" }, m.address), m.state ? pill(m.state, tone(m.seconds, m.state)) : null,
      m.contact ? h("span", { class: "muted" }, "heard of ", ago(m.contact).split(", ")[1]) : null)
    : h("div", { class: "node none" }, h("span", { class: "role" }, "master"), h("span", { class: "muted" }, "none"));
  const list = a.replicas ?? [];
  const followers = list.length
    ? h("div", { class: "stack" }, list.map((r) => h("div", { class: "node" }, h("span", { class: "role" }, "follower"), h("b", { class: "mono" }, r.peer), h("span", { class: "muted" }, "server ID ", r.serverId),
      pill([r.state, lag(r)].filter(Boolean).join(", ") || "connected", tone(r.seconds, r.state)))))
    : h("div", { class: "node none" }, h("span", { class: "role" }, "followers"), h("span", { class: "muted" }, a.replicas ? "none just now" : a.replicasOff && a.replicasOff.startsWith("Nobody") ? "none" : "not known"));
  const slowest = list.reduce((n, r) => Math.max(n, r.seconds ?? 0), 0);
  fill(picture, master, arrow(following ? tone(m.seconds, m.state) : "none", following ? lag(m) || "lag not known" : ""), self,
    arrow(list.length ? tone(slowest, "") : "none", list.length ? plural(list.length, "follower") : ""), followers);
}

function arrow(t, text) {
  return h("div", { class: "arrow", "data-tone": t }, h("svg", { viewBox: "0 0 80 14", preserveAspectRatio: "none", "aria-hidden": "true" },
    h("line", { x1: 2, y1: 7, x2: 77, y2: 7 }), h("path", { d: "M71 2l7 5l-7 5" })), h("span", null, text));
}

const lag = (r) => (r.seconds === null ? "" : (r.seconds < 0.01 ? "up to date" : duration(r.seconds) + " behind") + (r.records ? `, ${count(r.records)} updates` : ""));

function tone(seconds, state) {
  if (/gap|stalled|connecting/i.test(state ?? "")) return "bad";
  return seconds === null || seconds === undefined ? "quiet" : seconds > 10 ? "warn" : "good";
}

function about(box, a) {
  const m = a.master;
  const rows = [];
  if (m) {
    rows.push(["Follows", m.following ? m.address : "no master just now"]);
    if (m.following) {
      rows.push(["State", m.state || "not known"]);
      if (m.trouble) rows.push(["Trouble", h("span", { class: "bad" }, m.trouble)]);
      if (m.copy) rows.push(["Copy", m.copy]);
      rows.push(["Behind", m.seconds === null ? "not known" : lag(m)]);
      rows.push(["Has everything up to", m.position > 0 ? moment(m.position) : "nothing yet"]);
      rows.push(["Last heard of", ago(m.contact)]);
    }
    if (m.applied) rows.push(["Applied since the start", `${count(m.applied.Updates)} updates; ${count(m.applied.Dropped)} had come on another way`]);
  }
  fill(box, h("h2", null, "Details"), rows.length ? h("dl", { class: "facts" }, rows.map(([n, v]) => [h("dt", null, n), h("dd", null, v)])) : null,
    h("div", { class: "stack" }, a.masterOff ? offText(a.masterOff) : null, a.replicasOff ? offText(a.replicasOff) : null,
      a.replicas?.length === 0 ? h("p", { class: "muted" }, "No server follows this one just now.") : null));
}
