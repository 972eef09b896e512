// Links to events: `#actor/seq`, with the name of the execution before it where a page has several, `#minimized:actor/seq`. Behind it come
// notes, each with the event it is about: `#actor/seq&actor/7=it%20waits%20here`.

/** @typedef {{ execution: string | null, id: string, text: string }} Note */

/** @param {string} text */
const escaped = (text) => encodeURIComponent(text).replaceAll("%2F", "/");

/**
 * The part of an address that names an event. Slashes and colons stay as they are; all else that an address gives a meaning is escaped.
 *
 * @param {string} id
 * @param {string | null} execution
 * @param {Note[]} [notes]
 */
export function hashOf(id, execution, notes = []) {
  const name = (/** @type {string | null} */ of, /** @type {string} */ one) => `${of === null ? "" : `${escaped(of)}:`}${escaped(one)}`;
  return `#${name(execution, id)}${notes.map((note) => `&${name(note.execution, note.id)}=${escaped(note.text)}`).join("")}`;
}

/**
 * The notes of an address.
 *
 * @param {string} hash
 * @param {string[]} executions
 * @returns {Note[]}
 */
export function notesIn(hash, executions) {
  return hash.split("&").slice(1).flatMap((part) => {
    const at = part.indexOf("="), where = linked(part.slice(0, Math.max(0, at)), executions);
    try {
      return at < 0 || !where ? [] : [{ ...where, text: decodeURIComponent(part.slice(at + 1)) }];
    } catch {
      return [];
    }
  });
}

/**
 * What a part of an address may name: an event of each execution, or of that which stands before it. No name of an event has an unescaped
 * colon.
 *
 * @param {string} hash
 * @param {string[]} executions
 * @returns {{ execution: string | null, id: string } | null}
 */
export function linked(hash, executions) {
  const [text] = hash.replace(/^#/, "").split("&");
  if (!text) return null;
  try {
    const at = text.indexOf(":");
    const execution = at < 0 ? null : decodeURIComponent(text.slice(0, at));
    if (execution !== null && executions.includes(execution)) return { execution, id: decodeURIComponent(text.slice(at + 1)) };
    return { execution: null, id: decodeURIComponent(text) };
  } catch {
    return null;
  }
}
