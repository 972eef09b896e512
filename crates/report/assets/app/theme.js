// Colours, as the style sheet has them, and the colour of each message type.

/** @typedef {"paper" | "card" | "ink" | "soft" | "quiet" | "faint" | "line" | "lane" | "band" | "hover" | "accent" | "past" | "future" | "alarm" | "pruned"} Name */

/** @type {readonly Name[]} */
const NAMES = ["paper", "card", "ink", "soft", "quiet", "faint", "line", "lane", "band", "hover", "accent", "past", "future", "alarm", "pruned"];
const HUES = 8;

/** The colours in use; `types` has the number of the hue of each of the commonest types. */
export const theme = {
  colors: /** @type {Record<Name, string>} */ ({}),
  hues: /** @type {string[]} */ ([]),
  types: /** @type {Map<string, number>} */ (new Map()),
};

/** @param {boolean} dark */
export function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  const style = getComputedStyle(document.documentElement);
  for (const name of NAMES) theme.colors[name] = style.getPropertyValue(`--${name}`).trim();
  theme.hues = Array.from({ length: HUES }, (_, i) => style.getPropertyValue(`--t${i}`).trim());
}

export const isDark = () => document.documentElement.dataset.theme === "dark";

/**
 * Gives the commonest types colours of their own.
 *
 * @param {string[]} types
 */
export function nameTypes(types) {
  theme.types.clear();
  types.slice(0, HUES).forEach((type, i) => theme.types.set(type, i));
}

/** @param {string} type */
export function colorOf(type) {
  const hue = theme.types.get(type);
  return hue === undefined ? theme.colors.soft : theme.hues[hue];
}
