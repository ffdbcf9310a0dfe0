// Keys and values are bytes: they come and go in base64, and are shown as text where they are text.
import { h } from "./dom.js";

export function decode(base64) {
  return Uint8Array.from(atob(base64 ?? ""), (c) => c.charCodeAt(0));
}

export function encode(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(text);
}

/** The text of bytes in UTF-8, null when they are none. */
export function text(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

export function fromText(s) {
  return new TextEncoder().encode(s);
}

/** Bytes of a text in which \xNN, \t, \n and \\ stand for a byte. */
export function unescape(s) {
  const out = [];
  for (let i = 0; i < s.length; ) {
    const hex = /^\\x([0-9a-fA-F]{2})/.exec(s.slice(i, i + 4));
    const simple = { "\\t": 9, "\\n": 10, "\\r": 13, "\\\\": 92 }[s.slice(i, i + 2)];
    if (hex) {
      out.push(parseInt(hex[1], 16));
      i += 4;
    } else if (simple !== undefined) {
      out.push(simple);
      i += 2;
    } else {
      const c = String.fromCodePoint(s.codePointAt(i));
      out.push(...fromText(c));
      i += c.length;
    }
  }
  return Uint8Array.from(out);
}

/** The opposite: a text that unescape makes the bytes of. */
export function escape(bytes) {
  return pieces(bytes).map(([s, escaped]) => (escaped ? s : s.replaceAll("\\", "\\\\"))).join("");
}

// pieces are texts, and escapes of what is no text or cannot be seen.
function pieces(bytes) {
  const whole = text(bytes);
  const out = [];
  const put = (s, escaped) => {
    const last = out.at(-1);
    if (last && last[1] === escaped) last[0] += s;
    else out.push([s, escaped]);
  };
  if (whole === null) {
    for (const b of bytes) put(b >= 0x20 && b < 0x7f ? String.fromCharCode(b) : hex(b), !(b >= 0x20 && b < 0x7f));
    return out;
  }
  for (const c of whole) {
    if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/u.test(c)) for (const b of fromText(c)) put(hex(b), true);
    else put(c, false);
  }
  return out;
}

function hex(b) {
  return { 9: "\\t", 10: "\\n", 13: "\\r" }[b] ?? "\\x" + b.toString(16).padStart(2, "0");
}

/** What bytes look like in a line. */
export function inline(bytes, truncated) {
  if (bytes.length === 0) return h("span", { class: "muted" }, "empty");
  if (truncated) bytes = wholeCharacters(bytes);
  return h("span", { class: "mono wrap" }, pieces(bytes).map(([s, escaped]) => (escaped ? h("span", { class: "escape" }, s) : s)), truncated ? "…" : null);
}

// wholeCharacters leaves out a character of UTF-8 that is cut off.
function wholeCharacters(bytes) {
  for (let n = 1; n <= 3 && n <= bytes.length; n++) {
    const b = bytes[bytes.length - n];
    if (b >= 0xc0) return bytes.subarray(0, bytes.length - n);
    if (b < 0x80) break;
  }
  return bytes;
}

/** Lines of some bytes: offset, hexadecimal, and what is text. */
export function dump(bytes, width) {
  const lines = [];
  for (let i = 0; i < bytes.length; i += width) {
    const row = [...bytes.subarray(i, i + width)];
    const two = row.map((b) => b.toString(16).padStart(2, "0"));
    const words = [];
    for (let n = 0; n < width; n += 8) words.push(two.slice(n, n + 8).join(" ").padEnd(3 * Math.min(width, 8) - 1));
    const seen = row.map((b) => (b >= 0x20 && b < 0x7f ? String.fromCharCode(b) : "·")).join("");
    lines.push(`${i.toString(16).padStart(6, "0")}  ${words.join("  ")}  ${seen}`);
  }
  return lines.join("\n");
}

/** The bytes of hexadecimal digits with spaces anywhere, null when it is something else. */
export function fromHex(s) {
  const digits = s.replace(/\s+/g, "");
  if (digits.length % 2 || /[^0-9a-fA-F]/.test(digits)) return null;
  return Uint8Array.from(digits.match(/../g) ?? [], (d) => parseInt(d, 16));
}

export function toHex(bytes) {
  return [...bytes].map((b) => b.toString(16).padStart(2, "0")).join(" ").replace(/((?:\S\S ){15}\S\S) /g, "$1\n");
}

/** A text in JSON with a line for each value, null when it is none. The values stay as they are written: numbers keep all digits. */
export function json(s) {
  try {
    JSON.parse(s);
  } catch {
    return null;
  }
  let out = "", depth = 0;
  const line = () => "\n" + "  ".repeat(depth);
  for (const [token] of s.matchAll(/"(?:[^"\\]|\\.)*"|[[{]\s*[\]}]|[^\s"[\]{},:]+|[[\]{},:]/g)) {
    if (token === "{" || token === "[") {
      depth++;
      out += token + line();
    } else if (token === "}" || token === "]") {
      depth--;
      out += line() + token;
    } else if (token === ",") out += token + line();
    else if (token === ":") out += ": ";
    else out += /^[[{]/.test(token) ? token.replace(/\s+/, "") : token;
  }
  return out;
}
