// The whole execution as a strip at the side: how many events each actor has where, the violation, the window. It is the
// scroll bar.

import { el } from "./dom.js";
import { theme } from "./theme.js";

/** @import { Diagram } from "./diagram.js" */

export class Overview {
  /** @param {Diagram} diagram */
  constructor(diagram) {
    this.diagram = diagram;
    this.canvas = el("canvas");
    this.box = el("div", { class: "overview", tabindex: "0", role: "scrollbar", "aria-orientation": "vertical", "aria-label": "Whole execution", "aria-valuemin": "0", title: "Drag to move through the whole execution" }, this.canvas);
    this.counts = /** @type {number[][] | null} */ (null);
    this.most = 1;
    this.picture = /** @type {HTMLCanvasElement | null} */ (null);
    /** What the picture was drawn for. */
    this.key = "";
    let held = false;
    const go = (/** @type {MouseEvent} */ e) => {
      const box = this.box.getBoundingClientRect();
      const d = this.diagram;
      d.move(((e.clientY - box.top) / box.height) * d.view.count - d.rows / 2, d.left);
    };
    this.box.addEventListener("pointerdown", (e) => { held = true; this.box.setPointerCapture(e.pointerId); go(e); });
    this.box.addEventListener("pointermove", (e) => { if (held) go(e); });
    this.box.addEventListener("pointerup", () => { held = false; });
    this.box.addEventListener("wheel", (e) => { e.preventDefault(); diagram.move(diagram.top + e.deltaY / diagram.row, diagram.left); }, { passive: false });
    this.box.addEventListener("keydown", (e) => {
      const pages = { PageDown: 0.9, PageUp: -0.9 }[e.key];
      if (!pages) return;
      e.preventDefault();
      diagram.move(diagram.top + pages * diagram.rows, diagram.left);
    });
  }

  async load() {
    const { view, trace } = this.diagram;
    const counts = await trace.overview(view.events);
    if (view !== this.diagram.view) return;
    this.counts = counts;
    this.most = Math.max(1, ...this.counts.map((row) => Math.max(...row)));
    this.picture = null;
    this.diagram.draw();
  }

  paint() {
    const d = this.diagram, ratio = window.devicePixelRatio || 1;
    const width = this.box.clientWidth, height = this.box.clientHeight;
    if (!width || !height) return;
    const key = [width, height, ratio, theme.colors.card].join(" ");
    if (this.counts && (!this.picture || this.key !== key)) this.render(this.counts, width, height, ratio, key);
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    const ctx = this.canvas.getContext("2d");
    if (!ctx) return;
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, this.canvas.width, this.canvas.height);
    if (this.picture) ctx.drawImage(this.picture, 0, 0);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    const at = (/** @type {number} */ row) => (row / Math.max(1, d.view.count)) * height;
    ctx.fillStyle = theme.colors.alarm;
    for (const i of d.trace.violations) ctx.fillRect(0, at(d.view.row(i)) - 1, width, 2.5);
    ctx.fillStyle = theme.colors.future;
    // Many hits share a line of the picture; each line is drawn once.
    const lines = new Uint8Array(Math.ceil(height * ratio) + 1);
    for (const i of d.found) lines[Math.floor(at(d.view.row(i)) * ratio)] = 1;
    lines.forEach((hit, line) => { if (hit) ctx.fillRect(width - 7, line / ratio, 7, 1.5); });
    ctx.fillStyle = theme.colors.future;
    for (const i of d.notes.keys()) ctx.fillRect(0, at(d.view.row(i)) - 1, 10, 3);
    if (d.selected !== null) {
      ctx.fillStyle = theme.colors.accent;
      ctx.fillRect(0, at(d.view.row(d.selected)), width, 2);
    }
    const top = at(d.top), size = Math.max(6, at(Math.min(d.rows, d.view.count)));
    ctx.strokeStyle = theme.colors.accent;
    ctx.lineWidth = 1.5;
    ctx.strokeRect(1, top + 0.75, width - 2, Math.min(size, height - top) - 1.5);
    this.box.setAttribute("aria-valuemax", String(Math.max(0, Math.round(d.view.count - d.rows))));
    this.box.setAttribute("aria-valuenow", String(Math.round(d.top)));
  }

  /**
   * @param {number[][]} all
   * @param {number} width
   * @param {number} height
   * @param {number} ratio
   * @param {string} key
   */
  render(all, width, height, ratio, key) {
    const picture = el("canvas");
    picture.width = Math.round(width * ratio);
    picture.height = Math.round(height * ratio);
    const ctx = picture.getContext("2d"), { lanes } = this.diagram.view;
    if (!ctx) return;
    [this.key, this.picture] = [key, picture];
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    const lane = width / Math.max(1, lanes.length), row = height / all.length;
    ctx.fillStyle = theme.colors.soft;
    all.forEach((counts, r) => {
      lanes.forEach(({ actors }, l) => {
        const count = actors.reduce((sum, actor) => sum + counts[actor], 0);
        if (!count) return;
        ctx.globalAlpha = Math.min(0.8, 0.15 + 0.6 * Math.sqrt(count / this.most));
        ctx.fillRect(l * lane, r * row, Math.max(1, lane - 1), Math.max(1, row));
      });
    });
  }
}
