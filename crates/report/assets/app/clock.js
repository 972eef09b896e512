// Wall-clock times as logged, and how much lies between two of them. They are shown, and never decide an order.

/** @typedef {{ at: bigint, unit: "ns" | "" }} Moment in nanoseconds, or in a unit that nobody told */

/** From these sizes on a number is a time in nanoseconds, microseconds, milliseconds, seconds since 1970, each with its nanoseconds. */
const EPOCHS = /** @type {const} */ ([[10 ** 17, 1n], [10 ** 14, 1000n], [10 ** 11, 1000000n], [10 ** 8, 1000000000n]]);

/**
 * @param {string | null} text
 * @returns {Moment | null}
 */
export function momentOf(text) {
  if (text === null) return null;
  const stamp = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9})\d*)?\s*(Z|[+-]\d\d:?\d\d)?$/i.exec(text.trim());
  if (stamp) {
    const [, day, time, fraction = "", zone = "Z"] = stamp;
    const ms = Date.parse(`${day}T${time}${zone.toUpperCase().replace(/^([+-]\d\d)(\d\d)$/, "$1:$2")}`);
    return Number.isNaN(ms) ? null : { at: BigInt(ms) * 1000000n + BigInt(fraction.padEnd(9, "0")), unit: "ns" };
  }
  const number = /^(-?\d{1,20})(?:\.(\d{1,9})\d*)?$/.exec(text.trim());
  if (!number) return null;
  const [, whole, fraction = ""] = number, factor = EPOCHS.find(([least]) => Math.abs(Number(whole)) >= least)?.[1];
  if (factor === undefined) return fraction ? null : { at: BigInt(whole), unit: "" };
  return { at: BigInt(whole) * factor + (BigInt(fraction.padEnd(9, "0")) * factor) / 1000000000n, unit: "ns" };
}

/**
 * How long it is from one time to another, in words; null where they cannot be compared.
 *
 * @param {string | null} from
 * @param {string | null} to
 */
export function between(from, to) {
  const a = momentOf(from), b = momentOf(to);
  if (!a || !b || a.unit !== b.unit) return null;
  const span = b.at - a.at;
  return a.unit === "ns" ? duration(span) : String(span);
}

/** @type {Record<string, number>} */
const UNITS = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, min: 6e10, m: 6e10, h: 3.6e12, "": 1 };

/**
 * A time such as `100ms` or `1.5 s` in nanoseconds, one without a unit as it is; NaN where it is none.
 *
 * @param {string} text
 */
export function nanoseconds(text) {
  const found = /^(-?\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s|min|m|h|)$/.exec(text.trim());
  return found ? Number(found[1]) * UNITS[found[2]] : NaN;
}

/**
 * @param {bigint} ns
 * @returns {string}
 */
export function duration(ns) {
  if (ns < 0n) return `−${duration(-ns)}`;
  const n = Number(ns), units = /** @type {const} */ ([[1e9, "s"], [1e6, "ms"], [1e3, "µs"]]);
  if (n >= 6e10) return n >= 3.6e12 ? `${Math.floor(n / 3.6e12)} h ${Math.floor((n % 3.6e12) / 6e10)} min` : `${Math.floor(n / 6e10)} min ${Math.floor((n % 6e10) / 1e9)} s`;
  for (const [size, unit] of units) if (n >= size) return `${Number((n / size).toPrecision(4))} ${unit}`;
  return `${n} ns`;
}
