// One variable of all actors over the whole run, drawn along their lanes: a colour for each value, or a width where values are many numbers.

import { plainOf, valueOf } from "./json.js";
import { firstOf } from "./causality.js";

/** @import { LocalTrace } from "./trace.js" */

/** Most values that have colours of their own. */
const HUES = 8;

/** @typedef {{ from: number, to: number, value: string | null }} Stretch events from `from` to before `to`, after which an actor's variable has a value */

export class Track {
  /**
   * @param {LocalTrace} trace
   * @param {string} variable
   * @param {LocalTrace[]} [all] executions in which a value has the same colour
   */
  constructor(trace, variable, all = [trace]) {
    this.variable = variable;
    this.n = trace.n;
    /** @type {Map<number, { events: number[], values: (string | null)[] }>} by actor */
    this.spans = new Map(trace.spans.filter((span) => span.variable === variable).map((span) => [span.actor, span]));
    const counts = /** @type {Map<string, number>} */ (new Map());
    for (const { values } of all.flatMap(({ spans }) => spans.filter((span) => span.variable === variable))) for (const value of values) if (value !== null) counts.set(value, (counts.get(value) ?? 0) + 1);
    /** @type {string[]} by how often a variable becomes it */
    this.values = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([value]) => value);
    const numbers = this.values.map(numberOf);
    /** The least value and the greatest, where all are numbers and too many for colours. */
    this.range = this.values.length > HUES && numbers.every((one) => one !== null) ? { low: Math.min(...numbers.map(Number)), high: Math.max(...numbers.map(Number)) } : null;
    this.hues = new Map(this.values.slice(0, HUES).map((value, hue) => [value, hue]));
  }

  /**
   * The stretches of an actor within a part of the order.
   *
   * @param {number} actor
   * @param {number} from
   * @param {number} to
   * @returns {Stretch[]}
   */
  stretches(actor, from, to) {
    const span = this.spans.get(actor);
    if (!span) return [];
    const { events, values } = span, some = /** @type {Stretch[]} */ ([]);
    for (let k = Math.max(0, firstOf(events.length, (at) => events[at] > from) - 1); k < events.length && events[k] < to; k++) {
      if (values[k] !== null) some.push({ from: events[k], to: events[k + 1] ?? this.n, value: values[k] });
    }
    return some;
  }

  /**
   * The hue of a value; null where it has none of its own.
   *
   * @param {string} value
   */
  hue(value) { return this.hues.get(value) ?? null; }

  /**
   * How wide the stretch of a value is drawn.
   *
   * @param {string} value
   */
  width(value) {
    if (!this.range) return 8;
    return 2 + (14 * (Number(numberOf(value)) - this.range.low)) / Math.max(1e-9, this.range.high - this.range.low);
  }
}

/**
 * A value as a number; null where it is none. JavaScript may round it, which no eye sees.
 *
 * @param {string} text
 */
export function numberOf(text) {
  const plain = plainOf(valueOf(text) ?? null), number = plain === null || plain.trim() === "" ? NaN : Number(plain);
  return Number.isFinite(number) ? number : null;
}
