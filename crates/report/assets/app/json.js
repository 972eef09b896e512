// JSON as a tree to open and close. Numbers stay as they are written: JavaScript would round large ones.

import { el } from "./dom.js";
import { clip, plural } from "./text.js";

/** @import { Child } from "./types.js" */

/** What a number is kept under that JavaScript would round. */
const EXACT = "\u0000";

/** Deeper values are shown as text. */
const DEEPEST = 60;

/**
 * The value of a JSON text; undefined where it is none. Numbers of many digits become objects that keep their text.
 *
 * @param {string} text
 * @returns {unknown}
 */
export function valueOf(text) {
  const kept = text.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (token) => (token[0] === '"' || token.length < 16 ? token : `{"\\u0000":"${token}"}`));
  try {
    return JSON.parse(kept);
  } catch {
    return undefined;
  }
}

/**
 * A value that is no object and no list, as it is written.
 *
 * @param {unknown} value
 * @returns {string | null}
 */
export function plainOf(value) {
  if (value === null || typeof value !== "object") return typeof value === "string" ? value : JSON.stringify(value) ?? "";
  const exact = /** @type {Record<string, unknown>} */ (value)[EXACT];
  return typeof exact === "string" ? exact : null;
}

/**
 * The members of an object or a list, by their names or places.
 *
 * @param {unknown} value
 * @returns {[string, unknown][]}
 */
export const membersOf = (value) => (value !== null && typeof value === "object" ? Object.entries(value) : []);

/**
 * Whether a text is an object or a list.
 *
 * @param {string | null} text
 */
export const isTree = (text) => text !== null && /^\s*[[{]/.test(text) && plainOf(valueOf(text) ?? null) === null;

/**
 * A text as a tree where it is JSON with members, else the text.
 *
 * @param {string} text
 * @returns {Child}
 */
export function treeOf(text) {
  return isTree(text) ? el("div", { class: "tree" }, rows(valueOf(text), 0)) : text;
}

/**
 * @param {unknown} value
 * @param {number} depth
 * @returns {Child[]}
 */
function rows(value, depth) {
  const members = membersOf(value);
  if (!members.length) return [el("p", {}, Array.isArray(value) ? "[]" : "{}")];
  return members.map(([name, member]) => {
    const plain = plainOf(member);
    if (plain !== null) return el("p", {}, el("span", { class: "key" }, name), " ", plain);
    const inside = membersOf(member), what = plural(inside.length, Array.isArray(member) ? "item" : "member");
    if (depth > DEEPEST) return el("p", {}, el("span", { class: "key" }, name), " ", clip(JSON.stringify(member), 400));
    return el("details", { open: depth < 2 && inside.length <= 12 }, el("summary", {}, el("span", { class: "key" }, name), el("span", {}, ` ${what}`)), rows(member, depth + 1));
  });
}
