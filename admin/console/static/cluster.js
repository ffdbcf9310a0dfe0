// The members of the cluster, which of them is the primary, and what an operator can do about it.
import { Table, confirmThen, facts, fill, h, notice, offText, pill, setText } from "./dom.js";
import { ago, count, duration, plural, relative } from "./format.js";
import { changing, fixedNote, head, poll, taskText } from "./section.js";
import { live, post } from "./server.js";

// What the roles of members are called, and how well they bode.
const ROLES = {
  leading: ["primary", "good"], following: ["follows", "good"], witness: ["witness", "quiet"], opening: ["becomes the primary", "warn"],
  draining: ["hands over", "warn"], waiting: ["waits", "bad"],
};

export function cluster(root) {
  root.append(head("Cluster", "The members elect one of them the primary."), fixedNote());
  const end = poll(root, "cluster", (box, first) => {
    if (first.off) {
      box.append(h("section", { class: "card" }, offText(first.off)));
      return null;
    }
    return build(box, first, () => end.now());
  });
  return end;
}

function build(box, first, again) {
  let was = first.task?.running, latest = first.state, before = "";
  const order = async (o) => {
    await post("cluster", o);
    was = true;
    again();
  };
  const trouble = h("p", { class: "note", id: "cluster-trouble", "data-tone": "bad", role: "alert", hidden: true });
  const note = h("p", { class: "muted", role: "status" });
  const about = h("div"), kept = h("p", { class: "muted", hidden: true },
    "What a member has put aside was never answered to a client, and nothing of it is merged: ", h("code", null, "ktutilmgr ulog DIRECTORY"),
    " shows it on the member's machine. Remove the directory when nobody needs it any more.");
  const require = changing("Change the number of followers", {}, () => ask(latest, order));
  const table = new Table("Members", [
    { name: "Member", nowrap: true, cell: (m) => h("div", null, h("b", { class: "mono" }, m.address), m.address === latest.self ? h("p", { class: "muted" }, "this server") : null) },
    { name: "Role", nowrap: true, cell: role },
    { name: "Term", number: true, cell: (m) => (m.answers && m.term ? count(m.term) : "–") },
    { name: "Since", nowrap: true, cell: (m) => (m.answers ? relative(m.since) : "–") },
    { name: "Behind", number: true, cell: (m) => (m.seconds === null ? "–" : m.seconds < 0.01 ? "up to date" : duration(m.seconds)) },
    { name: "Server ID", number: true, cell: (m) => (m.witness || !m.serverId ? "–" : String(m.serverId)) },
    { name: "What is wrong", cell: (m) => wrong(m, latest) },
    { name: "Put aside", cell: (m) => (m.asides.length ? h("div", { class: "stack" }, m.asides.map((a) => h("div", { class: "warn" }, h("span", { class: "mono wrap" }, a.dir), a.updates ? ", " + plural(a.updates, "update") : ""))) : "nothing") },
    { name: "Actions", hide: true, cell: (m, td) => actions(m, td, order) },
  ], { key: (m) => m.address, empty: "This server is no member of the cluster yet." });
  box.append(trouble,
    h("section", { class: "card", "aria-label": "Members" }, h("div", { class: "card-head" }, h("h2", null, "Members"), h("div", { class: "actions" }, note)), table.element, kept),
    h("section", { class: "card", "aria-label": "Agreement" }, h("div", { class: "card-head" }, h("h2", null, "Agreement"), h("div", { class: "actions" }, require)), about));
  return ({ state, task }) => {
    latest = state;
    if (was && task && !task.running) notice(task.error ? "The order was not carried out: " + task.error : "The order is carried out.", task.error ? "bad" : null);
    was = task?.running;
    setText(note, task?.running ? "An order is being carried out." : task?.error ? "The last order from here " + taskText(task) : "");
    const known = state.trouble && live.about?.alarms.some((a) => a.text === state.trouble); // the banner says it
    const text = known ? "" : state.trouble || (state.primary ? "" : "No member that answers is the primary just now");
    trouble.hidden = !text;
    setText(trouble, text && text + ".");
    table.update(state.members);
    kept.hidden = !state.members.some((m) => m.asides.length);
    const rows = agreed(state);
    const now = JSON.stringify(rows);
    if (now !== before) {
      before = now;
      fill(about, facts(rows));
    }
  };
}

function agreed(s) {
  return [
    ["Cluster", s.name],
    ["Primary", s.primary || "none just now"],
    ["Term", count(s.term)],
    ["The vote is held by", s.vote],
    ["Each update needs", s.required ? `${plural(s.required, "follower")} of ${count(s.followers)}` : "no follower: the primary alone has it when it is answered"],
    ...(s.present === null ? [] : [["Followers that are there", count(s.present)], ["Answers that wait for them", count(s.waiting)]]),
    [s.changes ? "Latest appointment of a primary" : "No other primary since", ago(s.changed)],
    ["Appointments since this server's start", count(s.changes)],
  ];
}

function role(m) {
  if (!m.answers) return pill("no answer", "bad");
  const [text, tone] = ROLES[m.role] ?? [m.role, "quiet"];
  return pill(m.joining ? text + ", no vote yet" : text, tone === "good" && (m.missing || m.joining || m.seconds > 10) ? "warn" : tone);
}

function wrong(m, s) {
  if (!m.answers) return h("span", { class: "bad" }, "it does not answer this server");
  const all = [m.missing && "its data are not complete: " + m.missing, m.trouble,
    s.primary && m.follows && m.follows !== s.primary && m.role !== "leading" && `takes ${m.follows} for the primary`].filter(Boolean);
  return all.length ? h("span", { class: "bad" }, all.join("; ")) : "–";
}

// The buttons of a member stay as they are while the same can be done with it.
function actions(m, td, order) {
  const leads = ["leading", "opening", "draining"].includes(m.role);
  const can = [m.role === "following" && !m.joining && "switch", !leads && "remove"].filter(Boolean).join(" ");
  if (td.dataset.can === can) return undefined;
  td.dataset.can = can;
  return h("div", { class: "actions end" },
    can.includes("switch") ? changing("Make primary", { "aria-label": `Make ${m.address} the primary` }, () => confirmThen("Switch over?",
      h("p", null, h("b", { class: "mono" }, m.address), " becomes the primary when it has everything. Clients of the present one are disconnected, and wait for some hundredths of a second; nothing is lost."),
      "Switch over", () => order({ do: "switchover", name: m.address }))) : null,
    can.includes("remove") ? changing("Remove", { class: "danger", "aria-label": `Remove ${m.address} from the cluster` }, () => confirmThen("Remove this member?",
      h("p", null, h("b", { class: "mono" }, m.address), " has no vote any more, its copy counts no more, and it follows nobody. To be a member again it needs empty directories and ", h("code", null, "ktremotemgr cluster add"), "."),
      "Remove member", () => order({ do: "remove", name: m.address }))) : null);
}

function ask(s, order) {
  const number = h("input", { type: "number", min: 0, max: s.followers, step: 1, required: true, value: String(s.required) });
  confirmThen("How many followers must have an update?", h("div", { class: "stack" },
    h("p", null, "The primary answers an update when so many others have it. More of them is safer, fewer goes on longer when members fail. With 0, an update is answered when the primary alone has it, and lost with its disk."),
    h("label", { class: "field" }, h("span", null, `Followers, 0 to ${s.followers}`), number)),
  "Change", async () => {
    if (!number.reportValidity()) throw new Error(`Give a number from 0 to ${s.followers}.`);
    await order({ do: "require", number: number.valueAsNumber });
  });
}
