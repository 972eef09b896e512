// Links to events: `#actor/seq`, with the name of the execution before it where a page has several, `#minimized:actor/seq`.

/**
 * The part of an address that names an event. Slashes and colons stay as they are; all else that an address gives a meaning is escaped.
 *
 * @param {string} id
 * @param {string | null} execution
 */
export function hashOf(id, execution) {
  const escaped = (/** @type {string} */ text) => encodeURIComponent(text).replaceAll("%2F", "/");
  return `#${execution === null ? "" : `${escaped(execution)}:`}${escaped(id)}`;
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
  const text = hash.replace(/^#/, "");
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
