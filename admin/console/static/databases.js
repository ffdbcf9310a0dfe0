// The databases of the server.
import { Table, h, pill } from "./dom.js";
import { count, size } from "./format.js";
import { changing, fixedNote, head, poll, taskText } from "./section.js";
import { post } from "./server.js";

export function databases(root) {
  const all = changing("Checkpoint all", {}, async () => {
    await post("checkpoint");
    end.now();
  });
  root.append(head("Databases", "Choose one to look at its records.", all), fixedNote());
  const end = poll(root, "databases", (box) => {
    const table = new Table("Databases", [
      { name: "Name", long: true, cell: (d) => h("a", { href: `#/databases/${d.index}` }, h("b", null, d.name || d.path)) },
      { name: "No.", number: true, cell: (d) => (d.services ? "services" : String(d.index)) },
      { name: "Kind", cell: (d) => d.kind },
      { name: "Records", number: true, cell: (d) => (d.records < 0 ? "not counted" : count(d.records)) },
      { name: "Size", number: true, cell: (d) => size(d.bytes) },
      { name: "Not\u00a0in the\u00a0file\u00a0yet", number: true, cell: (d) => (d.file ? size(d.file.overlay) : "–") },
      { name: "Expired", number: true, cell: (d) => count(d.expired) },
      { name: "Evicted", number: true, cell: (d) => count(d.evicted) },
      { name: "State", cell: state },
    ], { key: (d) => d.index, empty: "There are no databases." });
    box.append(h("section", { class: "card", "aria-label": "Databases" }, table.element));
    const note = h("p", { class: "muted", role: "status" });
    box.append(note);
    return (answer) => {
      table.update(answer.databases);
      const text = answer.checkpointAll ? "Checkpoint of all databases: " + taskText(answer.checkpointAll) + "." : "";
      if (note.textContent !== text) note.textContent = text;
    };
  });
  return end;
}

function state(d) {
  if (d.file?.error) return h("div", null, pill("checkpoint failing", "bad"), h("p", { class: "bad" }, d.file.error));
  if (d.passedOver) return h("div", null, pill("lacks updates", "bad"), h("p", { class: "bad" }, d.passedOver));
  if (d.checkpoint?.running) return pill("checkpoint under way", "warn");
  return d.readOnly ? pill("read-only here") : pill(d.onDisk ? "on disk" : "in memory", "good");
}
