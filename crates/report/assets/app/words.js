// Words of a search, and the events that hold them. `type:Vote` looks at one field only.

/** @import { Event } from "./types.js" */

/** @param {string} query */
export function wordsOf(query) {
  return query.toLowerCase().split(/\s+/).filter(Boolean);
}

/**
 * Whether an event holds all the words.
 *
 * @param {Pick<Event, "kind" | "type" | "payload" | "from" | "to" | "id">} event
 * @param {string} actor its name
 * @param {string[]} words
 */
export function matches(event, actor, words) {
  const fields = new Map(Object.entries({ actor, kind: event.kind, type: event.type, payload: event.payload, from: event.from, to: event.to, id: event.id }));
  const has = (/** @type {string | null} */ text, /** @type {string} */ word) => (text ?? "").toLowerCase().includes(word);
  return words.every((word) => {
    const at = word.indexOf(":"), field = word.slice(0, Math.max(0, at));
    if (fields.has(field)) return has(fields.get(field) ?? null, word.slice(at + 1));
    return [...fields.values()].some((text) => has(text, word));
  });
}
