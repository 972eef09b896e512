// The language of searches, and the events that a search finds.
//
//     vote term           events with both words, anywhere
//     type:Vote           in one field; state.role:leader and fields.term:3 look at one member
//     "two words"         with a space
//     /Term\(\d+\)/i      a regular expression, also behind a field: payload:/…/
//     NOT kind:send       all but these
//     fields.term:>3      a number above another; took:>100ms a message that was that long under way; gap:>1s, time:<=…
//     raft-*:Vote         events of an actor by name, by type
//     a:Vote -> b:Vote    events of which each happens before the next
//     a:Vote || b:Vote    events of which neither happens before the other

import { momentOf, nanoseconds } from "./clock.js";
import { membersOf, plainOf, valueOf } from "./json.js";

/** @import { Edges } from "./edges.js" */
/** @import { ChangeData, ColumnData, Numbers } from "./types.js" */

/** @typedef {{ key: string | null, path: string[], text: string, regex: boolean, flags: string, compare?: string }} Test what one field, or any, has to hold; with `compare` it is above or below a number */
/** @typedef {{ not: boolean, tests: Test[] }} Term all of its tests hold, or, with `not`, not all */
/** @typedef {{ patterns: Term[][], apart: boolean, error: string | null }} Query events one after the other, or two that are concurrent */
/** @typedef {"type" | "payload" | "from" | "to" | "fields" | "time" | "msg_id" | "source"} TextField */

/** @type {readonly TextField[]} */
const TEXTS = ["type", "payload", "from", "to", "fields", "time", "msg_id", "source"];
/** Fields that a word without one is looked for in: all but the file, which is the same for a whole log. */
const ANYWHERE = new Set(["actor", "kind", "id", "state", ...TEXTS.filter((name) => name !== "source")]);
const KEYS = new Set(["source", "is", "took", "gap", ...ANYWHERE]);
/** Times between events: since the send of a message, since the event before of the actor. */
export const SPANS = ["took", "gap"];
/** What `is:` asks for. */
export const MARKS = ["violation", "kept", "pruned", "outside", "affected", "only", "local"];

/**
 * @param {string} text
 * @param {string[]} actors names that stand before a colon for an actor and a type
 * @returns {Query}
 */
export function queryOf(text, actors) {
  const patterns = /** @type {Term[][]} */ ([[]]);
  let not = false, error = /** @type {string | null} */ (null), joint = "";
  for (const { quoted, token } of tokensOf(text)) {
    if ((token === "->" || token === "||") && !quoted) {
      if (!patterns[patterns.length - 1].length) error = `an event is missing before ${token}`;
      if (joint === "||" || (joint && joint !== token)) error = error ?? "|| stands between two events";
      joint = token;
      patterns.push([]);
    } else if (token === "NOT" && !quoted) not = true;
    else {
      const { tests, problem } = testsOf(token, quoted, actors);
      error = error ?? problem;
      patterns[patterns.length - 1].push({ not, tests });
      not = false;
    }
  }
  if (not) error = error ?? "a word is missing behind NOT";
  if (patterns.length > 1 && !patterns[patterns.length - 1].length) error = error ?? `an event is missing behind ${joint}`;
  return { patterns, apart: joint === "||", error };
}

/**
 * Whether a query asks for anything.
 *
 * @param {Query} query
 */
export const isEmpty = (query) => query.patterns.every((terms) => !terms.length);

/**
 * Words; quotes and regular expressions hold spaces together.
 *
 * @param {string} text
 */
function tokensOf(text) {
  const tokens = /** @type {{ quoted: boolean, token: string }[]} */ ([]);
  const space = (/** @type {string | undefined} */ one) => one === undefined || /\s/.test(one);
  for (let at = 0; at < text.length;) {
    if (space(text[at])) { at++; continue; }
    const [head] = /^(?:[^\s":/]+:)?/.exec(text.slice(at)) ?? [""], from = at + head.length;
    let end = from;
    const quoted = text[from] === '"';
    if (quoted) {
      const close = text.indexOf('"', from + 1);
      end = close < 0 ? text.length : close + 1;
    } else {
      const regex = /^\/(?:[^/\\]|\\.)+\/[imsu]*(?=\s|$)/.exec(text.slice(from));
      if (regex) end = from + regex[0].length;
      else while (!space(text[end])) end++;
    }
    tokens.push({ quoted, token: text.slice(at, end) });
    at = end;
  }
  return tokens;
}

/**
 * @param {string} token
 * @param {boolean} quoted
 * @param {string[]} actors
 * @returns {{ tests: Test[], problem: string | null }}
 */
function testsOf(token, quoted, actors) {
  const at = token.indexOf(":"), head = at > 0 ? token.slice(0, at) : "", rest = token.slice(at + 1);
  if (head && !/^["/]/.test(head)) {
    const key = head.toLowerCase(), member = /^(fields|state)\.(.+)$/i.exec(head);
    if (KEYS.has(key)) return testOf(key, [], rest, quoted);
    if (member) return testOf(member[1].toLowerCase(), member[2].split("."), rest, quoted);
    const name = new RegExp(nameOf(head), "i");
    if (actors.some((actor) => name.test(actor))) {
      const type = testOf("type", [], rest, quoted);
      return { tests: [{ key: "actor", path: [], text: nameOf(head), regex: true, flags: "i" }, ...type.tests], problem: type.problem };
    }
  }
  return testOf(null, [], token, quoted);
}

/**
 * A regular expression for a name with `*` for any letters.
 *
 * @param {string} name
 */
export const nameOf = (name) => `^${name.replace(/[.+?^${}()|[\]\\/]/g, "\\$&").replaceAll("*", ".*")}$`;

/**
 * @param {string | null} key
 * @param {string[]} path
 * @param {string} text
 * @param {boolean} quoted
 * @returns {{ tests: Test[], problem: string | null }}
 */
function testOf(key, path, text, quoted) {
  if (quoted) text = text.replace(/^"|"$/g, "");
  const regex = quoted ? null : /^\/(.+)\/([imsu]*)$/s.exec(text);
  const compare = quoted || key === null || key === "is" ? null : /^(>=|<=|>|<)(.+)$/.exec(text);
  if (compare && !Number.isNaN(boundOf(key, compare[2]))) return { tests: [{ key, path, text: compare[2], regex: false, flags: "", compare: compare[1] }], problem: null };
  if (key !== null && SPANS.includes(key)) return { tests: [], problem: `${key}: takes a time, as in ${key}:>100ms` };
  if (key === "is" && !MARKS.includes(text)) return { tests: [], problem: `is: takes one of ${MARKS.join(", ")}` };
  if (!regex) return { tests: [{ key, path, text: text.toLowerCase(), regex: false, flags: "" }], problem: null };
  const [, source, flags] = regex;
  try {
    new RegExp(source, flags);
  } catch (error) {
    return { tests: [], problem: error instanceof Error ? error.message : String(error) };
  }
  return { tests: [{ key, path, text: source, regex: true, flags }], problem: null };
}

const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

/**
 * What a comparison is with, as a number; NaN where it is none.
 *
 * @param {string | null} key
 * @param {string} text
 */
function boundOf(key, text) {
  if (key !== null && SPANS.includes(key)) return nanoseconds(text);
  if (key !== "time") return DECIMAL.test(text.trim()) ? Number(text) : NaN;
  return Number(momentOf(text)?.at ?? NaN);
}

/** @type {Record<string, (a: number, b: number) => boolean>} */
const COMPARE = { ">": (a, b) => a > b, ">=": (a, b) => a >= b, "<": (a, b) => a < b, "<=": (a, b) => a <= b };

/**
 * @param {Test} test
 * @returns {(text: string) => boolean}
 */
function holding({ key, text, regex, flags, compare }) {
  if (compare) {
    const bound = boundOf(key, text), holds = COMPARE[compare];
    return (one) => holds(boundOf(key, one), bound);
  }
  if (!regex) return (one) => one.toLowerCase().includes(text);
  const expression = new RegExp(text, flags);
  return (one) => expression.test(one);
}

/**
 * The member of a JSON text at a path, as it is written; null where there is none.
 *
 * @param {string} text
 * @param {string[]} path
 * @returns {string | null}
 */
export function memberOf(text, path) {
  if (!path.length) return text;
  let value = valueOf(text);
  for (const name of path) {
    const found = membersOf(value).find(([member]) => member === name);
    if (!found) return null;
    value = found[1];
  }
  return plainOf(value) ?? JSON.stringify(value);
}

/** @typedef {{ columns: Pick<ColumnData, "texts" | "actor" | "kind" | "flags" | TextField>, actors: string[], kinds: string[], changes: ChangeData, idOf: (k: number) => string, span: (key: string, k: number) => number, marked: (mark: string, k: number) => boolean }} Searched an execution */

/**
 * Says of an event whether all the terms hold. Each text is looked at once, however many events have it.
 *
 * @param {Term[]} terms
 * @param {Searched} trace
 * @returns {(k: number) => boolean}
 */
export function finder(terms, trace) {
  const all = terms.map(({ not, tests }) => {
    const holds = tests.map((test) => testing(test, trace));
    return (/** @type {number} */ k) => holds.every((one) => one(k)) !== not;
  });
  return (k) => all.every((one) => one(k));
}

/**
 * @param {Test} test
 * @param {Searched} trace
 * @returns {(k: number) => boolean}
 */
function testing(test, { columns, actors, kinds, changes, idOf, span, marked }) {
  const { key, path, text, regex, compare } = test;
  if (key === "is") return (k) => marked(text, k);
  if (key !== null && compare && SPANS.includes(key)) {
    const bound = boundOf(key, text), holds = COMPARE[compare];
    return (k) => holds(span(key, k), bound);
  }
  // A member of any value is asked for where only its name stands there.
  if (text === "" && !path.length) return () => true;
  const holds = holding(test);
  const has = (/** @type {string[]} */ of) => Uint8Array.from(of, (one) => Number(holds(one)));
  const wanted = (/** @type {string} */ name) => (key === null ? ANYWHERE.has(name) : key === name);
  const inActors = has(wanted("actor") ? actors : []), inKinds = has(wanted("kind") ? kinds : []);
  const names = TEXTS.filter(wanted), numbers = names.map((name) => columns[name]);
  const member = (/** @type {string} */ one) => { const found = memberOf(one, path); return Number(found !== null && holds(found)); };
  const inTexts = lazily(columns.texts, path.length ? member : (one) => Number(holds(one)));
  // Besides its actor's name, an id is digits and slashes.
  const ids = wanted("id") && (key === "id" || regex || /[0-9/]/.test(text));
  const changing = wanted("state") ? changed(changes, path, holds) : new Set();
  return (k) => {
    if (inActors[columns.actor[k]] === 1 || inKinds[columns.kind[k]] === 1 || changing.has(k)) return true;
    for (const of of numbers) if (of[k] >= 0 && inTexts(of[k])) return true;
    return ids && holds(idOf(k));
  };
}

/**
 * Whether a text holds, by its number: each is looked at once, and only those that are asked for.
 *
 * @param {string[]} texts
 * @param {(text: string) => number} of 1 where it holds, else 0
 * @returns {(n: number) => boolean}
 */
function lazily(texts, of) {
  // 0 where it was not asked yet.
  const known = new Uint8Array(texts.length);
  return (n) => {
    if (known[n] === 0) known[n] = 1 + of(texts[n]);
    return known[n] === 2;
  };
}

/**
 * The events that change a variable whose name or value holds; with a path, the variable of that name.
 *
 * @param {ChangeData} changes
 * @param {string[]} path
 * @param {(text: string) => boolean} holds
 */
function changed(changes, path, holds) {
  const found = /** @type {Set<number>} */ (new Set()), known = /** @type {Map<number, boolean>} */ (new Map());
  const within = (/** @type {number} */ n) => {
    let value = known.get(n);
    if (value === undefined) {
      const member = memberOf(changes.texts[n], path.slice(1));
      known.set(n, (value = member !== null && holds(member)));
    }
    return value;
  };
  for (let k = 0; k < changes.event.length; k++) {
    const name = changes.texts[changes.variable[k]], value = changes.value[k];
    const gone = value < 0 && path.length === 1 && holds("");
    if (path.length ? name === path[0] && (gone || (value >= 0 && within(value))) : holds(name) || (value >= 0 && within(value))) found.add(changes.event[k]);
  }
  return found;
}

/** @typedef {{ n: number, columns: { actor: Numbers, place: Numbers }, chain: number[][], edges: Edges }} Ordered */
/** @typedef {{ events: number[], before: (event: number) => number[], taking: number[] }} Chains the last events of matches, the match of each, and all events that are in some match */

/**
 * Events of which each happens before the next. For each event that may be last there is one match, with the latest event that may stand
 * before it, and so on.
 *
 * @param {Ordered} trace
 * @param {((k: number) => boolean)[]} patterns
 * @returns {Chains}
 */
export function chainsOf(trace, patterns) {
  const { n, columns: { actor, place }, chain, edges } = trace, last = patterns.length - 1;
  // By pattern and event: whether the event is the end of a match of the patterns up to it.
  const ends = patterns.map(() => new Uint8Array(n));
  // By pattern and event: the latest end of it at or before the event.
  const latest = patterns.map(() => new Int32Array(n).fill(-1));
  const { into, out, cause, effect } = edges;
  for (let i = 0; i < n; i++) {
    const logged = place[i] > 0 ? chain[actor[i]][place[i] - 1] : -1, first = into.get(i);
    for (const reached of latest) {
      let best = logged >= 0 ? reached[logged] : -1;
      for (let k = first; k >= 0; k = into.next[k]) if (reached[cause[k]] > best) best = reached[cause[k]];
      reached[i] = best;
    }
    for (let p = last; p >= 0; p--) {
      if ((p > 0 && latest[p - 1][i] < 0) || !patterns[p](i)) continue;
      ends[p][i] = 1;
    }
    for (let p = 0; p <= last; p++) if (ends[p][i]) latest[p][i] = Math.max(latest[p][i], i);
  }
  const before = (/** @type {number} */ event) => {
    const match = [event];
    for (let p = last - 1; p >= 0; p--) {
      // The latest before the event, not the event itself.
      let best = -1;
      const at = match[0], logged = place[at] > 0 ? chain[actor[at]][place[at] - 1] : -1;
      if (logged >= 0) best = latest[p][logged];
      edges.each(at, false, (cause) => { best = Math.max(best, latest[p][cause]); });
      match.unshift(best);
    }
    return match;
  };
  // Backwards: an end is in a match of all patterns if such an end of the next one stands after it.
  const taking = /** @type {number[]} */ ([]), events = /** @type {number[]} */ ([]);
  const follows = patterns.map(() => new Uint8Array(n)), behind = new Uint8Array(last + 1);
  for (let i = n - 1; i >= 0; i--) {
    const logged = place[i] >= 0 ? chain[actor[i]][place[i] + 1] ?? -1 : -1, first = out.get(i);
    for (let p = 0; p <= last; p++) {
      let some = logged >= 0 ? follows[p][logged] : 0;
      for (let k = first; k >= 0; k = out.next[k]) some |= follows[p][effect[k]];
      behind[p] = some;
    }
    let takes = false;
    for (let p = 0; p <= last; p++) {
      const good = ends[p][i] === 1 && (p === last || behind[p + 1] === 1);
      follows[p][i] = good ? 1 : behind[p];
      takes = takes || good;
    }
    if (takes) taking.push(i);
    if (ends[last][i]) events.push(i);
  }
  return { events: events.reverse(), before, taking: taking.reverse() };
}
