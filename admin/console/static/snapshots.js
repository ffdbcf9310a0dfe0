// Snapshots that the server keeps, copies to take away, and checkpoints.
import { Table, facts, fill, h, notice, offText } from "./dom.js";
import { ago, count, duration, moment, plural, relative, size } from "./format.js";
import { changing, fixedNote, head, poll, taskText } from "./section.js";
import { get, live, post } from "./server.js";

export function snapshots(root) {
  root.append(head("Snapshots and backups"), fixedNote());
  const left = h("div"), right = h("div");
  root.append(left, right);
  const ends = [poll(left, "snapshots", buildSnapshots), poll(right, "databases", buildBackups)];
  return () => ends.forEach((end) => end());
}

function buildSnapshots(box, first) {
  if (first.off) {
    box.append(h("section", { class: "card" }, h("h2", null, "Snapshots"), offText(first.off)));
    return null;
  }
  const about = h("div"), note = h("p", { class: "muted", role: "status" });
  let was = first.task?.running;
  const take = changing("Take a snapshot now", { class: "primary", id: "take-snapshot" }, async () => {
    await post("snapshots");
    was = true;
    show(await get("snapshots"));
  });
  const table = new Table("Snapshot files", [
    { name: "File", cell: (f) => h("span", { class: "mono" }, f.path.slice(f.path.lastIndexOf("/") + 1)) },
    { name: "Database", long: true, cell: (f) => (f.name ? `${f.database}: ${f.name}` : `${f.database}`) },
    { name: "Records", number: true, cell: (f) => (f.error ? "–" : count(f.records)) },
    { name: "Size", number: true, cell: (f) => size(f.bytes) },
    { name: "State of", cell: (f) => (f.error ? h("span", { class: "bad" }, f.error) : moment(f.time)) },
    { name: "Age", number: true, cell: (f) => (f.error ? "–" : relative(f.time)) },
  ], { key: (f) => f.path, empty: "No snapshot has been taken yet." });
  box.append(h("section", { class: "card", "aria-label": "Snapshots" }, h("div", { class: "card-head" }, h("h2", null, "Snapshots"), h("div", { class: "actions" }, note, take)), about, h("br"), table.element));
  let before = "";
  const show = (answer) => {
    const { state, task } = answer;
    if (was && task && !task.running) notice(task.error ? "The snapshot has failed: " + task.error : "The snapshot is taken.", task.error ? "bad" : null);
    was = task?.running;
    const text = task?.running ? "Snapshots are being taken." : task?.error ? "The last one from here " + taskText(task) : "";
    if (note.textContent !== text) note.textContent = text;
    const now = JSON.stringify([state.dir, state.every, state.rounds, state.failures, state.seconds]);
    if (now !== before) {
      before = now;
      fill(about, facts([
        ["Directory", h("span", { class: "mono" }, state.dir)],
        ["Taken", state.every ? `every ${duration(state.every)}, and when the server ends` : "when the server ends"],
        ["Compressed with", state.compressor],
        ["Since the start", state.rounds ? `${plural(state.rounds, "time")}, the last in ${duration(state.seconds)}${state.failures ? `; ${plural(state.failures, "failure")}` : ""}` : "not yet"]]));
    }
    table.update(state.files);
  };
  return show;
}

function buildBackups(box) {
  const all = changing("Checkpoint all", {}, () => post("checkpoint"));
  const table = new Table("Databases", [
    { name: "Database", long: true, cell: (d) => d.name || d.path },
    { name: "Records", number: true, cell: (d) => (d.records < 0 ? "not counted" : count(d.records)) },
    { name: "Size", number: true, cell: (d) => size(d.bytes) },
    { name: "Not\u00a0in the\u00a0file\u00a0yet", number: true, cell: (d) => (d.file ? size(d.file.overlay) : "–") },
    { name: "Checkpoints", number: true, cell: (d) => (d.file ? count(d.file.checkpoints) : "–") },
    { name: "Last from here", cell: (d) => (d.checkpoint ? taskText(d.checkpoint) + (d.checkpoint.ended ? ", " + ago(Date.parse(d.checkpoint.ended)).split(", ")[1] : "") : "–") },
    { name: "Actions", hide: true, cell: (d, td) => (td.firstChild ? undefined : actions(d)) },
  ], { key: (d) => d.index, empty: "There are no databases." });
  box.append(h("br"), h("section", { class: "card", "aria-label": "Backups and checkpoints" }, h("div", { class: "card-head" }, h("h2", null, "Backups and checkpoints"), h("div", { class: "actions" }, all)),
    h("p", { class: "muted" }, "A backup is a consistent copy of one moment, as a snapshot file; clients go on meanwhile. A checkpoint moves updates from memory and log into the file, down to the disk."), h("br"), table.element));
  return (answer) => table.update(answer.databases);
}

function actions(d) {
  const download = h("a", { class: "button", href: `/api/databases/${d.index}/backup`, download: "", "aria-label": `Download a backup of ${d.name || d.path}` }, "Download backup");
  download.addEventListener("click", (e) => {
    if (!live.fixed) return;
    e.preventDefault();
    notice(live.fixed, "bad");
  });
  return h("div", { class: "actions end" }, d.onDisk ? changing("Checkpoint", { "aria-label": `Checkpoint of ${d.name || d.path}` }, () => post(`databases/${d.index}/checkpoint`)) : null, download);
}
