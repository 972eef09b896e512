// The head of the page, and the sheets below the diagram: curve, phases, completeness, warnings.

import { titleOf } from "./diagram.js";
import { $, el, put, svg } from "./dom.js";
import { named } from "./inspector.js";
import { clip, number, plural } from "./text.js";
import { isLocal } from "./trace.js";

/** @import { AnyTrace, Child, PageData } from "./types.js" */

/** @typedef {(i: number, which?: number) => void} GoRecorded shows an event of the recorded execution, or of the one of that number */

/** @param {PageData} page */
export function showFacts(page) {
  put($("facts"), page.facts.map((fact) => el("div", {}, el("dt", {}, fact.name), el("dd", {}, fact.value))));
}

/**
 * @param {PageData} page
 * @param {AnyTrace[]} traces
 * @param {GoRecorded} go
 */
export function showSheets(page, traces, go) {
  const sheets = [differenceSheet(page, traces, go), invariantSheet(page, go), curveSheet(page), phaseSheet(page), logSheet(page), messageSheet(page), warningSheet(page)];
  put($("sheets"), sheets);
}

/**
 * @param {string} title
 * @param {...Child} children
 */
const sheet = (title, ...children) => el("article", { class: "sheet" }, el("h2", {}, title), ...children);
/**
 * @param {string[]} heads
 * @param {Child[][]} rows
 */
const table = (heads, rows) => el("div", { class: "scroll", tabindex: "0" }, el("table", {},
  el("thead", {}, el("tr", {}, heads.map((head, i) => el("th", { scope: "col", class: i ? "n" : null }, head)))),
  el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, i) => (i ? el("td", { class: "n" }, cell) : el("th", { scope: "row" }, cell))))))));

/**
 * Size against replays: steps down, replays on a logarithmic scale.
 *
 * @param {PageData} page
 */
function curveSheet(page) {
  if (page.curve.length < 1) return null;
  const width = 560, height = 250, left = 46, right = 16, top = 14, bottom = 36;
  const points = page.curve, last = points[points.length - 1];
  const total = Math.max(last.replays, ...page.phases.map((phase) => phase.replays), 1);
  const most = Math.max(...points.map((p) => p.deliveries), 1), decades = Math.log10(total + 1);
  const x = (/** @type {number} */ replays) => left + ((width - left - right) * Math.log10(replays + 1)) / Math.max(decades, 0.3);
  const y = (/** @type {number} */ size) => top + (height - top - bottom) * (1 - size / most);
  const path = (/** @type {(p: typeof last) => number} */ get) => {
    let d = `M${x(points[0].replays)} ${y(get(points[0]))}`;
    for (let i = 1; i < points.length; i++) d += `H${x(points[i].replays)}V${y(get(points[i]))}`;
    return `${d}H${x(total)}`;
  };
  const ticks = [], unit = niceUnit(most);
  for (let v = 0; v <= most; v += unit) ticks.push(svg("path", { class: "axis", d: `M${left} ${y(v)}H${width - right}` }), svg("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, number(v)));
  for (let power = 0; power <= Math.ceil(decades) && 10 ** power <= total * 1.01; power++) ticks.push(svg("text", { x: x(10 ** power), y: height - bottom + 16, "text-anchor": "middle" }, number(10 ** power)));
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", role: "img", "aria-label": `Size against replays: from ${points[0].deliveries} to ${last.deliveries} deliveries` },
    ...ticks, svg("path", { d: path((p) => p.deliveries), class: "curve sizes" }), svg("path", { d: path((p) => p.externals), class: "curve outside" }),
    svg("text", { x: width - right, y: height - 4, "text-anchor": "end" }, "replays (logarithmic)"),
    svg("text", { x: left, y: height - 4, class: "sizes" }, "— deliveries"), svg("text", { x: left + 90, y: height - 4, class: "outside" }, "— external events"));
  const rows = points.map((p) => [number(p.replays), number(p.deliveries), number(p.externals), number(p.executed)]);
  return sheet("Size against replays", picture, el("details", {}, el("summary", {}, "As a table"), table(["replays", "deliveries", "externals", "deliveries executed"], rows)));
}

/** @param {number} most */
function niceUnit(most) {
  const rough = most / 5, power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  return Math.max(1, [1, 2, 5, 10].map((m) => m * power).find((unit) => unit >= rough) ?? 1);
}

/**
 * Phases that changed something, and all others in one line.
 *
 * @param {PageData} page
 */
function phaseSheet(page) {
  if (!page.phases.length) return null;
  const rows = [], rest = { replays: 0, seconds: 0, n: 0 };
  let size = "";
  for (const phase of page.phases) {
    const now = `${phase.deliveries} ${phase.externals}`;
    if (now === size) {
      rest.n += 1;
      rest.replays += phase.replays;
      rest.seconds += phase.seconds;
    } else {
      rows.push([phase.phase, number(phase.replays), phase.seconds.toFixed(3), number(phase.deliveries), number(phase.externals)]);
      size = now;
    }
  }
  if (rest.n) rows.push([`${rest.n} passes without gain`, number(rest.replays), rest.seconds.toFixed(3), "", ""]);
  return sheet("Phases of the minimization", table(["phase", "replays", "seconds", "deliveries", "externals"], rows));
}

/** @param {PageData} page */
function logSheet(page) {
  if (!page.completeness.length) return null;
  const rows = page.completeness.map((log) => {
    const name = log.incarnation ? `${log.actor} (incarnation ${log.incarnation})` : log.actor;
    // Positions are texts: JavaScript would round large ones.
    const missed = BigInt(log.missing), share = 1 - Number(missed) / Math.max(1, Number(log.last));
    const bar = el("i", {});
    bar.style.width = `${Math.floor(share * 100)}%`;
    const gaps = log.gaps.map(([a, b]) => (a === b ? `${a}` : `${a}–${b}`)).join(", ");
    return [name, number(log.events), `${number(log.first)}–${number(log.last)}`, el("span", { class: missed ? "gap" : null, title: gaps }, missed ? `${number(log.missing)} (${clip(gaps, 24)})` : "none"), el("span", { class: "meter", title: `${(share * 100).toFixed(1)} %` }, bar)];
  });
  const missing = page.completeness.reduce((sum, log) => sum + BigInt(log.missing), 0n);
  return sheet("Completeness of the logs", el("p", {}, missing ? `${plural(missing, "position")} missing from the logs: order through them is not known.` : "Every log is complete from its first position to its last."), table(["log", "events", "positions", "missing", "complete"], rows));
}

/**
 * The invariants of a file; `go` shows the event with which one fails first.
 *
 * @param {PageData} page
 * @param {GoRecorded} go
 */
function invariantSheet(page, go) {
  if (!page.invariants.length) return null;
  const rows = page.invariants.map((invariant) => {
    const what = el("span", { class: "predicate", title: invariant.holds }, invariant.name ? `${invariant.name}: ${invariant.holds}` : invariant.holds);
    const at = invariant.at < 0 ? invariant.event : el("button", { type: "button", onclick: () => go(invariant.at) }, invariant.event);
    const found = invariant.found !== "fails" ? invariant.found : el("span", { class: "gap", title: invariant.of }, "fails at ", at);
    const tried = invariant.episodes == null ? "–" : number(invariant.episodes);
    return [what, invariant.class || "all actors", found, number(invariant.checked), tried, invariant.bits == null ? "–" : invariant.bits.toFixed(1)];
  });
  const failing = page.invariants.filter((invariant) => invariant.found === "fails").length;
  const whole = sheet("Invariants", el("p", {}, failing ? `${failing} of ${plural(page.invariants.length, "invariant")} fail in the recorded execution.` : "None fails in the recorded execution."), table(["invariant", "actors", "here", "states looked at", "tried before", "bits"], rows));
  whole.classList.add("wide");
  return whole;
}

/**
 * Where the logs of two executions first differ.
 *
 * @param {PageData} page
 * @param {AnyTrace[]} traces
 * @param {GoRecorded} go
 */
function differenceSheet(page, traces, go) {
  if (!page.differences.length) return null;
  const [a, b] = page.traces.map((trace) => trace.name);
  const link = (/** @type {number} */ i, /** @type {number} */ which) => (i < 0 ? "has no further event" : el("button", { type: "button", class: "link", onclick: () => go(i, which) }, named(traces[which], i)));
  return sheet("Where they first differ", el("p", {}, "By actor the first event that is not alike: another kind, end, type or content. The earliest comes first.", el("span", { class: "keyed" }, " n goes to the next event that only one has.")),
    table(["actor", `in ${a}`, `in ${b}`], page.differences.map(({ actor, first, second }) => [actor, link(first, 0), link(second, 1)])));
}

/** @param {PageData} page */
function messageSheet(page) {
  const rows = page.unmatched.filter(([, n]) => n !== "0").map(([name, n]) => [name, number(n)]);
  if (!page.unmatched.length) return null;
  return sheet("Messages without a counterpart", rows.length ? table(["what became of them", "messages"], rows) : el("p", {}, "Every message has both its ends."));
}

/** @param {PageData} page */
function warningSheet(page) {
  if (!page.warnings.length) return null;
  return sheet("Worth knowing", el("ul", {}, page.warnings.map((warning) => el("li", {}, warning))));
}

/**
 * The steps as a list, for paper.
 *
 * @param {AnyTrace} trace
 * @param {string[]} violation
 */
export function showPrinted(trace, violation) {
  if (!isLocal(trace) || trace.steps.length > 400) {
    return put($("printed"), el("p", {}, `The ${trace.name} execution has ${plural(trace.n, "event")}, too many to print as a list.`));
  }
  const item = (/** @type {number} */ i) => {
    const event = trace.get(i);
    if (!event) return null;
    const changed = trace.state(i).filter((row) => row.at === i).map((row) => `${row.variable}: ${row.before ?? "–"} → ${row.value ?? "gone"}`);
    const text = event.payload || "";
    return el("li", {}, el("b", {}, `${trace.actors[event.actor]} `), titleOf(event), event.from && event.kind === "receive" ? ` from ${event.from}` : "", text ? el("p", {}, clip(text, 200)) : null, changed.length ? el("p", {}, changed.join("; ")) : null);
  };
  put($("printed"), el("h2", {}, `Steps of the ${trace.name} execution`), el("ol", {}, trace.steps.map(item)), violation.length ? el("p", {}, `After the last step: ${violation.join(", ")}`) : null);
}
