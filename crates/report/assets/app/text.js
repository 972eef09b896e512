// Numbers and words as a reader expects them.

/**
 * A whole number in groups of three. Numbers that JavaScript would round come as text.
 *
 * @param {number | string | bigint} n
 */
export const number = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f");

/** Compares names so that `a-2` stands before `a-10`. */
export const natural = new Intl.Collator("en", { numeric: true }).compare;

/**
 * The number nearest to `n` that is in a range; `low` where the range is empty.
 *
 * @param {number} n
 * @param {number} low
 * @param {number} high
 */
export const clamp = (n, low, high) => Math.max(low, Math.min(high, n));

/**
 * A count with its noun.
 *
 * @param {number | string | bigint} n
 * @param {string} word
 */
export const plural = (n, word) => `${number(n)} ${word}${Number(n) === 1 ? "" : "s"}`;

/**
 * The beginning of a text, with an ellipsis where it was cut.
 *
 * @param {string} text
 * @param {number} length
 */
export const clip = (text, length) => (text.length <= length ? text : `${text.slice(0, Math.max(1, length - 1))}…`);
