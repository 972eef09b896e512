// The space-time diagram of one execution: actors are lanes, time goes down, one event a row. Only rows in sight are
// drawn.

import { between } from "./clock.js";
import { el } from "./dom.js";
import { MESSAGES } from "./edges.js";
import { Overview } from "./overview.js";
import { arrow, fitted, fittedHead, label, mark, ring, stub } from "./paint.js";
import { clamp, clip, plural } from "./text.js";
import { colorOf, theme } from "./theme.js";
import { isLocal } from "./trace.js";
import { Filter, View } from "./view.js";

/** @import { Track } from "./track.js" */
/** @import { Reach } from "./causality.js" */
/** @import { AnyTrace, Context, DiagramListener, Edge, End, Event } from "./types.js" */

const HEADER = 34;
const SMALLEST = 3, LARGEST = 44;
/** From this many rows in sight on, not each event is drawn by itself. */
const COARSE = 1500;

export class Diagram {
  /**
   * @param {AnyTrace} trace
   * @param {DiagramListener} on
   */
  constructor(trace, on) {
    this.trace = trace;
    this.on = on;
    /** Which events are shown, and where. */
    this.view = new View(trace, new Filter());
    this.top = 0;
    this.left = 0;
    this.row = trace.n <= 60 ? 30 : 22;
    this.selected = /** @type {number | null} */ (null);
    this.hovered = /** @type {number | null} */ (null);
    this.past = /** @type {Reach | null} */ (null);
    this.future = /** @type {Reach | null} */ (null);
    this.chosen = /** @type {Set<string>} */ (new Set());
    this.found = /** @type {Set<number>} */ (new Set());
    /** Events one after the other that are shown as a path, while one of them is chosen. */
    this.path = /** @type {number[]} */ ([]);
    this.apart = false;
    /** @type {Diagram | undefined} that of the other execution */
    this.other = undefined;
    /** @type {(i: number) => number | null} the event of the other execution that is alike */
    this.twin = () => null;
    this.marked = /** @type {number | null} where a stretch begins */ (null);
    /** @type {Map<number, string>} by event what the reader wrote at it */
    this.notes = new Map();
    /** @type {Set<number>} actors that stand out */
    this.lit = new Set();
    /** @type {Track | null} a variable that is drawn along the lanes */
    this.track = null;
    /** @type {string | null} the time from which times are told instead of steps */
    this.since = null;
    this.onWay = /** @type {Set<number> | null} */ (null);
    this.waiting = 0;
    this.canvas = el("canvas");
    this.box = el("div", { class: "canvas", tabindex: "0", role: "application", "aria-roledescription": "space-time diagram", "aria-label": `${trace.name} execution: ${plural(trace.actors.length, "actor")}, ${plural(trace.n, "event")}. Arrow keys step.` }, this.canvas);
    this.overview = new Overview(this);
    const title = el("h2", {}, el("b", {}, trace.name), ` · ${plural(trace.actors.length, "actor")} · ${plural(trace.n, "event")}`);
    this.pane = el("figure", { class: "pane" }, title, el("div", { class: "view" }, this.box, this.overview.box));
    this.pane.style.margin = "0";
    this.listen();
    new ResizeObserver(() => { this.move(this.top, this.left); this.draw(); }).observe(this.box);
  }

  get width() { return this.box.clientWidth; }
  get height() { return this.box.clientHeight - HEADER; }
  get gutter() { return this.since === null ? Math.max(30, String(this.trace.n).length * 7 + 14) : 92; }
  get rows() { return this.height / this.row; }
  get spacing() {
    const free = (this.width - this.gutter - 44) / Math.max(1, this.view.lanes.length);
    return clamp(free, 46, 260);
  }

  /** @param {number} actor */
  x(actor) { return this.gutter + this.view.lane[actor] * this.spacing + Math.min(34, this.spacing * 0.3) - this.left; }
  /** @param {number} i */
  y(i) { return HEADER + (this.view.row(i) - this.top + 0.5) * this.row; }

  listen() {
    this.box.addEventListener("wheel", (e) => {
      e.preventDefault();
      const unit = e.deltaMode === 1 ? 18 : 1;
      if (e.ctrlKey) {
        this.zoom(e.deltaY < 0 ? 1.15 : 1 / 1.15, this.rowAt(e));
        return;
      }
      const sideways = e.shiftKey ? e.deltaY : e.deltaX;
      this.move(this.top + (e.shiftKey ? 0 : e.deltaY * unit) / this.row, this.left + sideways * unit);
    }, { passive: false });
    let from = /** @type {{ x: number, y: number, top: number, left: number, moved: boolean } | null} */ (null);
    this.box.addEventListener("pointerdown", (e) => {
      from = { x: e.clientX, y: e.clientY, top: this.top, left: this.left, moved: false };
      this.box.setPointerCapture(e.pointerId);
    });
    this.box.addEventListener("pointermove", (e) => {
      if (from && (from.moved || Math.hypot(e.clientX - from.x, e.clientY - from.y) > 4)) {
        from.moved = true;
        this.move(from.top - (e.clientY - from.y) / this.row, from.left - (e.clientX - from.x));
      }
      this.hover(from && from.moved ? null : this.eventAt(e), e);
    });
    this.box.addEventListener("pointerup", (e) => {
      const i = this.eventAt(e);
      if (from && !from.moved && i !== null) this.on.select(this, i);
      if (from && !from.moved && i === null) this.light(e);
      from = null;
    });
    this.box.addEventListener("pointerleave", () => this.hover(null));
  }

  /** @param {MouseEvent} e */
  eventAt(e) {
    const row = this.rowAt(e);
    return row === null ? null : this.view.at(row);
  }

  /** @param {MouseEvent} e */
  rowAt(e) {
    const y = e.clientY - this.box.getBoundingClientRect().top - HEADER;
    const row = Math.floor(this.top + y / this.row);
    return y >= 0 && row >= 0 && row < this.view.count ? row : null;
  }

  /**
   * Lets the actors of the lane whose name was clicked stand out, or no longer.
   *
   * @param {MouseEvent} e
   */
  light(e) {
    const box = this.box.getBoundingClientRect(), x = e.clientX - box.left;
    if (e.clientY - box.top > HEADER) return;
    const lane = this.view.lanes.find(({ actors }) => x >= this.x(actors[0]) - 8 && x < this.x(actors[0]) + this.spacing - 8);
    if (lane) this.stand(lane.actors);
  }

  /**
   * Lets actors stand out, with what they have an edge with; or no longer.
   *
   * @param {number[]} actors
   */
  stand(actors) {
    const out = actors.every((actor) => this.lit.has(actor));
    for (const actor of actors) if (out) this.lit.delete(actor); else this.lit.add(actor);
    this.draw();
  }

  /**
   * @param {number | null} i
   * @param {MouseEvent} [e]
   */
  hover(i, e) {
    if (i !== this.hovered) {
      this.hovered = i;
      this.draw();
    }
    this.on.hover(i === null ? null : this.trace.get(i), e);
  }

  /**
   * @param {number} top
   * @param {number} left
   */
  move(top, left) {
    const span = this.view.lanes.length * this.spacing + this.gutter + 44;
    this.top = clamp(top, 0, Math.max(0, this.view.count - this.rows + 1));
    this.left = clamp(left, 0, Math.max(0, span - this.width));
    this.on.moved();
    this.draw();
  }

  /**
   * @param {number} factor
   * @param {number | null} [around] the row that stays where it is
   */
  zoom(factor, around) {
    const center = around ?? (this.selected === null ? this.top + this.rows / 2 : this.view.row(this.selected));
    const y = (center - this.top) * this.row;
    this.row = clamp(this.row * factor, Math.min(SMALLEST, this.fitting), LARGEST);
    this.move(center - y / this.row, this.left);
  }

  /** The height of a row at which the whole run is in sight. */
  get fitting() { return clamp(this.height / (this.view.count + 1), 1e-6, LARGEST); }

  /** Zooms so that the whole run is in sight. */
  whole() {
    this.row = this.fitting;
    this.move(0, this.left);
  }

  /**
   * Brings an event into sight, with some room around it.
   *
   * @param {number} i
   */
  show(i) {
    const room = Math.min(6, this.rows / 4);
    let top = this.top, left = this.left;
    const row = this.view.row(i);
    if (row < top + room) top = row - room;
    if (row > top + this.rows - room - 1) top = row - this.rows + room + 1;
    if (Math.abs(top - this.top) > this.rows) top = row - this.rows / 2;
    const event = this.trace.get(i);
    if (event && this.view.has(i, event.actor)) {
      const x = this.x(event.actor);
      if (x < this.gutter + 10) left -= this.gutter + 30 - x;
      if (x > this.width - 40) left += x - this.width + 90;
    }
    this.move(top, left);
  }

  /** @param {Filter} filter */
  apply(filter) {
    // What was in the middle stays in sight.
    const middle = this.selected ?? this.view.at(clamp(Math.floor(this.top + this.rows / 2), 0, Math.max(0, this.view.count - 1))) ?? 0;
    this.view = new View(this.trace, filter);
    this.overview.load().catch((error) => this.on.fail(error));
    this.move(this.view.row(middle) - this.rows / 2, this.left);
  }

  /**
   * Shows events one after the other as a path.
   *
   * @param {number[]} path in order
   * @param {boolean} [apart] whether they are concurrent
   */
  follow(path, apart = false) {
    [this.path, this.apart] = [path, apart];
    this.draw();
  }

  /** The path, where the chosen event is on it. */
  get way() { return this.selected !== null && this.path.includes(this.selected) ? this.path : []; }

  draw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.paint();
      this.overview.paint();
    });
  }

  paint() {
    const ratio = window.devicePixelRatio || 1, width = this.width, height = this.height + HEADER;
    if (!width || height <= HEADER) return;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    const ctx = this.canvas.getContext("2d"), colors = theme.colors;
    if (!ctx) return;
    const { way } = this;
    this.onWay = way.length ? new Set(way) : null;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = colors.card;
    ctx.fillRect(0, 0, width, height);
    const from = Math.max(0, Math.floor(this.top) - 1), to = Math.min(this.view.count, Math.ceil(this.top + this.rows) + 1);
    if (to - from > COARSE) {
      this.coarse(ctx, width, height, from, to);
      return;
    }
    const first = this.view.at(from) ?? 0, end = to > from ? this.view.at(to - 1) + 1 : first;
    const coming = to > from ? this.trace.load(first, end - 1) : null;
    if (coming) coming.then(() => this.draw(), (error) => this.on.fail(error));
    this.bands(ctx, width);
    this.lanes(ctx, width, height);
    const events = /** @type {Event[]} */ ([]);
    for (let row = from; row < to; row++) {
      const event = this.trace.get(this.view.at(row));
      if (event && this.view.has(event.i, event.actor)) events.push(event);
    }
    for (const message of this.trace.crossing(first, end)) if (this.view.has(message[0], message[1]) && this.view.has(message[2], message[3])) this.message(ctx, message, null, 0.35);
    for (const event of events) this.arrows(ctx, event, end);
    this.trail(ctx);
    for (const event of events) this.event(ctx, event);
    this.numbers(ctx, events);
    this.flags(ctx, from, to);
    this.names(ctx, width);
    ctx.globalAlpha = 1;
  }

  /**
   * The path, over all arrows.
   *
   * @param {Context} ctx
   */
  trail(ctx) {
    const { way } = this;
    ctx.setLineDash(this.apart ? [2, 5] : []);
    for (let k = 1; k < way.length; k++) {
      const [from, to] = [way[k - 1], way[k]], a = this.trace.actorOf(from), b = this.trace.actorOf(to);
      if (a === null || b === null || !this.view.has(from, a) || !this.view.has(to, b) || Math.max(this.y(from), this.y(to)) < 0 || Math.min(this.y(from), this.y(to)) > this.height + 60) continue;
      ctx.globalAlpha = 0.9;
      ctx.strokeStyle = theme.colors.accent;
      ctx.lineWidth = 3;
      ctx.beginPath();
      ctx.moveTo(this.x(a), this.y(from));
      ctx.lineTo(this.x(b), this.y(to));
      ctx.stroke();
    }
    ctx.setLineDash([]);
    ctx.globalAlpha = 1;
  }

  /**
   * Many rows: events that fall on the same spot are drawn once, and so are messages between the same lanes.
   *
   * @param {Context} ctx
   * @param {number} width
   * @param {number} height
   * @param {number} from
   * @param {number} to
   */
  coarse(ctx, width, height, from, to) {
    this.bands(ctx, width);
    this.lanes(ctx, width, height);
    const { trace } = this, size = clamp(this.row * 0.6, 1.5, 3);
    if (isLocal(trace)) {
      const { actor, type, texts, flags } = trace.columns, seen = new Map(), { view } = this;
      const first = view.at(from), end = view.at(to - 1) + 1;
      const colors = /** @type {Map<number, string>} */ (new Map());
      ctx.lineWidth = 0.6;
      ctx.globalAlpha = 0.3;
      ctx.strokeStyle = theme.colors.faint;
      ctx.beginPath();
      const { cause, cause_actor, effect, effect_actor } = trace.edges;
      for (let k = 0; k < cause.length; k++) {
        if (effect[k] < first || cause[k] >= end || !view.has(cause[k], cause_actor[k]) || !view.has(effect[k], effect_actor[k])) continue;
        const y = Math.round(this.y(effect[k])), lanes = view.lane[cause_actor[k]] * trace.actors.length + view.lane[effect_actor[k]];
        if (seen.get(lanes) === y >> 2) continue;
        seen.set(lanes, y >> 2);
        ctx.moveTo(this.x(cause_actor[k]), this.y(cause[k]));
        ctx.lineTo(this.x(effect_actor[k]), y);
      }
      ctx.stroke();
      ctx.globalAlpha = 1;
      seen.clear();
      for (let row = from; row < to; row++) {
        const i = view.at(row), y = Math.round(this.y(i)), a = actor[i];
        if (seen.get(a) === y) continue;
        seen.set(a, y);
        let color = theme.colors.pruned;
        if (flags[i] & 1) {
          const t = type[i];
          color = colors.get(t) ?? (t < 0 ? theme.colors.ink : colorOf(texts[t]));
          colors.set(t, color);
        }
        ctx.fillStyle = color;
        ctx.fillRect(this.x(a) - 3, y - size / 2, 6, size);
      }
    } else if (this.overview.counts) {
      const { counts, most } = this.overview, rows = counts.length;
      ctx.fillStyle = theme.colors.soft;
      counts.forEach((row, r) => row.forEach((count, a) => {
        if (!count || this.view.lane[a] < 0) return;
        ctx.globalAlpha = 0.15 + 0.6 * Math.sqrt(count / most);
        ctx.fillRect(this.x(a) - 4, this.y((r * trace.n) / rows), 8, Math.max(1, (this.row * trace.n) / rows));
      }));
      ctx.globalAlpha = 1;
    }
    const within = (/** @type {number} */ i) => this.view.row(i) >= from && this.view.row(i) < to;
    for (const i of trace.violations) if (within(i)) ring(ctx, this.width - 16, this.y(i), 4, theme.colors.alarm, []);
    this.trail(ctx);
    ctx.fillStyle = theme.colors.future;
    for (const i of this.found) if (within(i)) ctx.fillRect(this.gutter - 8, this.y(i), 6, 1.5);
    this.names(ctx, width);
  }

  /**
   * @param {Context} ctx
   * @param {number} width
   */
  bands(ctx, width) {
    const band = (/** @type {number | null} */ i, /** @type {string} */ color) => {
      if (i === null || (this.view.shown && !this.view.shown[i])) return;
      ctx.fillStyle = color;
      ctx.fillRect(0, this.y(i) - this.row / 2, width, Math.max(2, this.row));
    };
    band(this.hovered, theme.colors.hover);
    band(this.selected, theme.colors.band);
  }

  /**
   * @param {Context} ctx
   * @param {number} width
   * @param {number} height
   */
  lanes(ctx, width, height) {
    if (this.track) this.stretches(ctx, this.track);
    ctx.strokeStyle = theme.colors.lane;
    ctx.lineWidth = 1;
    ctx.beginPath();
    for (const { actors: [actor] } of this.view.lanes) {
      const x = Math.round(this.x(actor)) + 0.5;
      if (x < 0 || x > width) continue;
      ctx.moveTo(x, HEADER);
      ctx.lineTo(x, height);
    }
    ctx.stroke();
  }

  /**
   * The values of a variable, along the lanes of their actors.
   *
   * @param {Context} ctx
   * @param {Track} track
   */
  stretches(ctx, track) {
    const { view } = this, last = Math.max(0, view.count - 1), from = view.at(clamp(Math.floor(this.top) - 1, 0, last)) ?? 0, to = view.at(clamp(Math.ceil(this.top + this.rows), 0, last)) ?? 0;
    for (const { actors } of view.lanes) {
      if (actors.length > 1) continue;
      const x = Math.round(this.x(actors[0]));
      for (const stretch of track.stretches(actors[0], from, to + 1)) {
        const value = stretch.value ?? "", hue = track.hue(value), width = track.width(value);
        const top = HEADER + (view.row(stretch.from) - this.top + 0.5) * this.row, end = stretch.to >= this.trace.n ? view.count : view.row(stretch.to);
        const bottom = HEADER + (end - this.top + 0.5) * this.row;
        ctx.globalAlpha = 0.45;
        ctx.fillStyle = track.range || hue === null ? theme.colors.soft : theme.hues[hue];
        ctx.fillRect(x - width / 2, Math.max(HEADER, top), width, Math.max(0.5, Math.min(bottom, this.height + HEADER) - Math.max(HEADER, top)));
      }
    }
    ctx.globalAlpha = 1;
  }

  /**
   * What the reader wrote, at the right of its rows.
   *
   * @param {Context} ctx
   * @param {number} from
   * @param {number} to
   */
  flags(ctx, from, to) {
    ctx.globalAlpha = 1;
    for (const [i, text] of this.notes) {
      const row = this.view.row(i), y = this.y(i);
      if (row < from || row >= to || y < HEADER || (this.view.shown && !this.view.shown[i])) continue;
      ctx.fillStyle = theme.colors.future;
      ctx.beginPath();
      ctx.moveTo(this.width, y - 6); ctx.lineTo(this.width - 8, y); ctx.lineTo(this.width, y + 6);
      ctx.closePath();
      ctx.fill();
      // The event itself stays in sight.
      const actor = this.trace.actorOf(i), room = Math.min(this.width * 0.4, this.width - 30 - (actor === null ? 0 : this.x(actor)));
      if (this.row < 13 || room < 40) continue;
      ctx.font = "600 11.5px system-ui, sans-serif";
      ctx.textBaseline = "middle";
      ctx.textAlign = "right";
      const shown = fittedHead(ctx, text, room), ground = i === this.selected ? theme.colors.band : theme.colors.card, wide = ctx.measureText(shown).width;
      ctx.fillStyle = ground;
      ctx.fillRect(this.width - 18 - wide, y - 9, wide + 8, 18);
      label(ctx, shown, this.width - 12, y, theme.colors.future, ground);
    }
    ctx.textAlign = "left";
  }

  /**
   * How strongly an event is drawn: what is looked for stands out, and of a chosen event what is concurrent steps back.
   *
   * @param {Event} event
   */
  strength(event) {
    if (event.i === this.selected) return 1;
    if (this.onWay) return this.onWay.has(event.i) ? 1 : 0.22;
    if (this.lit.size && !this.lit.has(event.actor) && ![...event.causes, ...event.effects].some((end) => this.lit.has(end.actor))) return 0.18;
    if (this.chosen.size && !this.chosen.has(event.type ?? "")) return 0.18;
    if (this.past && !this.past.has(event) && !this.future?.has(event)) return 0.22;
    return 1;
  }

  /** @param {Event} event */
  colorOf(event) {
    if (!event.kept) return theme.colors.pruned;
    return event.type ? colorOf(event.type) : theme.colors.ink;
  }

  /**
   * @param {Context} ctx
   * @param {Edge} edge
   * @param {string | null} color
   * @param {number} alpha
   * @param {number[]} [dashes]
   */
  message(ctx, [send, from, receive, to], color, alpha, dashes = []) {
    ctx.globalAlpha = alpha;
    ctx.setLineDash(dashes);
    const low = this.top - 200 / this.row - 50, high = this.top + this.rows + 50;
    const first = this.view.row(send), last = this.view.row(receive);
    let [y1, y2, x1, x2] = [this.y(send), this.y(receive), this.x(from), this.x(to)];
    // Far ends are cut, so that no stroke is longer than it must be.
    const at = (/** @type {number} */ row) => x1 + ((x2 - x1) * (row - first)) / Math.max(1, last - first);
    const down = (/** @type {number} */ row) => HEADER + (row - this.top + 0.5) * this.row;
    if (last > high + 1000) [x2, y2] = [at(high), down(high)];
    if (first < low - 1000) [x1, y1] = [at(low), down(low)];
    arrow(ctx, x1, y1, x2, y2, color || theme.colors.faint, this.row < 9 ? 0.8 : 1.2, 5);
    ctx.setLineDash([]);
  }

  /**
   * @param {Context} ctx
   * @param {Event} event
   * @param {number} to where the window ends
   */
  arrows(ctx, event, to) {
    const x = this.x(event.actor), y = this.y(event.i), color = this.colorOf(event);
    const alpha = this.strength(event);
    const draw = (/** @type {End} */ end, /** @type {Edge} */ edge) => {
      if (!this.view.has(end.i, end.actor)) return;
      const other = this.trace.get(end.i);
      const dashes = end.joint === "indirect" ? [1.5, 3] : end.certain ? [] : [6, 3];
      this.message(ctx, edge, color, 0.75 * Math.min(alpha, other ? this.strength(other) : 1), dashes);
    };
    // What ends in the window is drawn by its effect.
    for (const end of event.causes) draw(end, [end.i, end.actor, event.i, event.actor]);
    for (const end of event.effects) if (end.i >= to) draw(end, [event.i, event.actor, end.i, end.actor]);
    for (const i of this.view.through(event.i)) {
      const actor = this.trace.actorOf(i);
      if (actor !== null) this.message(ctx, [i, actor, event.i, event.actor], theme.colors.faint, 0.75 * alpha, [1.5, 3]);
    }
    if (!MESSAGES.has(event.joint) && this.row >= 9) {
      ctx.globalAlpha = 0.8 * alpha;
      const target = event.to === null ? -1 : this.trace.actors.indexOf(event.to);
      const side = target >= 0 && this.view.lane[target] >= 0 && this.x(target) < x ? -1 : 1;
      if (event.kind === "send") stub(ctx, x, y, x + side * Math.min(34, this.spacing * 0.35), color, event.joint);
      else if (event.kind === "receive" && event.external) stub(ctx, x - 26, y, x - 6, color, "in");
    }
  }

  /**
   * @param {Context} ctx
   * @param {Event} event
   */
  event(ctx, event) {
    const x = this.x(event.actor), y = this.y(event.i);
    if (x < -20 || x > this.width + 20) return;
    const size = clamp(this.row * 0.24, 1.6, 5), color = this.colorOf(event);
    ctx.globalAlpha = this.strength(event);
    if (this.past && event.i !== this.selected) {
      const side = this.past.has(event) ? theme.colors.past : this.future?.has(event) ? theme.colors.future : null;
      if (side && this.row >= 6) {
        ctx.fillStyle = side;
        ctx.fillRect(x - size - 6, y - Math.min(6, this.row / 2), 2.5, Math.min(12, this.row));
      }
    }
    mark(ctx, event, x, y, size, color);
    if (this.trace.violations.includes(event.i)) ring(ctx, x, y, size + 4, theme.colors.alarm, []);
    if (this.trace.page.differences.length && this.trace.only(event.i)) ring(ctx, x, y, size + 3, theme.colors.alarm, [2, 2]);
    if (this.marked === event.i) ring(ctx, x, y, size + 6, theme.colors.accent, [2, 2]);
    if (this.trace.deviations.includes(event.i)) ring(ctx, x, y, size + 6, theme.colors.past, [3, 2]);
    if (event.i === this.selected || this.found.has(event.i)) {
      ctx.beginPath();
      ctx.lineWidth = event.i === this.selected ? 2 : 1.5;
      ctx.strokeStyle = event.i === this.selected ? theme.colors.accent : theme.colors.future;
      ctx.arc(x, y, size + 3, 0, 7);
      ctx.stroke();
    }
    if (this.row >= 13) this.caption(ctx, event, x + size + 8, y, color);
  }

  /**
   * @param {Context} ctx
   * @param {Event} event
   * @param {number} x
   * @param {number} y
   * @param {string} color
   */
  caption(ctx, event, x, y, color) {
    const room = this.spacing - (x - this.x(event.actor)) - 12;
    if (room < 30) return;
    ctx.font = event.kind === "send" || event.kind === "timer_set" ? "11px system-ui, sans-serif" : "600 11.5px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    // What steps back does so by its colour: faded text could not be read.
    const fades = ctx.globalAlpha < 1 || !event.kept;
    if (fades) ctx.font = "11px system-ui, sans-serif";
    ctx.globalAlpha = 1;
    const halo = event.i === this.selected ? theme.colors.band : event.i === this.hovered ? theme.colors.hover : theme.colors.card;
    // In a lane of several the actor is told.
    const shared = this.view.lanes[this.view.lane[event.actor]].actors.length > 1;
    label(ctx, fittedHead(ctx, shared ? `${this.trace.actors[event.actor]}: ${titleOf(event)}` : titleOf(event), room), x, y, fades ? theme.colors.quiet : color, halo);
  }

  /**
   * @param {Context} ctx
   * @param {Event[]} events
   */
  numbers(ctx, events) {
    // Of many steps in sight some are numbered; what a step does has no number of its own.
    const every = [1, 5, 20, 50, 100, 200, 500].find((step) => step * this.row >= 13) ?? 1000;
    ctx.globalAlpha = 1;
    ctx.fillStyle = theme.colors.card;
    ctx.font = "10.5px system-ui, sans-serif";
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    for (const event of events) {
      if (this.since !== null) {
        this.moment(ctx, event);
        continue;
      }
      const step = this.trace.stepOf(event.i);
      if (step === null || (step % every && event.i !== this.selected)) continue;
      ctx.fillStyle = event.i === this.selected ? theme.colors.accent : theme.colors.soft;
      ctx.fillText(String(step), this.gutter - 10, this.y(event.i));
    }
  }

  /**
   * How long after the first the event was, by the clock of its actor.
   *
   * @param {Context} ctx
   * @param {Event} event
   */
  moment(ctx, event) {
    const every = Math.ceil(13 / this.row), span = this.view.row(event.i) % every && event.i !== this.selected ? null : between(this.since, event.time);
    if (span === null) return;
    ctx.fillStyle = event.i === this.selected ? theme.colors.accent : theme.colors.soft;
    ctx.fillText(fittedHead(ctx, span.startsWith("−") ? span : `+${span}`, this.gutter - 16), this.gutter - 10, this.y(event.i));
  }

  /**
   * @param {Context} ctx
   * @param {number} width
   */
  names(ctx, width) {
    ctx.globalAlpha = 1;
    ctx.fillStyle = theme.colors.card;
    ctx.fillRect(0, 0, width, HEADER);
    ctx.fillStyle = theme.colors.line;
    ctx.fillRect(0, HEADER - 1, width, 1);
    ctx.font = "600 12px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    const here = this.selected === null ? null : this.trace.get(this.selected);
    for (const { actors, label } of this.view.lanes) {
      const x = this.x(actors[0]);
      if (x < -this.spacing || x > width) continue;
      ctx.fillStyle = here && actors.includes(here.actor) ? theme.colors.accent : theme.colors.ink;
      ctx.fillText(fitted(ctx, label, this.spacing - 12), x - 5, HEADER / 2);
      if (actors.every((actor) => this.lit.has(actor))) ctx.fillRect(x - 5, HEADER - 5, Math.max(20, this.spacing - 16), 3);
    }
  }
}

/** @type {Record<string, string>} */
const WORDS = { start: "starts", crash: "fails", restart: "new incarnation", stop: "is gone", isolate: "is cut off", heal: "is back on the network", violation: "violation", block_begin: "block begins", block_end: "block ends", state: "state" };

/**
 * What an event does, after the name of its actor.
 *
 * @param {Event} event
 */
export function sentenceOf(event) {
  const title = titleOf(event);
  if (event.kind === "send") return event.to ? `sends ${title} to ${event.to}` : `sends ${title}`;
  if (event.kind === "receive") return event.from ? `receives ${title} from ${event.from}` : `receives ${title}`;
  if (event.kind === "timer_fire") return `timer ${title} fires`;
  return title;
}

/**
 * What an event is called on its row.
 *
 * @param {Event} event
 */
export function titleOf(event) {
  const word = WORDS[event.kind];
  if (word) return event.type ? `${word} ${event.type}` : word;
  const type = event.type || clip(event.payload || "", 40) || event.kind;
  if (event.kind === "timer_set") return `sets ${type}`;
  if (event.kind === "timer_cancel") return `cancels ${type}`;
  if (event.kind === "action") return `runs ${type}`;
  return type;
}
