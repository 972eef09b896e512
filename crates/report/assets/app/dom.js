// Small helpers: elements are made by hand, and texts only ever become text.

/** @import { Child } from "./types.js" */

/**
 * The element of the page's template with that id.
 *
 * @param {string} id
 * @returns {HTMLElement}
 */
export function $(id) {
  const node = document.getElementById(id);
  if (!node) throw new Error(`the page has no element ${id}`);
  return node;
}

/**
 * A new element; properties that begin with `on` are listeners, all others are attributes.
 *
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any>} [props]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  add(node, children);
  return node;
}

/**
 * A new element of a picture.
 *
 * @param {string} tag
 * @param {Record<string, string | number>} [props]
 * @param {...Child} children
 * @returns {SVGElement}
 */
export function svg(tag, props = {}, ...children) {
  const node = /** @type {SVGElement} */ (document.createElementNS("http://www.w3.org/2000/svg", tag));
  for (const [key, value] of Object.entries(props)) node.setAttribute(key, String(value));
  add(node, children);
  return node;
}

/**
 * @param {Element} node
 * @param {Child[]} children
 */
function add(node, children) {
  // Too deep for the type checker.
  const flat = /** @type {Exclude<Child, Child[]>[]} */ (/** @type {any[]} */ (children).flat(Infinity));
  for (const child of flat) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
}

/**
 * Replaces what an element holds.
 *
 * @param {Element} node
 * @param {...Child} children
 */
export function put(node, ...children) {
  node.replaceChildren();
  add(node, children);
}
