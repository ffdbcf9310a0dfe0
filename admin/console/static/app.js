// The frame: sections, keys, colours, and what is said when the server does not answer.
import { fill, h, openDialog, setText } from "./dom.js";
import { plural, span } from "./format.js";
import { live, watch } from "./server.js";
import { overview } from "./overview.js";
import { databases } from "./databases.js";
import { records } from "./records.js";
import { replication } from "./replication.js";
import { cluster } from "./cluster.js";
import { engine } from "./engine.js";
import { log, slow } from "./log.js";
import { snapshots } from "./snapshots.js";
import { counters, locks, numbers } from "./services.js";
import { facts } from "./facts.js";

// Each section has a name and a function (main element, words of the path behind it, parameters) that shows it and returns what ends that.
// The keys are the digits in the order of the list, but for those that have one of their own.
const sections = [
  ["overview", "Overview", overview],
  ["databases", "Databases", (root, words, params) => (words.length ? records(root, words[0], params) : databases(root))],
  ["replication", "Replication", replication],
  ["cluster", "Cluster", cluster, "c"],
  ["engine", "Engine", engine, "e"],
  ["log", "Update log", log],
  ["snapshots", "Snapshots and backups", snapshots],
  ["locks", "Locks", locks],
  ["counters", "Counters", counters],
  ["numbers", "Sequences and quotas", numbers],
  ["slow", "Slow requests", slow],
  ["server", "Server", facts],
];

const main = document.getElementById("main");
const nav = document.getElementById("sections");
const menu = document.getElementById("menu");
let leave = null;

const numbered = sections.filter(([, , , key]) => !key);
const keyOf = (section) => section[3] ?? String((numbered.indexOf(section) + 1) % 10);
const links = sections.map((s) => h("a", { href: "#/" + s[0] }, s[1], h("kbd", { "aria-hidden": "true" }, keyOf(s))));
// Most servers are in no cluster, and have no engine.
const only = (path) => !["cluster", "engine"].includes(path) || Boolean(live.about?.[path]);
const items = links.map((a, i) => h("li", { hidden: !only(sections[i][0]) }, a));
fill(nav.querySelector("ul"), items);

function show() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [first, ...words] = path.split("/");
  const at = Math.max(0, sections.findIndex(([name]) => name === first));
  links.forEach((a, i) => (i === at ? a.setAttribute("aria-current", "page") : a.removeAttribute("aria-current")));
  leave?.();
  const [, name, begin] = sections[at];
  document.title = name + " · gotycoon";
  closeMenu();
  leave = begin(fill(main), words, new URLSearchParams(query ?? ""));
}

window.addEventListener("hashchange", () => {
  show();
  window.scrollTo(0, 0);
  main.focus({ preventScroll: true });
});

document.querySelector(".skip").addEventListener("click", (e) => {
  e.preventDefault();
  main.focus();
});

function closeMenu() {
  nav.classList.remove("open");
  menu.setAttribute("aria-expanded", "false");
}

menu.addEventListener("click", () => {
  menu.setAttribute("aria-expanded", String(nav.classList.toggle("open")));
});

// Colours.

const themes = ["system", "light", "dark"];

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  document.getElementById("theme-name").textContent = theme;
  try {
    localStorage.setItem("gotycoon.theme", theme);
  } catch {
    // it holds until the page is closed
  }
}

function nextTheme() {
  setTheme(themes[(themes.indexOf(document.documentElement.dataset.theme) + 1) % themes.length]);
}

setTheme(themes.includes(document.documentElement.dataset.theme) ? document.documentElement.dataset.theme : "system");
document.getElementById("theme").addEventListener("click", nextTheme);

// Keys.

const shortcuts = [
  [["1", "…", "9", "0"], "go to a section, in the order of the list"],
  [["c"], "go to the cluster"],
  [["e"], "go to the engine"],
  [["/"], "go to the search field of a section"],
  [["n"], "new record, in the browser of a database"],
  [["↑", "↓"], "from record to record, when one has the focus"],
  [["←", "→"], "through time, when a chart has the focus"],
  [["["], "previous page of records"],
  [["]"], "next page of records"],
  [["t"], "system's, light and dark colours"],
  [["?"], "this list"],
  [["Esc"], "close what is open"],
];

function help() {
  openDialog("Keyboard shortcuts", (dialog) => [
    h("dl", { class: "shortcuts" }, shortcuts.filter(([keys]) => only({ c: "cluster", e: "engine" }[keys[0]])).map(([keys, what]) => [h("dt", null, keys.map((k) => (k === "…" ? "…" : h("kbd", null, k)))), h("dd", null, what)])),
    h("div", { class: "actions end" }, h("button", { type: "button", "data-first": true, onclick: () => dialog.close() }, "Close")),
  ]);
}

document.getElementById("help").addEventListener("click", help);

document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
  if (e.key === "Escape") {
    closeMenu();
    document.querySelector("[data-close]")?.click();
    return;
  }
  if (e.target.matches("input, textarea, select")) return;
  const section = sections.find((s) => keyOf(s) === e.key && only(s[0]));
  const acts = {
    "?": help,
    t: nextTheme,
    "/": () => main.querySelector("[data-search]")?.focus(),
    n: () => main.querySelector("[data-new]:enabled")?.click(),
    "[": () => main.querySelector("[data-previous]:enabled")?.click(),
    "]": () => main.querySelector("[data-next]:enabled")?.click(),
  };
  if (section) location.hash = "#/" + section[0];
  else if (acts[e.key]) acts[e.key]();
  else return;
  e.preventDefault();
});

// The server.

const banner = document.getElementById("banner");
const state = document.getElementById("server-state");
let seen = 0;

/** Shows sentences in the banner, each in a line of its own; those that stay keep a selection in them. */
function tell(sentences) {
  while (banner.children.length > sentences.length) banner.lastChild.remove();
  sentences.forEach((text, i) => setText(banner.children[i] ?? banner.appendChild(h("p")), text));
}

/** What is wrong: the alarms, and what else keeps the server from being ready. */
function troubles(about, alarms) {
  const sentence = (text) => text[0].toUpperCase() + text.slice(1);
  return [...alarms.map((a) => `${sentence(a.text)} (for ${span((about.now - a.since) / 1000)}).`),
    ...about.notReady.filter((reason) => !alarms.some((a) => reason.startsWith(a.text))).map((reason) => sentence(reason) + ".")];
}

live.listen(() => {
  const { about, problem } = live;
  document.body.classList.toggle("gone", problem !== null && problem.status === 0);
  const alarms = about?.alarms ?? [];
  const wrong = about ? troubles(about, alarms) : [];
  banner.hidden = problem === null && wrong.length === 0;
  // What is wrong stands above the page and pushes it down; that there is no answer lies over it, so that nothing moves.
  banner.classList.toggle("over", problem !== null);
  if (problem) {
    const since = seen ? ` What you see is ${span((Date.now() - seen) / 1000)} old.` : "";
    tell([problem.status === 0 ? `No answer from the server. Trying again.${since}` : `${problem.message}.${since}`.replace("..", ".")]);
    state.dataset.tone = problem.status === 503 ? "warn" : "bad";
    setText(state, problem.status === 503 ? "not ready" : problem.status === 0 ? "no answer" : "refused");
    return;
  }
  seen = Date.now();
  items.forEach((item, i) => (item.hidden = !only(sections[i][0])));
  if (wrong.length) tell(wrong);
  const { identity } = about;
  setText(document.getElementById("server-name"), identity.host + (identity.address.startsWith(":") ? "" : " ") + identity.address + (identity.serverId >= 0 ? ` · server ID ${identity.serverId}` : ""));
  state.dataset.tone = about.notReady.length ? "bad" : wrong.length ? "warn" : "good";
  setText(state, (about.notReady.length ? "not ready" : "ready") + (alarms.length ? ", " + plural(alarms.length, "alarm") : ""));
});

show();
watch();
