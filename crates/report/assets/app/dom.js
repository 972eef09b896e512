// Small helpers: elements are made by hand, and texts only ever become text.

const $ = (id) => document.getElementById(id);

function el(tag, props, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  add(node, children);
  return node;
}

function svg(tag, props, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(props || {})) node.setAttribute(key, value);
  add(node, children);
  return node;
}

function add(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
}

function put(node, ...children) {
  node.replaceChildren();
  add(node, children);
}

// Whole numbers; those that JavaScript would round come as text.
const number = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f");
const natural = new Intl.Collator("en", { numeric: true }).compare;
const clamp = (n, low, high) => Math.max(low, Math.min(high, n));
const plural = (n, word) => `${number(n)} ${word}${Number(n) === 1 ? "" : "s"}`;

const clip = (text, length) => (text.length <= length ? text : `${text.slice(0, Math.max(1, length - 1))}…`);
