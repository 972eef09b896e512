// Start: the data is unpacked and shown.

import { App } from "./app.js";
import { $ } from "./dom.js";
import { setTheme } from "./theme.js";

/** @import { PageData } from "./types.js" */

/** @returns {Promise<PageData>} */
async function unpack() {
  const text = ($("data").textContent ?? "").trim();
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let k = 0; k < bytes.length; k++) bytes[k] = letters.charCodeAt(k);
  if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old (it has no DecompressionStream)");
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

async function start() {
  const began = performance.now();
  const preference = matchMedia("(prefers-color-scheme: dark)");
  setTheme(preference.matches);
  preference.addEventListener("change", () => { setTheme(preference.matches); if (window.demi) window.demi.paint(); });
  const page = await unpack();
  if (page.schema !== "demi-page/2") throw new Error(`its data is ${page.schema}`);
  window.demi = new App(page);
  document.documentElement.dataset.ready = String(Math.round(performance.now() - began));
}

start().catch((error) => { $("notice").hidden = false; $("notice").textContent = `This page cannot be shown: ${error.message}`; });
