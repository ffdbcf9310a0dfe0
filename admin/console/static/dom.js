// Elements are made here, and never from text with tags: what comes from a database stays text.

const svgNames = new Set(["svg", "path", "line", "text", "circle", "g", "rect"]);

/** Makes an element. Attributes that begin with "on" are listeners, "class" and others are set, false and null are left out. */
export function h(name, attrs, ...children) {
  const e = svgNames.has(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attrs ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else if (key === "value" && "value" in e) e.value = value;
    else e.setAttribute(key, value === true ? "" : value);
  }
  add(e, children);
  return e;
}

function add(e, children) {
  for (const c of children.flat(Infinity)) {
    if (c !== null && c !== undefined && c !== false) e.append(c);
  }
}

/** Puts other children into an element. */
export function fill(e, ...children) {
  const fresh = document.createDocumentFragment();
  add(fresh, children);
  e.replaceChildren(fresh);
  return e;
}

/** Changes text only where it differs, so that a selection in it stays. */
export function setText(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

/** A text in which `-option VALUE` pieces stand out. */
export function options(text) {
  return text.split(/((?<=^|[\s(])-[a-z][a-z-]+(?: [A-Z]+\b| \d+m?s?\b)?)/).map((part, i) => (i % 2 ? h("code", null, part) : part));
}

/** What says that something is off, and how to switch it on. */
export function offText(text) {
  return h("p", { class: "off" }, options(text));
}

export function pill(text, tone) {
  return h("span", { class: "pill", "data-tone": tone ?? "quiet" }, text);
}

/** A list of names and values. */
export function facts(rows) {
  return h("dl", { class: "facts" }, rows.map(([name, value]) => [h("dt", null, name), h("dd", null, value)]));
}

/**
 * A table whose rows are kept while they are updated. A column has name, cell (row → text or nodes) and optionally: number, nowrap, fit,
 * mono, long (a text such as a path, which may be broken anywhere to leave the other columns their words), hide (no heading).
 */
export class Table {
  constructor(caption, columns, { key, empty, classes = "" }) {
    this.columns = columns;
    this.key = key;
    this.rows = new Map();
    this.body = h("tbody");
    this.table = h("table", { class: "cards " + classes },
      h("caption", { class: "hidden-text" }, caption),
      h("thead", null, h("tr", null, columns.map((c) => h("th", { scope: "col", class: classesOf({ ...c, mono: false, long: false }) },
        c.hide ? h("span", { class: "hidden-text" }, c.name) : c.name)))),
      this.body);
    this.emptyNote = h("p", { class: "empty", hidden: true }, empty);
    this.scroll = h("div", { class: "scroll" }, this.table);
    this.element = h("div", null, this.scroll, this.emptyNote);
  }

  /** Shows these rows. */
  update(rows) {
    const before = this.rows;
    this.rows = new Map();
    const order = [];
    for (const row of rows) {
      const key = String(this.key(row));
      const old = before.get(key);
      const entry = old ?? { tr: h("tr", null, this.columns.map((c) => h("td", { class: classesOf(c), "data-label": c.hide ? "" : c.name }))), shown: [] };
      this.columns.forEach((c, i) => {
        const value = c.cell(row, entry.tr.children[i]);
        if (value === undefined || (typeof value === "string" && entry.shown[i] === value)) return;
        const shown = entry.tr.children[i].firstChild;
        if (value instanceof Node && shown && (shown === value || (!shown.nextSibling && shown.isEqualNode(value)))) return; // keep the focus
        entry.shown[i] = value;
        fill(entry.tr.children[i], value);
      });
      entry.row = row;
      this.rows.set(key, entry);
      order.push(entry.tr);
    }
    if (order.length !== this.body.children.length || order.some((tr, i) => tr !== this.body.children[i])) {
      const focused = document.activeElement;
      this.body.replaceChildren(...order);
      if (focused && this.body.contains(focused)) focused.focus({ preventScroll: true });
    }
    this.scroll.hidden = rows.length === 0;
    this.emptyNote.hidden = rows.length > 0;
  }
}

function classesOf(c) {
  return [c.number && "number", c.nowrap && "nowrap", c.fit && "fit", c.mono && "mono", c.long && "long"].filter(Boolean).join(" ") || null;
}

let radios = 0;

/** A row of choices of which one holds. */
export function choice(label, choices, chosen, changed) {
  const name = "choice" + ++radios;
  return h("fieldset", { class: "choice", role: "radiogroup", "aria-label": label }, choices.map(([value, text]) =>
    h("label", null, h("input", { type: "radio", name, value, checked: value === chosen, onchange: () => changed(value) }), text)));
}

/** A short message that goes away by itself. */
export function notice(text, tone) {
  const p = h("p", { "data-tone": tone ?? null }, text);
  const box = document.getElementById("notices");
  box.append(p);
  setTimeout(() => p.remove(), tone === "bad" ? 9000 : 4500);
}

/** Opens a dialog that is removed when it is closed. */
export function openDialog(title, build) {
  const id = "dialog-title";
  const dialog = h("dialog", { "aria-labelledby": id });
  const back = document.activeElement;
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (back && back.isConnected) back.focus();
  });
  dialog.append(h("h2", { id }, title));
  add(dialog, [build(dialog)]);
  document.body.append(dialog);
  dialog.showModal();
  dialog.querySelector("[data-first]")?.focus();
  return dialog;
}

/** Asks whether something shall be done, and does it. The button that does nothing has the focus. */
export function confirmThen(title, text, verb, act) {
  openDialog(title, (dialog) => {
    const problem = h("p", { class: "note", "data-tone": "bad", role: "alert", hidden: true });
    const go = h("button", { type: "button", class: "danger primary", onclick: async () => {
      go.disabled = true;
      try {
        await act();
        dialog.close();
      } catch (e) {
        problem.textContent = e.message;
        problem.hidden = false;
        go.disabled = false;
      }
    } }, verb);
    return h("form", { onsubmit: (e) => e.preventDefault() }, h("div", null, text), problem,
      h("div", { class: "actions end" }, h("button", { type: "button", "data-first": true, onclick: () => dialog.close() }, "Cancel"), go));
  });
}
