// The server itself: program, machine, what is on, and the configuration.
import { Table, facts as list, fill, h, offText } from "./dom.js";
import { head, poll } from "./section.js";

export function facts(root) {
  root.append(head("Server"));
  return poll(root, "facts", (box, first) => {
    const grid = h("div", { class: "grid thirds" });
    box.append(grid);
    const card = h("section", { class: "card", "aria-label": "Configuration" }, h("h2", null, "Configuration in effect"));
    box.append(card);
    let wanted = "", latest = [];
    const sourced = first.settings.some((s) => s.source);
    const table = new Table("Configuration", [
      { name: "Option", mono: true, nowrap: true, cell: (s) => "-" + s.name },
      { name: "Value", long: true, cell: (s) => (s.secret ? "not shown" : s.value === "" ? "–" : h("span", { class: "mono" }, s.value)) },
      ...(sourced ? [{ name: "From", long: true, cell: (s) => s.source ?? "" }, { name: "Without a restart", cell: (s) => (s.reload ? "can change" : "") }] : []),
    ], { key: (s) => s.name, empty: "No option is called like that." });
    const show = () => table.update(latest.filter((s) => (s.name + " " + s.value).toLowerCase().includes(wanted)));
    if (first.settings.length) {
      const search = h("input", { type: "search", "data-search": true, autocomplete: "off", oninput: () => { wanted = search.value.toLowerCase(); show(); } });
      card.append(h("form", { class: "filter", onsubmit: (e) => e.preventDefault() }, h("label", { class: "field grow" }, h("span", null, "Options with"), search)), table.element);
    } else {
      card.append(offText(first.settingsOff || "Nothing is known about the configuration."));
    }
    let before = "";
    return (a) => {
      const now = JSON.stringify(a.sections);
      if (now !== before) {
        before = now;
        fill(grid, a.sections.map((s) => h("section", { class: "card", "aria-label": s.title }, h("h2", null, s.title),
          list(s.rows.map((r) => [r.name, r.off ? h("span", { class: "off" }, "off; ", h("code", null, r.off)) : r.value])))));
      }
      latest = a.settings;
      show();
    };
  }, 5000);
}
