// Words of a search, and the events that hold them. `type:Vote` looks at one field only.

/** @import { ColumnData } from "./types.js" */

/** @typedef {"type" | "payload" | "from" | "to"} TextField */

/** @type {readonly TextField[]} */
const TEXTS = ["type", "payload", "from", "to"];
const FIELDS = new Set(["actor", "kind", "id", ...TEXTS]);

/** @param {string} query */
export function wordsOf(query) {
  return query.toLowerCase().split(/\s+/).filter(Boolean);
}

/**
 * Says of a row of columns whether it holds all the words. Each text is looked at once, however many events have it.
 *
 * @param {string[]} words in small letters
 * @param {Pick<ColumnData, "texts" | "actor" | "kind" | TextField>} columns
 * @param {string[]} actors
 * @param {string[]} kinds
 * @param {(k: number) => string} idOf
 * @returns {(k: number) => boolean}
 */
export function finder(words, columns, actors, kinds, idOf) {
  const tests = words.map((word) => {
    const at = word.indexOf(":"), field = at > 0 && FIELDS.has(word.slice(0, at)) ? word.slice(0, at) : null;
    const text = field ? word.slice(at + 1) : word;
    if (text === "") return () => true;
    const has = (/** @type {string[]} */ all) => Uint8Array.from(all, (one) => Number(one.toLowerCase().includes(text)));
    const wanted = (/** @type {string} */ name) => field === null || field === name;
    const inActors = has(wanted("actor") ? actors : []), inKinds = has(wanted("kind") ? kinds : []), inTexts = has(columns.texts);
    const numbers = TEXTS.filter(wanted).map((name) => columns[name]);
    // Besides its actor's name, an id is digits and slashes.
    const ids = field === "id" || (field === null && /[0-9/]/.test(text));
    return (/** @type {number} */ k) => inActors[columns.actor[k]] === 1 || inKinds[columns.kind[k]] === 1 || numbers.some((of) => inTexts[of[k]] === 1) || (ids && idOf(k).toLowerCase().includes(text));
  });
  return (k) => tests.every((test) => test(k));
}
