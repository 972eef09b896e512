// Strokes of the diagram.

import { clamp, clip } from "./text.js";
import { theme } from "./theme.js";

/** @import { Context, Event } from "./types.js" */

/**
 * The mark of an event, by what it is.
 *
 * @param {Context} ctx
 * @param {Event} event
 * @param {number} x
 * @param {number} y
 * @param {number} size
 * @param {string} color
 */
export function mark(ctx, event, x, y, size, color) {
  ctx.beginPath();
  ctx.fillStyle = color;
  ctx.strokeStyle = color;
  ctx.lineWidth = 1.5;
  switch (event.kind) {
    case "send":
      ctx.arc(x, y, size * 0.55, 0, 7);
      ctx.fillStyle = theme.colors.card;
      ctx.fill();
      ctx.stroke();
      return;
    case "timer_set":
      diamond(ctx, x, y, size * 0.7);
      ctx.fillStyle = theme.colors.card;
      ctx.fill();
      ctx.stroke();
      return;
    case "timer_fire":
      diamond(ctx, x, y, size * 1.15);
      ctx.fill();
      return;
    case "start": case "restart": case "heal":
      ctx.rect(x - size * 0.85, y - size * 0.85, size * 1.7, size * 1.7);
      ctx.fill();
      return;
    case "crash": case "stop": case "isolate":
      ctx.lineWidth = 2.2;
      ctx.strokeStyle = theme.colors.alarm;
      ctx.moveTo(x - size, y - size); ctx.lineTo(x + size, y + size);
      ctx.moveTo(x + size, y - size); ctx.lineTo(x - size, y + size);
      ctx.stroke();
      return;
    case "state": case "block_begin": case "block_end": case "timer_cancel":
      ctx.rect(x - size, y - 1, size * 2, 2);
      ctx.fill();
      return;
    case "violation":
      ctx.fillStyle = theme.colors.alarm;
      ctx.moveTo(x, y - size * 1.3); ctx.lineTo(x + size * 1.3, y + size); ctx.lineTo(x - size * 1.3, y + size);
      ctx.closePath();
      ctx.fill();
      return;
    default:
      ctx.arc(x, y, size, 0, 7);
      ctx.fill();
  }
}

/**
 * @param {Context} ctx
 * @param {number} x
 * @param {number} y
 * @param {number} r
 */
function diamond(ctx, x, y, r) {
  ctx.moveTo(x, y - r); ctx.lineTo(x + r, y); ctx.lineTo(x, y + r); ctx.lineTo(x - r, y);
  ctx.closePath();
}

/**
 * A ring around an event that matters: the violation, or a deviation from the default order (dashed).
 *
 * @param {Context} ctx
 * @param {number} x
 * @param {number} y
 * @param {number} radius
 * @param {string} color
 * @param {number[]} dashes
 */
export function ring(ctx, x, y, radius, color, dashes) {
  ctx.save();
  ctx.beginPath();
  ctx.setLineDash(dashes);
  ctx.lineWidth = 2;
  ctx.strokeStyle = color;
  ctx.arc(x, y, radius, 0, 7);
  ctx.stroke();
  ctx.restore();
}

/**
 * A message from one place to another; one to oneself bows out to the left.
 *
 * @param {Context} ctx
 * @param {number} x1
 * @param {number} y1
 * @param {number} x2
 * @param {number} y2
 * @param {string} color
 * @param {number} width
 * @param {number} size
 */
export function arrow(ctx, x1, y1, x2, y2, color, width, size) {
  ctx.strokeStyle = color;
  ctx.fillStyle = color;
  ctx.lineWidth = width;
  ctx.beginPath();
  if (x1 === x2) {
    const bow = clamp((y2 - y1) * 0.35, 6, 18);
    ctx.moveTo(x1, y1);
    ctx.bezierCurveTo(x1 - bow, y1, x2 - bow, y2, x2, y2);
    ctx.stroke();
    return;
  }
  ctx.moveTo(x1, y1);
  ctx.lineTo(x2, y2);
  ctx.stroke();
  const angle = Math.atan2(y2 - y1, x2 - x1), reach = size + 1, head = 7;
  const tx = x2 - Math.cos(angle) * reach, ty = y2 - Math.sin(angle) * reach;
  ctx.beginPath();
  ctx.moveTo(tx, ty);
  ctx.lineTo(tx - head * Math.cos(angle - 0.38), ty - head * Math.sin(angle - 0.38));
  ctx.lineTo(tx - head * Math.cos(angle + 0.38), ty - head * Math.sin(angle + 0.38));
  ctx.closePath();
  ctx.fill();
}

/**
 * A message that nobody is seen to receive, or one from outside: a short dashed stroke.
 *
 * @param {Context} ctx
 * @param {number} x1
 * @param {number} y
 * @param {number} x2
 * @param {string} color
 * @param {string} end
 */
export function stub(ctx, x1, y, x2, color, end) {
  ctx.strokeStyle = color;
  ctx.fillStyle = color;
  ctx.lineWidth = 1.2;
  ctx.setLineDash([4, 3]);
  ctx.beginPath();
  ctx.moveTo(x1, y);
  ctx.lineTo(x2, y);
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.beginPath();
  if (end === "lost") {
    ctx.moveTo(x2 - 3, y - 3); ctx.lineTo(x2 + 3, y + 3);
    ctx.moveTo(x2 + 3, y - 3); ctx.lineTo(x2 - 3, y + 3);
    ctx.stroke();
  } else if (end === "in") {
    ctx.moveTo(x2, y); ctx.lineTo(x2 - 6, y - 3); ctx.lineTo(x2 - 6, y + 3);
    ctx.closePath();
    ctx.fill();
  }
}

/**
 * Text with its background around it, so that lines behind it do not disturb.
 *
 * @param {Context} ctx
 * @param {string} text
 * @param {number} x
 * @param {number} y
 * @param {string} color
 * @param {string} halo
 */
export function label(ctx, text, x, y, color, halo) {
  ctx.lineWidth = 4;
  ctx.lineJoin = "round";
  ctx.strokeStyle = halo;
  ctx.strokeText(text, x, y);
  ctx.fillStyle = color;
  ctx.fillText(text, x, y);
}

/**
 * The end of a name that fits: names of actors mostly differ there.
 *
 * @param {Context} ctx
 * @param {string} text
 * @param {number} room
 */
export function fitted(ctx, text, room) {
  let shown = text;
  while (shown.length > 1 && ctx.measureText(shown).width > room) shown = `…${shown.slice(shown[0] === "…" ? 2 : 1)}`;
  return shown;
}

/**
 * The beginning of a text that fits.
 *
 * @param {Context} ctx
 * @param {string} text
 * @param {number} room
 */
export function fittedHead(ctx, text, room) {
  const width = ctx.measureText(text).width;
  return width <= room ? text : clip(text, Math.max(2, Math.floor((text.length * room) / width)));
}
