// Events counted in groups: by type, actor, kind, ends of messages or the value of a member; with the time that messages take, where logs have times.

import { momentOf } from "./clock.js";
import { memberOf } from "./pattern.js";

/** @import { LocalTrace } from "./trace.js" */

/** What events can be counted by. */
export const BY = ["type", "actor", "kind", "type and actor", "from and to"];

/** What a server can count them by. */
export const SERVED = BY.slice(0, 4);

/** @typedef {{ name: string, query: string, count: number, actors: number, first: number, last: number, waits: number[] }} Group events that are alike, of how many actors, the search that finds them, and how long their messages took, in nanoseconds */

/**
 * A text as a search looks for it alone and whole.
 *
 * @param {string} key
 * @param {string} text
 */
export const whole = (key, text) => `${key}:/^${text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")}$/`;

/**
 * What events are counted under, and the search for them: their type, or their kind where they have none, and their actor.
 *
 * @param {string | null} type
 * @param {string | null} kind
 * @param {string | null} actor
 * @returns {[string, string]}
 */
function labelled(type, kind, actor) {
  const names = /** @type {string[]} */ ([]), queries = /** @type {string[]} */ ([]);
  const add = (/** @type {string} */ key, /** @type {string} */ name) => { names.push(key === "kind" ? name.replaceAll("_", " ") : name); queries.push(whole(key, name)); };
  if (type !== null) add("type", type); else if (kind !== null) add("kind", kind);
  if (actor !== null) add("actor", actor);
  return [names.join(" · "), queries.join(" ")];
}

/**
 * A group that a server counted.
 *
 * @param {string[]} actors
 * @param {{ type: string | null, kind: string | null, actor: number | null, count: number, actors: number, first: number, last: number }} told
 * @returns {Group}
 */
export function groupOf(actors, told) {
  const [name, query] = labelled(told.type, told.kind, told.actor === null ? null : actors[told.actor]);
  return { name, query, count: told.count, actors: told.actors, first: told.first, last: told.last, waits: [] };
}

/**
 * By event what it is counted under and the search for it; null where it is not counted.
 *
 * @param {LocalTrace} trace
 * @param {string} by one of `BY`, or a member such as `fields.term`
 * @returns {(i: number) => [string, string] | null}
 */
function namer(trace, by) {
  const { columns, actors, page } = trace, text = (/** @type {number} */ n) => (n < 0 ? null : columns.texts[n]);
  const type = (/** @type {number} */ i) => text(columns.type[i]), actor = (/** @type {number} */ i) => actors[columns.actor[i]], kind = (/** @type {number} */ i) => page.kinds[columns.kind[i]];
  if (by === "actor") return (i) => labelled(null, null, actor(i));
  if (by === "kind") return (i) => labelled(null, kind(i), null);
  if (by === "type and actor") return (i) => labelled(type(i), kind(i), actor(i));
  if (by === "from and to") {
    return (i) => {
      const from = text(columns.from[i]) ?? (kind(i) === "send" ? actor(i) : null), to = text(columns.to[i]) ?? (kind(i) === "receive" ? actor(i) : null);
      return kind(i) !== "receive" || from === null || to === null ? null : [`${from} → ${to}`, `kind:receive ${whole("from", from)} ${whole("actor", actor(i))}`];
    };
  }
  const [field, ...path] = by.split(".");
  if (field === "fields" && path.length) {
    const known = /** @type {Map<number, string | null>} */ (new Map());
    return (i) => {
      const n = columns.fields[i];
      if (n < 0) return null;
      let value = known.get(n);
      if (value === undefined) known.set(n, (value = memberOf(columns.texts[n], path)));
      return value === null ? null : [value, whole(by, value)];
    };
  }
  return (i) => labelled(type(i), kind(i), null);
}

/**
 * Times of events in nanoseconds since the first that has one; NaN where there is none, or none that can be compared.
 *
 * @param {Pick<LocalTrace, "n" | "columns">} trace
 * @returns {{ at: Float64Array, unit: "ns" | "", some: boolean }}
 */
export function timesOf(trace) {
  const { time, texts } = trace.columns, at = new Float64Array(trace.n).fill(NaN);
  let base = /** @type {import("./clock.js").Moment | null} */ (null);
  for (let i = 0; i < trace.n; i++) {
    const moment = time[i] < 0 ? null : momentOf(texts[time[i]]);
    if (!moment || (base && base.unit !== moment.unit)) continue;
    base = base ?? moment;
    at[i] = Number(moment.at - base.at);
  }
  return { at, unit: base?.unit ?? "", some: base !== null };
}

/**
 * Events in groups, those of many events first.
 *
 * @param {LocalTrace} trace
 * @param {(i: number) => boolean} counted
 * @param {string} by
 * @param {Float64Array | null} times
 * @returns {Group[]}
 */
export function groupsOf(trace, counted, by, times) {
  const name = namer(trace, by), groups = /** @type {Map<string, Group>} */ (new Map()), seen = /** @type {Map<Group, Set<number>>} */ (new Map()), { actor } = trace.columns;
  for (let i = 0; i < trace.n; i++) {
    const named = counted(i) ? name(i) : null;
    if (!named) continue;
    let group = groups.get(named[0]);
    if (!group) {
      groups.set(named[0], (group = { name: named[0], query: named[1], count: 0, actors: 0, first: i, last: i, waits: [] }));
      seen.set(group, new Set());
    }
    group.count++;
    group.last = i;
    seen.get(group)?.add(actor[i]);
    if (times) {
      trace.edges.each(i, false, (cause, edge) => {
        const wait = times[i] - times[cause];
        if (actor[cause] !== actor[i] && trace.edges.isMessage(edge) && !Number.isNaN(wait)) group.waits.push(wait);
      });
    }
  }
  for (const [group, actors] of seen) {
    group.actors = actors.size;
    group.waits.sort((a, b) => a - b);
  }
  return [...groups.values()].sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1));
}

/**
 * The value below which a share of sorted numbers lies.
 *
 * @param {number[]} sorted
 * @param {number} share
 */
export const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
