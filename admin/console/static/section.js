// What sections have in common.
import { fill, h, notice, setText } from "./dom.js";
import { get, live } from "./server.js";

/** The heading of a section. */
export function head(title, about, ...actions) {
  return h("div", { class: "head" }, h("div", null, h("h1", null, title), about ? h("p", { class: "muted" }, about) : null),
    actions.length ? h("div", { class: "actions" }, actions) : null);
}

const noAnswer = "The server does not answer. This page goes on when it does.";

/**
 * Asks for something again and again and shows it, until what is returned is called. The first answer decides what is built: build gets it
 * and returns the function that shows it and every later one.
 */
export function poll(box, path, build, every = 2000) {
  let ended = false, timer = 0, show = null, wasOff;
  const problem = h("p", { class: "note", "data-tone": "bad", role: "alert", hidden: true });
  const loading = h("p", { class: "empty" }, "Loading.");
  const body = h("div", null, loading);
  box.append(problem, body);
  const look = async () => {
    clearTimeout(timer);
    if (live.problem?.status === 0) {
      setText(loading, noAnswer);
    } else if (!document.hidden) {
      try {
        const answer = await get(path);
        if (ended) return;
        const off = Boolean(answer.off) && !answer.logs;
        if (!show || off !== wasOff) {
          fill(body);
          show = build(body, answer);
          wasOff = off;
        }
        show?.(answer);
        problem.hidden = true;
      } catch (e) {
        if (ended) return;
        setText(loading, e.status === 0 ? noAnswer : "There is nothing to show yet.");
        problem.textContent = e.message;
        problem.hidden = e.status === 0; // the frame says it
      }
    }
    clearTimeout(timer);
    if (!ended) timer = setTimeout(look, every);
  };
  look();
  const end = () => {
    ended = true;
    clearTimeout(timer);
  };
  end.now = look;
  return end;
}

/** A button that changes something: it cannot be used where nothing may be changed, and says why. */
export function changing(text, attrs, act) {
  const b = h("button", { type: "button", ...attrs }, text);
  const may = () => {
    b.disabled = Boolean(live.fixed) || b.dataset.busy === "1" || b.dataset.never === "1";
    b.title = b.dataset.never === "1" ? b.dataset.why ?? "" : live.fixed;
  };
  may();
  b.addEventListener("click", async () => {
    b.dataset.busy = "1";
    may();
    try {
      await act(b);
    } catch (e) {
      notice(e.message, "bad");
    }
    delete b.dataset.busy;
    may();
  });
  const end = live.listen(() => (b.isConnected || !b.dataset.shown ? (b.isConnected && (b.dataset.shown = "1"), may()) : end()));
  return b;
}

/** Says at the top of a section that nothing can be changed. */
export function fixedNote() {
  const p = h("p", { class: "note", hidden: true });
  const tell = () => {
    p.hidden = !live.about?.fixed;
    if (live.about?.fixed) p.textContent = "You can look, but not change anything: " + live.about.fixed;
  };
  tell();
  const end = live.listen(() => (p.isConnected || !p.dataset.shown ? (p.isConnected && (p.dataset.shown = "1"), tell()) : end()));
  return p;
}

/** What has become of a task. */
export function taskText(task) {
  if (!task) return "";
  if (task.running) return "under way";
  return task.error ? "has failed: " + task.error : "done";
}
