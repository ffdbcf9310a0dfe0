// Asks the server, knows whether it answers, and keeps what the charts show.

/** An answer that says what is wrong. */
export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const timeout = 15000;

async function call(method, path, body) {
  let response;
  try {
    response = await fetch("/api/" + path, {
      method,
      headers: method === "GET" ? {} : { "X-Gotycoon-Console": "1", "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
      signal: AbortSignal.timeout(timeout),
    });
  } catch {
    throw new Refusal(0, "The server does not answer.");
  }
  const text = await response.text();
  let answer = null;
  try {
    answer = JSON.parse(text);
  } catch {
    // an answer of the listener itself is plain text
  }
  if (!response.ok) throw new Refusal(response.status, answer?.error ?? (text.trim() || `The server answered ${response.status}.`));
  return answer;
}

export const get = (path) => call("GET", path);
export const post = (path, body) => call("POST", path, body ?? {});
export const remove = (path) => call("DELETE", path);

/** What is known of the server, and who wants to hear of it. */
export const live = {
  about: null, // answer of /api/server
  protocols: [],
  ports: [],
  samples: [],
  window: 300, // seconds that are shown
  problem: null, // why there is no answer: a Refusal
  listeners: new Set(),

  /** Calls back after each look at the server; returns what ends that. */
  listen(changed) {
    this.listeners.add(changed);
    return () => this.listeners.delete(changed);
  },

  /** Why nothing can be changed, empty when it can. */
  get fixed() {
    return this.about ? this.about.fixed : "The server has not answered yet.";
  },
};

let started = 0; // of the process that the samples are of
let failures = 0;

async function look() {
  try {
    const last = live.samples.at(-1)?.n ?? 0;
    const [about, got] = await Promise.all([get("server"), get("samples?since=" + last)]);
    if (got.started !== started) {
      live.samples = last && started ? (await get("samples")).samples : got.samples;
      started = got.started;
    } else {
      live.samples.push(...got.samples);
    }
    live.samples.splice(0, Math.max(0, live.samples.length - got.keep));
    live.window = got.keep * got.every;
    Object.assign(live, { about, protocols: got.protocols, ports: got.ports, problem: null });
    failures = 0;
  } catch (e) {
    live.problem = e instanceof Refusal ? e : new Refusal(0, String(e));
    failures++;
  }
  for (const changed of live.listeners) changed();
}

/** Looks at the server again and again, more seldom while it does not answer, and not at all while nobody sees the page. */
export async function watch() {
  for (;;) {
    if (!document.hidden) await look();
    await new Promise((done) => {
      const wake = () => {
        clearTimeout(timer);
        document.removeEventListener("visibilitychange", wake);
        done();
      };
      const timer = setTimeout(wake, failures ? Math.min(5000, 1000 * failures) : 1000);
      document.addEventListener("visibilitychange", wake);
    });
  }
}
