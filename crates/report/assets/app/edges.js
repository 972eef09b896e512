// The edges of happens-before besides the order of logs, each with both its ends.

/** @import { ColumnData, Edge, End, Event } from "./types.js" */

/** @typedef {{ get: (i: number) => number, next: Int32Array }} Chains by event the first of its edges, by edge the next of the same event */

export class Edges {
  /**
   * @param {string[]} joints names of what joins two ends, by code
   * @param {Pick<ColumnData, "edges">} columns
   * @param {number} [size] how many events there are, where all are here
   */
  constructor(joints, columns, size) {
    this.joints = joints;
    this.joint = columns.edges.joint;
    this.certain = columns.edges.certain;
    this.cause = Int32Array.from(columns.edges.cause);
    this.cause_actor = Int32Array.from(columns.edges.cause_actor);
    this.effect = Int32Array.from(columns.edges.effect);
    this.effect_actor = Int32Array.from(columns.edges.effect_actor);
    this.n = this.cause.length;
    this.into = this.chained(this.effect, size);
    this.out = this.chained(this.cause, size);
  }

  /**
   * @param {Int32Array} ends
   * @param {number} [size]
   * @returns {Chains}
   */
  chained(ends, size) {
    const next = new Int32Array(this.n);
    if (size === undefined) {
      const first = /** @type {Map<number, number>} */ (new Map());
      const get = (/** @type {number} */ i) => first.get(i) ?? -1;
      for (let k = this.n - 1; k >= 0; k--) {
        next[k] = get(ends[k]);
        first.set(ends[k], k);
      }
      return { get, next };
    }
    const first = new Int32Array(size).fill(-1);
    for (let k = this.n - 1; k >= 0; k--) {
      next[k] = first[ends[k]];
      first[ends[k]] = k;
    }
    return { get: (i) => first[i], next };
  }

  /**
   * Calls `f` with the event at the other end of each edge into an event, or out of it.
   *
   * @param {number} i
   * @param {boolean} forward
   * @param {(other: number, edge: number) => void} f
   */
  each(i, forward, f) {
    const { get, next } = forward ? this.out : this.into, other = forward ? this.effect : this.cause;
    for (let k = get(i); k >= 0; k = next[k]) f(other[k], k);
  }

  /**
   * The other ends of the edges into an event, or out of it.
   *
   * @param {number} i
   * @param {boolean} forward
   */
  ends(i, forward) {
    const ends = /** @type {End[]} */ ([]), actor = forward ? this.effect_actor : this.cause_actor;
    this.each(i, forward, (other, k) => { ends.push({ i: other, actor: actor[k], joint: this.joints[this.joint[k]], certain: this.certain[k] === 1 }); });
    return ends;
  }

  /**
   * Whether an edge joins the ends of a message or a timer and its setting.
   *
   * @param {number} edge
   */
  isMessage(edge) { return MESSAGES.has(this.joints[this.joint[edge]]); }

  /**
   * Adds those that pass over a window to `found`: what begins before it and ends behind it.
   *
   * @param {number} from
   * @param {number} to
   * @param {Map<string, Edge>} found
   */
  over(from, to, found) {
    for (let k = 0; k < this.n; k++) {
      if (this.cause[k] < from && this.effect[k] >= to) found.set(`${this.cause[k]} ${this.effect[k]}`, [this.cause[k], this.cause_actor[k], this.effect[k], this.effect_actor[k]]);
    }
  }
}

/** Edges that join the ends of a message, or a timer and its setting. */
export const MESSAGES = new Set(["message_id", "timer", "channel_order", "inferred", "replayed"]);

/**
 * The other end of the event's message, else of the first edge it has; null where there is none.
 *
 * @param {Pick<Event, "causes" | "effects">} event
 */
export function mateOf(event) {
  const ends = [...event.causes, ...event.effects];
  return ends.find((end) => MESSAGES.has(end.joint)) ?? ends[0] ?? null;
}
