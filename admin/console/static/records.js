// The records of one database: pages of keys, and one record at a time.
import { Table, choice, confirmThen, fill, h, notice, openDialog } from "./dom.js";
import { decode, dump, encode, escape, fromHex, fromText, inline, json, text, toHex, unescape } from "./bytes.js";
import { count, moment, plural, relative, size } from "./format.js";
import { changing, fixedNote } from "./section.js";
import { get, post, remove } from "./server.js";

const pageSize = 50;
const lineBytes = 80; // of a value, in the list
const maxLooks = 25; // pages of 20,000 records in a row that have nothing to show

export function records(root, index, params) {
  const browser = new Browser(root, index, params);
  browser.begin();
  return () => browser.close();
}

class Browser {
  constructor(root, index, params) {
    this.root = root;
    this.path = `databases/${encodeURIComponent(index)}`;
    this.prefix = params.get("prefix") ?? "";
    this.starts = [null]; // where each page up to this one begins
    this.turn = 0; // of asking; answers of earlier ones are not shown
    this.shown = null; // record in the panel
  }

  async begin() {
    const loading = h("p", { class: "empty", role: "status" }, "Loading.");
    this.root.append(loading);
    while (!this.db && !this.missing && !this.closed) {
      try {
        const { databases } = await get("databases");
        this.db = databases.find((d) => `databases/${d.index}` === this.path);
        this.missing = !this.db;
      } catch (e) {
        fill(loading, e.message, " This page tries again.");
        await new Promise((again) => setTimeout(again, 2000));
      }
    }
    loading.remove();
    if (this.closed) return;
    if (!this.db) {
      this.root.append(h("p", { class: "empty" }, "There is no such database. ", h("a", { href: "#/databases" }, "All databases")));
      return;
    }
    this.build();
    this.load();
    this.clock = setInterval(() => this.tick(), 1000);
  }

  close() {
    this.closed = true;
    this.turn++;
    clearInterval(this.clock);
    this.ended?.();
  }

  build() {
    const d = this.db;
    const add = changing("New record", { class: "primary", "data-new": true }, () => this.edit(null));
    if (d.readOnly) Object.assign(add.dataset, { never: "1", why: d.readOnly }), (add.disabled = true);
    this.search = h("input", { type: "search", id: "prefix", "data-search": true, value: this.prefix, autocomplete: "off", spellcheck: "false", class: "mono",
      oninput: () => {
        clearTimeout(this.typing);
        this.typing = setTimeout(() => this.find(), 250);
      } });
    this.table = new Table("Records", [
      { name: "Key", cell: (r) => (r.button ??= this.keyButton(r)) },
      { name: "Value", long: true, cell: (r) => (r.inline ??= h("span", { class: "preview" }, line(decode(r.value), r.size))) },
      { name: "Size", number: true, cell: (r) => size(r.size) },
      { name: "Expires", nowrap: true, cell: (r) => (r.xt === null ? "never" : relative(r.xt * 1000)) },
    ], { key: (r) => r.key, empty: "", classes: "keys" });
    this.status = h("p", { class: "muted", role: "status" });
    this.problem = h("p", { class: "note", "data-tone": "bad", role: "alert", hidden: true });
    this.previous = h("button", { type: "button", "data-previous": true, disabled: true, onclick: () => this.turnPage(-1) }, "Previous");
    this.next = h("button", { type: "button", "data-next": true, disabled: true, onclick: () => this.turnPage(1) }, "Next");
    this.panel = h("section", { class: "card detail", "aria-label": "Record", tabindex: "-1", hidden: true });
    this.list = h("section", { class: "card", "aria-label": "Records" },
      h("form", { class: "filter", onsubmit: (e) => { e.preventDefault(); this.find(); } },
        h("label", { class: "field grow" }, h("span", null, "Keys that begin with (\\x00 and the like stand for a byte)"), this.search),
        h("button", { type: "button", onclick: () => this.load() }, "Refresh")),
      this.problem, this.table.element, h("div", { class: "pager" }, this.previous, this.next, this.status));
    this.grid = h("div", { class: "browser" }, this.list, this.panel);
    this.root.append(
      h("div", { class: "head" }, h("div", null,
        h("h1", { class: "crumb" }, h("a", { href: "#/databases" }, "Databases"), h("span", { class: "muted", "aria-hidden": "true" }, "/"), h("span", { class: "wrap" }, d.name || d.path)),
        h("p", { class: "muted" }, [d.kind, d.records >= 0 ? plural(d.records, "record") : null, size(d.bytes)].filter(Boolean).join(", "))), h("div", { class: "actions" }, add)),
      fixedNote(), d.readOnly ? h("p", { class: "note" }, "The records cannot be changed here: ", d.readOnly, ".") : "", this.grid);
    this.table.body.addEventListener("keydown", (e) => this.walk(e));
  }

  keyButton(r) {
    return h("button", { type: "button", class: "link", onclick: () => this.open(r.key) }, inline(decode(r.key)));
  }

  walk(e) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (!step) return;
    const buttons = [...this.table.body.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement);
    if (at < 0) return;
    e.preventDefault();
    buttons[at + step]?.focus();
  }

  find() {
    clearTimeout(this.typing);
    if (this.search.value === this.prefix && this.page) return;
    this.prefix = this.search.value;
    this.starts = [null];
    history.replaceState(null, "", `#/${this.path}${this.prefix ? "?prefix=" + encodeURIComponent(this.prefix) : ""}`);
    this.load();
  }

  turnPage(step) {
    if (step > 0) this.starts.push(this.page.next);
    else this.starts.pop();
    this.load();
    this.list.scrollIntoView({ block: "start" });
  }

  // Keys that begin alike may stand far apart: then the server looks at a part of the records at a time.
  async load() {
    const turn = ++this.turn;
    const found = [];
    let after = this.starts.at(-1), examined = 0;
    const prefix = encodeURIComponent(encode(unescape(this.prefix)));
    this.status.textContent = "Loading.";
    try {
      for (let looks = 0; ; looks++) {
        const page = await get(`${this.path}/records?limit=${pageSize - found.length}&prefix=${prefix}` + (after === null ? "" : `&after=${encodeURIComponent(after)}`));
        if (turn !== this.turn) return;
        found.push(...page.records);
        examined += page.examined;
        after = page.next;
        this.page = { records: found, next: after, examined };
        this.show(after !== null && found.length < pageSize && looks < maxLooks);
        if (after === null || found.length >= pageSize || looks >= maxLooks) return;
      }
    } catch (e) {
      if (turn !== this.turn) return;
      this.problem.textContent = e.message;
      this.problem.hidden = false;
      this.status.textContent = "";
    }
  }

  show(looking) {
    const { records, next, examined } = this.page;
    this.problem.hidden = true;
    fill(this.table.emptyNote, looking ? `Looking: ${count(examined)} records so far.` : this.prefix ? "No key begins with this." : "The database has no records.");
    this.table.update(records);
    this.previous.disabled = this.starts.length < 2;
    this.next.disabled = next === null || looking;
    const first = records.length ? `Page ${this.starts.length}, ${plural(records.length, "record")}` : "";
    this.status.textContent = looking && records.length ? `${first}; looked at ${count(examined)} so far` : !looking && examined > records.length * 4 && records.length + 1000 < examined ? `${first || "Nothing"}; looked at ${count(examined)}` : first;
    this.mark();
  }

  mark() {
    for (const [key, { tr }] of this.table.rows) {
      tr.toggleAttribute("data-chosen", key === this.shown?.key);
      const button = tr.querySelector("button");
      if (key === this.shown?.key) button?.setAttribute("aria-current", "true");
      else button?.removeAttribute("aria-current");
    }
  }

  tick() {
    if (this.page) this.table.update(this.page.records);
    if (this.expiry && this.shown?.xt) this.expiry.textContent = expiryText(this.shown.xt);
  }

  async open(key) {
    let r;
    try {
      r = await get(`${this.path}/record?key=${encodeURIComponent(key)}`);
    } catch (e) {
      notice(e.message, "bad");
      this.hide();
      this.load();
      return;
    }
    this.shown = r;
    this.bytes = decode(r.value);
    this.showPanel();
    this.mark();
    this.panel.focus({ preventScroll: true });
    this.panel.scrollIntoView({ block: "nearest" });
  }

  hide() {
    const key = this.shown?.key;
    this.shown = null;
    this.panel.hidden = true;
    this.grid.removeAttribute("data-open");
    this.mark();
    this.table.rows.get(key)?.tr.querySelector("button")?.focus();
  }

  showPanel() {
    const r = this.shown, cut = r.size > this.bytes.length;
    const value = h("div");
    const view = (form) => fill(value, valueView(form, this.bytes, this.panel.clientWidth));
    const form = bestView(this.bytes);
    this.expiry = h("span", null, r.xt === null ? "never" : expiryText(r.xt));
    const changeable = (b) => {
      if (this.db.readOnly) Object.assign(b.dataset, { never: "1", why: this.db.readOnly }), (b.disabled = true);
      return b;
    };
    const edit = changeable(changing("Edit", { "data-edit": true }, () => this.edit(r)));
    if (cut) Object.assign(edit.dataset, { never: "1", why: "The value is too large to be edited here." }), (edit.disabled = true);
    fill(this.panel,
      h("div", { class: "card-head" }, h("h2", null, inline(decode(r.key))), h("button", { type: "button", "data-close": true, "aria-label": "Close the record", onclick: () => this.hide() }, "Close")),
      h("dl", { class: "facts" }, h("dt", null, "Size"), h("dd", null, `${size(r.size)}${r.size >= 1024 ? `, ${count(r.size)} bytes` : ""}`), h("dt", null, "Expires"), h("dd", null, this.expiry)),
      h("div", { class: "pager" }, choice("Show the value as", [["text", "Text"], ["json", "JSON"], ["hex", "Hex"], ["table", "Table"]], form, view)),
      cut ? h("p", { class: "note" }, `Only the first ${size(this.bytes.length)} are shown.`) : null, value,
      h("div", { class: "actions" }, edit, changeable(changing("Delete", { class: "danger", "data-delete": true }, () => this.ask(r))),
        h("a", { class: "button", href: `/api/${this.path}/value?key=${encodeURIComponent(r.key)}`, download: "value.bin" }, "Download value")));
    this.panel.hidden = false;
    this.grid.setAttribute("data-open", "");
    view(form); // which needs to know how wide it is
  }

  ask(r) {
    confirmThen("Delete this record?", [h("p", null, inline(decode(r.key))), h("p", { class: "muted" }, `${size(r.size)} in ${this.db.name || this.db.path}. It cannot be brought back from here.`)], "Delete record", async () => {
      await remove(`${this.path}/record?key=${encodeURIComponent(r.key)}`);
      notice("The record is deleted.");
      this.hide();
      await this.load();
      this.search.focus({ preventScroll: true });
    });
  }

  edit(r) {
    openDialog(r ? "Edit record" : "New record", (dialog) => new Form(this, r, dialog).element);
  }
}

function line(bytes, all) {
  return inline(bytes.subarray(0, lineBytes), all > Math.min(bytes.length, lineBytes));
}

function expiryText(xt) {
  return `${moment(xt * 1000)} (${relative(xt * 1000)})`;
}

function bestView(bytes) {
  const s = text(bytes);
  if (s === null || /[\x00-\x08\x0e-\x1f]/.test(s)) return "hex";
  if (/^\s*[[{]/.test(s) && json(s) !== null) return "json";
  return /^[^\n]*\t/.test(s) ? "table" : "text";
}

function valueView(form, bytes, width) {
  if (bytes.length === 0) return h("p", { class: "empty" }, "The value is empty.");
  if (form === "hex") return h("pre", { class: "value hex", tabindex: "0", role: "region", "aria-label": "Value in hexadecimal" }, dump(bytes.subarray(0, 65536), width > 680 ? 16 : width > 400 ? 8 : 4), bytes.length > 65536 ? "\n…" : "");
  const s = text(bytes) ?? new TextDecoder().decode(bytes);
  if (form === "text") {
    return [text(bytes) === null ? h("p", { class: "note" }, "The value is no UTF-8 text: what cannot be read is shown as \ufffd.") : null,
      h("pre", { class: "value", tabindex: "0", role: "region", "aria-label": "Value as text" }, s)];
  }
  if (form === "json") {
    const pretty = json(s);
    return pretty === null ? h("p", { class: "empty" }, "The value is no JSON.") : h("pre", { class: "value", tabindex: "0", role: "region", "aria-label": "Value as JSON" }, pretty);
  }
  if (!s.includes("\t")) return h("p", { class: "empty" }, "The value has no columns: there is no tab in it.");
  const rows = s.replace(/\n$/, "").split("\n").slice(0, 1000).map((l) => l.split("\t"));
  return h("div", { class: "value", tabindex: "0", role: "region", "aria-label": "Value as a table" }, h("table", null, h("tbody", null, rows.map((row) => h("tr", null, row.map((c) => h("td", null, c)))))));
}

// Form creates a record, or edits one.
class Form {
  constructor(browser, r, dialog) {
    this.browser = browser;
    this.record = r;
    this.dialog = dialog;
    const bytes = r ? browser.bytes : new Uint8Array();
    this.as = text(bytes) === null || /[\x00-\x08\x0e-\x1f]|\r\n?/.test(text(bytes)) ? "hex" : "text";
    this.lasts = r?.xt ? "at" : "never";
    this.key = h("input", { type: "text", class: "mono", value: r ? escape(decode(r.key)) : "", readonly: Boolean(r), autocomplete: "off", spellcheck: "false", "data-first": !r });
    this.value = h("textarea", { spellcheck: "false", "data-first": Boolean(r) });
    this.value.value = this.as === "text" ? text(bytes) : toHex(bytes);
    this.seconds = h("input", { type: "number", min: "1", step: "1", value: "3600", "aria-label": "Seconds until it expires" });
    this.at = h("input", { type: "datetime-local", step: "1", value: r?.xt ? localTime(r.xt) : localTime(Date.now() / 1000 + 86400), "aria-label": "When it expires" });
    this.problem = h("p", { class: "note", "data-tone": "bad", role: "alert", hidden: true });
    this.save = h("button", { type: "submit", class: "primary" }, r ? "Save" : "Create");
    this.when = h("div", { class: "actions" });
    this.showWhen();
    this.element = h("form", { onsubmit: (e) => { e.preventDefault(); this.send(); } },
      h("label", { class: "field" }, h("span", null, r ? "Key" : "Key (\\x00, \\t, \\n and \\\\ stand for a byte)"), this.key),
      h("div", { class: "actions" }, h("span", { class: "legend-text" }, "Value as"), choice("Write the value as", [["text", "Text"], ["hex", "Hex"]], this.as, (as) => this.rewrite(as))),
      h("label", { class: "field" }, h("span", { class: "hidden-text" }, "Value"), this.value),
      browser.db.persistent ? h("p", { class: "muted" }, "Records of this database do not expire.") : h("div", { class: "actions" }, h("span", { class: "legend-text" }, "Expires"),
        choice("Expires", [["never", "Never"], ["in", "In"], ["at", "At"]], this.lasts, (lasts) => { this.lasts = lasts; this.showWhen(); }), this.when),
      this.problem,
      h("div", { class: "actions end" }, h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), this.save));
  }

  showWhen() {
    fill(this.when, { never: [], in: [this.seconds, "seconds"], at: [this.at] }[this.lasts]);
  }

  bytes() {
    if (this.as === "text") return fromText(this.value.value);
    const bytes = fromHex(this.value.value);
    if (bytes === null) throw new Error("The value is not hexadecimal: two digits make a byte, with spaces and lines where you like.");
    return bytes;
  }

  rewrite(as) {
    try {
      const bytes = this.bytes();
      const s = text(bytes);
      if (as === "text" && s === null) throw new Error("The value is no UTF-8 text.");
      this.value.value = as === "text" ? s : toHex(bytes);
      this.as = as;
      this.problem.hidden = true;
    } catch (e) {
      this.tell(e.message);
      this.element.querySelector(`input[value="${this.as}"]`).checked = true;
    }
  }

  tell(message) {
    this.problem.textContent = message;
    this.problem.hidden = false;
  }

  xt() {
    if (this.browser.db.persistent || this.lasts === "never") return null;
    const xt = this.lasts === "in" ? Math.floor(Date.now() / 1000) + Number(this.seconds.value) : Math.floor(new Date(this.at.value).getTime() / 1000);
    if (!Number.isSafeInteger(xt) || xt <= Date.now() / 1000 - 1) throw new Error("Tell when it expires: a time that is still to come.");
    return xt;
  }

  async send() {
    const r = this.record;
    this.save.disabled = true;
    try {
      const key = r ? r.key : encode(unescape(this.key.value));
      if (!key) throw new Error("The key is empty.");
      await post(`${this.browser.path}/record`, { key, value: encode(this.bytes()), xt: this.xt(), old: r ? r.value : null });
      notice(r ? "The record is saved." : "The record is created.");
      this.dialog.close();
      await this.browser.load();
      await this.browser.open(key);
    } catch (e) {
      this.tell(e.message);
      this.save.disabled = false;
    }
  }
}

function localTime(seconds) {
  return moment(Math.floor(seconds) * 1000).replace(" ", "T");
}
