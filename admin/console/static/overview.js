// What happens now, and what happened in the last minutes.
import { Chart } from "./chart.js";
import { h, setText } from "./dom.js";
import { duration, plural, short, size, span } from "./format.js";
import { head } from "./section.js";
import { live } from "./server.js";

const sum = (list) => list.reduce((a, b) => a + b, 0);

const names = { rpc: "HTTP RPC", rest: "HTTP REST", binary: "binary", memcache: "memcached", memcached: "memcached", counter: "counters", lock: "locks", sequence: "sequences", quota: "quotas" };

// Protocols that were used in the window come first; where there are none, the ones that every server has.
function used() {
  const busy = live.protocols.map((name, i) => [name, i]).filter(([, i]) => live.samples.some((s) => s.rates[i] > 0));
  return (busy.length ? busy : live.protocols.slice(0, 3).map((name, i) => [name, i]))
    .map(([name, i]) => ({ name: names[name] ?? name, color: i % 8, at: (s) => s.rates[i] }));
}

export function overview(root) {
  const figures = {};
  const figure = (key, name) => h("div", null, h("dt", null, name), (figures[key] = h("dd", null, "–")));
  const intro = h("p", { class: "muted" });
  const charts = [
    new Chart({ title: "Requests", unit: "per second", series: used, show: short, least: 8, area: true }),
    new Chart({ title: "Latency", unit: "until the reply may leave", log: true, show: duration, series: () => [
      { name: "median", at: (s) => s.p50, color: 0 }, { name: "99 %", at: (s) => s.p99, color: 2 }, { name: "99.9 %", at: (s) => s.p999, color: 3 }] }),
    new Chart({ title: "Memory", show: size, binary: true, least: 1 << 22, series: () => [
      { name: "process", at: (s) => s.rss, color: 1 }, { name: "Go objects", at: (s) => s.heap, color: 6 }] }),
    new Chart({ title: "Connections", show: short, least: 4, series: () => live.ports.map((name, i) => (
      { name: name === "data" ? "data port" : names[name] ?? name, at: (s) => s.conns[i], color: i })) }),
    new Chart({ title: "Update logs", unit: "bytes per second", show: size, binary: true, least: 1 << 10, area: true, series: () => [{ name: "appended", at: (s) => s.log, color: 4 }] }),
    new Chart({ title: "Replication lag", unit: "behind the master", show: duration, least: 1, series: () => [
      { name: "this server", at: (s) => s.lag, color: 5 }, ...(live.samples.some((s) => s.slaveLag !== null) ? [{ name: "slowest follower", at: (s) => s.slaveLag, color: 7 }] : [])] }),
  ];
  const lag = charts.at(-1);
  const noLag = h("div", { class: "card", hidden: true }, h("h2", null, "Replication lag"), h("p", { class: "off" },
    "This server follows no master. Start it with ", h("code", null, "-mhost HOST"), ", ", h("code", null, "-mport PORT"), " and ", h("code", null, "-rts FILE"), " to have it follow one."));
  root.append(
    h("div", { class: "head" }, h("div", null, h("h1", null, "Overview"), intro)),
    h("dl", { class: "stats" }, figure("rate", "Requests"), figure("p99", "Latency, 99 %"), figure("conns", "Connections"), figure("memory", "Memory"),
      figure("cpu", "Processors"), figure("records", "Records"), figure("bytes", "Size")),
    h("div", { class: "grid" }, charts.map((c) => c.element), noLag));
  const update = () => {
    const s = live.samples.at(-1), about = live.about;
    if (about) {
      setText(intro, `gotycoon ${about.version}, up for ${span((about.now - about.started) / 1000)}, ${plural(about.databases, "database")}`);
      put(figures.records, short(about.records));
      put(figures.bytes, size(about.bytes));
    }
    if (s) {
      put(figures.rate, short(sum(s.rates)), "/s");
      put(figures.p99, s.p99 === null ? "–" : duration(s.p99));
      put(figures.conns, String(sum(s.conns)));
      put(figures.memory, size(s.rss));
      put(figures.cpu, s.cpu.toFixed(2));
      const following = live.samples.some((x) => x.lag !== null || x.slaveLag !== null);
      lag.element.hidden = !following;
      noLag.hidden = following;
    }
    for (const c of charts) c.draw();
  };
  const end = live.listen(update);
  update();
  return () => {
    end();
    for (const c of charts) c.close();
  };
}

function put(dd, text, unit) {
  if (dd.dataset.text === text) return;
  dd.dataset.text = text;
  dd.replaceChildren(text, unit ? h("small", null, unit) : "");
}
