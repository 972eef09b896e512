"""Opens a report page in headless Chromium through the DevTools protocol, uses it as a reader would, and prints what
it saw and measured as JSON.

    python drive.py URL [--pictures FOLDER] [--steps N] [--search TEXT].. [--chromium PATH]

Needs the package `websockets`. Exit status 1 when something on the page is not as it should be.
"""

import argparse
import asyncio
import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import websockets


class Page:
    """One page of the browser."""

    def __init__(self, socket):
        self.socket, self.number, self.problems = socket, 0, []

    async def call(self, method, **params):
        self.number += 1
        await self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            answer = json.loads(await asyncio.wait_for(self.socket.recv(), 60))
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.note(answer)

    def note(self, event):
        if event.get("method") == "Runtime.exceptionThrown":
            self.problems.append(event["params"]["exceptionDetails"].get("exception", {}).get("description", "exception"))
        if event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
            entry = event["params"]["entry"]
            if "favicon" not in entry.get("url", ""):
                self.problems.append(entry["text"])

    async def run(self, script):
        result = await self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    async def cpu(self):
        """Time of the page's main thread on a processor so far, in ms: what else the machine does is not in it."""
        metrics = (await self.call("Performance.getMetrics"))["metrics"]
        return 1000 * next(m["value"] for m in metrics if m["name"] == "TaskDuration")

    async def key(self, key):
        text = key if len(key) == 1 else ""
        # The browser's own keys are known by their number.
        code = {"Escape": 27, "Enter": 13, "Home": 36, "End": 35}.get(key, 0)
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text, windowsVirtualKeyCode=code)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    async def arrow(self, key, shift=False):
        for kind in ("keyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, modifiers=8 if shift else 0)

    async def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def until(self, script, what, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if await self.run(script):
                    return
            except RuntimeError as error:
                # The page that was asked made room for the one that is waited for.
                if "navigated or closed" not in str(error):
                    raise
            await asyncio.sleep(0.02)
        raise AssertionError(f"{what}: not within {seconds} s")

    async def picture(self, folder, name, **params):
        if folder:
            shot = await self.call("Page.captureScreenshot", format="png", **params)
            with open(os.path.join(folder, f"{name}.png"), "wb") as file:
                file.write(base64.b64decode(shot["data"]))


# Steps and waits until the step was painted: two frames, of which the second begins after the first is drawn.
STEP = """new Promise((done) => {
  const began = performance.now();
  demi.step(true).then(() => requestAnimationFrame(() => setTimeout(() => done(performance.now() - began))));
})"""


# The same without waiting for a frame: what the page itself does for a step, drawing included.
WORK = """(async () => {
  const began = performance.now();
  await demi.step(true);
  demi.paint();
  return performance.now() - began;
})()"""


# Contrast of all text in sight with what it stands on, in the diagram too: the least, and the text that has it.
CONTRAST = """(async () => {
  const parts = (color) => {
    const probe = parts.context ??= Object.assign(document.createElement("canvas"), {width: 1, height: 1}).getContext("2d", {willReadFrequently: true});
    probe.clearRect(0, 0, 1, 1);
    probe.fillStyle = color;
    probe.fillRect(0, 0, 1, 1);
    return [...probe.getImageData(0, 0, 1, 1).data].map((c) => c / 255);
  };
  const light = (c) => { const [r, g, b] = c.slice(0, 3).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const over = (c, under) => [0, 1, 2].map((k) => c[k] * c[3] + under[k] * (1 - c[3])).concat(1);
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)]; return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05); };
  let least = [21, ""], texts = 0;
  const note = (text, color, ground) => { texts++; const r = ratio(over(color, ground), ground); if (r < least[0]) least = [r, text.slice(0, 60)]; };
  const ground = (node) => {
    const stack = [];
    for (let n = node; n; n = n.parentElement) {
      const c = parts(getComputedStyle(n).backgroundColor);
      stack.push(c);
      if (c[3] === 1) break;
    }
    return stack.reduceRight((under, c) => over(c, under), [1, 1, 1, 1]);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.data.trim() || !parent.checkVisibility({visibilityProperty: true, opacityProperty: true}) || parent.closest("script, style, .hidden, dialog:not([open])")) continue;
    const style = getComputedStyle(parent);
    note(node.data.trim(), parts(parent instanceof SVGElement ? style.fill : style.color), ground(parent));
  }
  const proto = CanvasRenderingContext2D.prototype, { fillText, strokeText } = proto;
  let halo = null;
  proto.strokeText = function (text, ...rest) { halo = [text, this.strokeStyle]; return strokeText.call(this, text, ...rest); };
  proto.fillText = function (text, ...rest) {
    const color = parts(this.fillStyle);
    color[3] *= this.globalAlpha;
    const card = getComputedStyle(document.documentElement).getPropertyValue("--card");
    note(`diagram: ${text}`, color, parts(halo && halo[0] === text ? halo[1] : card));
    halo = null;
    return fillText.call(this, text, ...rest);
  };
  demi.paint();
  Object.assign(proto, { fillText, strokeText });
  return {least: Math.round(least[0] * 100) / 100, text: least[1], texts};
})()"""


# What stands out of a narrow window and cannot be scrolled to.
TOO_WIDE = """[...document.querySelectorAll("main *, .top *, .facts *, .sheets *")].filter((e) => {
  if (!e.checkVisibility() || e.closest(".hidden, .canvas, svg")) return false;
  const box = e.getBoundingClientRect();
  if (box.right <= innerWidth + 1) return false;
  for (let p = e.parentElement; p; p = p.parentElement) if (["auto", "scroll"].includes(getComputedStyle(p).overflowX)) return false;
  return true;
}).map((e) => `${e.tagName} ${e.className} ${e.textContent.slice(0, 40)}`).slice(0, 5)"""


async def legible(page, when):
    seen = await page.run(CONTRAST)
    check(seen["texts"] > 20, f"there is text to look at, {when}: {seen}")
    check(seen["least"] >= 4.5, f"text has a contrast of at least 4.5, {when}: {seen}")
    return seen["least"]


# The rules of axe-core, where `npm ci` in crates/report has installed it.
AXE = os.path.join(os.path.dirname(__file__), "../../crates/report/node_modules/axe-core/axe.min.js")


async def accessible(page, when):
    """No rule of axe-core is violated by what is shown; None where it is not installed."""
    if not os.path.exists(AXE):
        return None
    if not await page.run("'axe' in window"):
        with open(AXE, encoding="utf-8") as file:
            await page.run(file.read() + ";0")
    await page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    found = await page.run("axe.run(document, {resultTypes: ['violations', 'passes']}).then((seen) => ({passes: seen.passes.length, violations: seen.violations.map((v) => [v.id, v.help, v.nodes.map((node) => node.html.slice(0, 200)).slice(0, 3)])}))")
    check(found["passes"] > 15, f"axe-core looks at the page, {when}: {found}")
    check(not found["violations"], f"no rule of axe-core is violated, {when}: {json.dumps(found['violations'])}")
    return found["passes"]


async def keys(page):
    """The list of events, with the keyboard alone."""
    row = "demi.list.active"
    here = "document.activeElement.getAttribute('role') === 'option' && Number(document.activeElement.dataset.row) === demi.list.active"
    await page.key("Escape")
    await page.key("l")
    await page.until(here, "l goes to the list")
    check(await page.run("document.querySelectorAll('#events [role=option][tabindex=\"0\"]').length") == 1, "Tab comes to one row of the list")
    check(await page.run("Number(document.activeElement.ariaSetSize) === demi.current.trace.n && Number(document.activeElement.ariaPosInSet) === demi.list.active + 1"), "a row says its place among all")
    await page.arrow("Home")
    for n in range(3):
        await page.arrow("ArrowDown")
    await page.until(f"{row} === Math.min(3, demi.current.trace.n - 1) && {here}", "arrows move in order")
    label = await page.run("document.activeElement.getAttribute('aria-label')")
    shown = await page.run("document.activeElement.textContent.trim()")
    check(label.startswith(shown) and "undefined" not in label, f"a row says what its event is: {label}, {shown}")
    await page.arrow("PageDown")
    await page.until(f"{row} > 3 && {here}", "page by page")
    await page.arrow("End")
    await page.until(f"{row} === demi.current.trace.n - 1 && {here}", "End goes to the last event")
    await page.arrow("Home")
    await page.until(f"{row} === 0 && {here}", "Home goes to the first event")
    # Along a message, and back; along an actor, and back.
    sent = await page.run("(() => { const t = demi.current.trace; for (let i = 0; i < Math.min(t.n, 1000); i++) { const e = t.get(i); if (e && e.kind === 'send' && e.effects.length) return [i, e.effects[0].i]; } return null; })()")
    if sent:
        await page.run(f"demi.list.activate({sent[0]}, true)")
        await page.arrow("ArrowRight")
        await page.until(f"{row} === {sent[1]} && {here}", "→ follows a message")
        await page.arrow("ArrowLeft")
        await page.until(f"{row} === {sent[0]} && {here}", "← goes back to its send")
    start = await page.run(row)
    after = await page.run(f"demi.current.trace.nextOfActor({start}, true)")
    await page.arrow("ArrowDown", shift=True)
    if after is not None:
        await page.until(f"{row} === {after} && {here}", "Shift ↓ goes along the actor")
        await page.arrow("ArrowUp", shift=True)
        await page.until(f"{row} === {start} && {here}", "Shift ↑ goes back")
    await page.key("Enter")
    await page.until(f"demi.current.selected === {start} && document.activeElement.ariaSelected === 'true'", "Enter chooses the event")


async def searched(page, text):
    """How long a search takes until it is painted, and how much of that on a processor."""
    times, before = [], await page.cpu()
    for _ in range(5):
        times.append(await page.run(f"(async () => {{ demi.search.input.value = {json.dumps(text)}; const began = performance.now(); await demi.search.run(); demi.paint(); return performance.now() - began; }})()"))
    cpu = (await page.cpu() - before) / len(times)
    hits = await page.run("demi.search.hits.total")
    return {"hits": hits, "median_ms": round(sorted(times)[len(times) // 2]), "cpu_ms": round(cpu)}


async def linked(page):
    """Each event has an address, which is copied by a key and leads back to it."""
    await page.key("Home")
    first = "demi.current.trace.nextStep(-1, true)"
    await page.until(f"{first}.then((i) => demi.current.selected === i && location.hash === demi.link())", "Home goes to the first step")
    await page.run("document.execCommand = (what) => { window.copied = what === 'copy' ? getSelection().toString() || document.activeElement.value : null; return true; }; navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    await page.key("y")
    await page.until("window.copied === location.href", "y copies the address")
    here, name = await page.run("[demi.current.selected, demi.current.trace.get(demi.current.selected).id]")
    check(name in await page.run("decodeURIComponent(location.hash)"), "the address has the name of the event")
    await page.run("demi.end(true)")
    await page.until(f"demi.current.selected !== {here} && location.hash === demi.link()", "another event has another address")
    await page.run("location.hash = window.copied.split('#')[1]")
    await page.until(f"demi.current.selected === {here}", "an address leads to its event")
    # In a page that opens with it, too; the one that opened without stays in the history.
    await page.call("Page.reload")
    await page.until(f"document.documentElement?.dataset.ready !== undefined && window.demi?.current.selected === {here} && window.copied === undefined", "a page opens at the event of its address", 60)
    await page.run("location.hash = '#nobody/77'")
    await page.until("document.getElementById('said').textContent.includes('nobody/77')", "what is not there is said")
    check(await page.run(f"demi.current.selected === {here}"), "and the choice stays")


async def fields(page):
    """Searches in one field and by a regular expression, and what the panel tells of an event."""
    async def hits(text):
        await page.run(f"(() => {{ const i = document.getElementById('search'); i.value = {json.dumps(text)}; return demi.search.run(); }})()")
        return await page.run("demi.search.hits.total")
    event = "demi.current.trace.get(demi.current.selected)"
    await page.key("Home")
    await page.until("demi.current.selected !== null", "an event is chosen")
    kind = await page.run(f"{event}.kind")
    found = await hits(f"kind:{kind}")
    check(0 < found and found + await hits(f"NOT kind:{kind}") == await page.run("demi.current.trace.n"), "a field is looked in alone")
    check(await hits(f"kind:/^{kind}$/") <= found and await hits("kind:/^$/") == 0 and await hits(f"kind:/^{kind}$/") > 0, "a regular expression finds its events")
    await page.run("document.getElementById('search').value = ''; demi.search.run()")
    await page.until("document.querySelector('#event details.record pre')?.textContent.length > 2", "the record of an event is there")
    states = await page.run("!demi.page.served && demi.current.trace.changes.event.length > 0")
    if states:
        await page.run("demi.end(true)")
        await page.until("document.querySelectorAll('#states details').length > 0", "the variables of the actors are told")
    # An event with a time, whose actor had one before it.
    timed = await page.run("(async () => { const t = demi.current.trace; if (demi.page.served) return null; for (let i = 0; i < t.n; i++) { const e = t.get(i), before = e.time && !e.loose ? await t.nextOfActor(i, false) : null; if (before !== null && t.get(before).time) return i; } return null; })()")
    if timed is not None:
        await page.run(f"demi.select(demi.current, {timed})")
        await page.until("document.getElementById('event').textContent.includes('since the event before it')", "the time since the event before is told")
    await page.key("Home")


async def chains(page):
    """Events with an order between them, and the longest chain to one."""
    async def look(text):
        await page.key("/")
        await page.run("document.getElementById('search').value = ''")
        await page.call("Input.insertText", text=text)
        await page.until(f"document.getElementById('search').value === demi.search.asked && demi.search.asked === {json.dumps(text)}", f"{text} is looked for")
    start = await page.run("(() => { const t = demi.current.trace; for (let i = 0; i < Math.min(t.n, 1000); i++) { const e = t.get(i); if (e && e.kind === 'send' && e.effects.length) return [t.idOf(i), t.idOf(e.effects[0].i), e.effects[0].i]; } return null; })()")
    if start:
        sent, received, receive = start
        exact = lambda name: "id:/^" + re.sub(r"([.*+?^${}()|\[\]\\/])", r"\\\1", name) + "$/"
        await look(f"{exact(sent)} -> {exact(received)}")
        await page.until(f"demi.search.hits.events.includes({receive})", "an order between two events is found")
        await page.key("Enter")
        await page.until("demi.current.way.length === 2", "Enter shows the first match as a path")
        check(await page.run("demi.current.past.has(demi.current.trace.get(demi.current.way[0]))"), "the first event of a match happens before the second")
    await look("type:/(/")
    await page.until("document.getElementById('search').getAttribute('aria-invalid') === 'true' && document.querySelector('#results output').textContent.length > 10", "what cannot be understood is said")
    await page.key("Escape")
    await page.until("document.getElementById('results').hidden", "Escape ends the search")
    # The last event that comes from another log; a record of a monitor may come from none.
    late = await page.run("(async () => { const t = demi.current.trace, from = Math.max(0, t.n - 1000); await t.load(from, t.n - 1); for (let i = t.n - 1; i >= from; i--) if (t.get(i).causes.length) return i; return t.n - 1; })()")
    await page.run(f"demi.select(demi.current, {late})")
    await page.key("c")
    await page.until("demi.current.way.length > 1 && demi.current.way[demi.current.way.length - 1] === demi.current.selected && document.querySelector('#results h2').textContent.startsWith('Longest chain')", "c shows the longest chain to the event")
    middle = await page.run("demi.current.way[demi.current.way.length >> 1]")
    await page.run(f"demi.select(demi.current, {middle})")
    await page.key("m")
    await page.until(f"demi.current.marked === {middle}", "m marks an event")
    await page.run(f"demi.select(demi.current, {late})")
    await page.key("c")
    await page.until(f"demi.current.way[0] === {middle}", "the chain begins at the mark")
    await page.run(f"demi.current.marked = null")
    await page.key("/")
    await page.key("Escape")
    await page.until("document.getElementById('results').hidden", "Escape ends the list")
    await page.key("Escape")
    await page.until("demi.current.way.length === 0", "and then the choice and its chain")


async def counted(page, args):
    """Events are counted, of the whole run and of parts of it; times stand in place of steps."""
    await page.run("demi.end(true)")
    await page.key("t")
    await page.until("!document.getElementById('counts').hidden && document.activeElement.ariaLabel === 'Which events'", "t opens the counts")
    # A select has keys of its own.
    choose = "(() => { const [where, by] = document.querySelectorAll('#counts select'); where.value = %s; by.value = %s; where.dispatchEvent(new Event('change')); })()"
    rows = "[...document.querySelectorAll('#counts tbody tr')]"
    count = "Number(%s.children[1].textContent.replaceAll('\u202f', ''))"
    if await page.run("demi.page.served"):
        await page.until(f"{rows}.length > 0 && {rows}.reduce((sum, row) => sum + {count % 'row'}, 0) === demi.current.trace.n", "a server counts all events")
        await page.run(choose % ('"found"', '"type"'))
        await page.until("document.querySelector('#counts output').textContent.includes('--sql')", "a served page says how the rest is counted")
        await page.run(choose % ('"shown"', '"kind"'))
        await page.until(f"document.querySelector('#counts th')?.textContent === 'kind' && {rows}.length > 0", "a server counts by kind")
    else:
        await page.run(choose % ('"shown"', '"type"'))
        check(await page.run(f"{rows}.reduce((sum, row) => sum + {count % 'row'}, 0) === demi.current.view.count"), "all events are counted")
        await page.run(f"{rows}[0].querySelector('button').click()")
        await page.until(f"demi.search.asked !== '' && demi.search.hits.total === {count % f'{rows}[0]'}", "a group is searched for")
        await page.run(choose % ('"found"', '"actor"'))
        check(await page.run(f"{rows}.reduce((sum, row) => sum + {count % 'row'}, 0) === demi.search.hits.total"), "what is found is counted by actor")
        await page.run(choose % ('"before the chosen event"', '"kind"'))
        check(await page.run(f"{rows}.reduce((sum, row) => sum + {count % 'row'}, 0) === demi.current.past.size - 1"), "what happens before an event is counted")
        await page.run(choose % ('"in sight"', '"type"'))
        await page.until(f"{rows}.reduce((sum, row) => sum + {count % 'row'}, 0) <= Math.ceil(demi.current.rows) + 1", "what is in sight is counted")
        await page.run("demi.current.marked = demi.current.past.has(demi.current.trace.get(0)) ? 0 : demi.current.selected")
        await page.run(choose % ('"between the mark and it"', '"actor"'))
        check(await page.run(f"{rows}.length > 0 && {rows}.reduce((sum, row) => sum + {count % 'row'}, 0) <= demi.current.past.size"), "a stretch between two events is counted")
        await page.run("demi.current.marked = null")
        await page.run(choose % ('"shown"', '"type and actor"'))
        await page.run("[...document.querySelectorAll('#counts th button')].find((b) => b.textContent.startsWith('first')).click()")
        await page.until("document.querySelector('#counts [aria-sort=descending]').textContent.startsWith('first')", "the counts are sorted by a column")
        if await page.run("demi.current.trace.columns.fields.some((n) => n >= 0)"):
            member = await page.run("(() => { const t = demi.current.trace; for (let i = 0; i < t.n; i++) { const e = t.get(i); if (e.fields?.startsWith('{')) { const [name] = Object.keys(JSON.parse(e.fields)); if (name && !/[.\\s]/.test(name)) return name; } } return null; })()")
            if member:
                await page.run(f"(() => {{ const i = document.querySelector('#counts input'); i.value = {json.dumps('fields.' + member)}; i.dispatchEvent(new Event('input')); }})()")
                await page.until(f"document.querySelector('#counts th').textContent === {json.dumps('fields.' + member)} && {rows}.length > 0", "events are counted by a field")
        if await page.run("(() => { const t = demi.current.trace; for (let i = 0; i < t.n; i++) { const e = t.get(i); if (e.time && e.causes.some((c) => c.actor !== e.actor && c.joint === 'message_id' && t.get(c.i).time)) return true; } return false; })()"):
            check(await page.run("document.querySelector('#counts thead').textContent.includes('took (p95)')"), "how long messages take is told")
        await page.picture(args.pictures, "counts")
        await accessible(page, "with the counts")
        await legible(page, "with the counts")
        await page.run("document.getElementById('search').value = ''; demi.search.run()")
    await page.run("document.querySelector('#counts select').focus()")
    await page.key("Escape")
    await page.until("document.getElementById('counts').hidden", "Escape closes the counts")
    await page.key("w")
    await page.until("/^(Times since|The events have no times)/.test(document.getElementById('said').textContent)", "w tells times")
    timed = await page.run("demi.current.since !== null")
    check(timed == await page.run("demi.current.gutter === 92"), "times stand at the left")
    if timed:
        await page.picture(args.pictures, "times")
        if not await page.run("demi.page.served"):
            last = await page.run("(() => { const t = demi.current.trace; for (let i = t.n - 1; i >= 0; i--) if (t.get(i).time && t.get(i).causes.length) return i; return null; })()")
            if last is not None:
                await page.run(f"demi.select(demi.current, {last})")
                await page.key("p")
                await page.until(f"document.querySelector('#results h2').textContent.startsWith('Critical path') && demi.current.way.at(-1) === {last}", "p shows the critical path")
                check(await page.run("demi.current.way.every((i) => demi.current.past.has(demi.current.trace.get(i)))"), "all of the critical path happens before the event")
                await page.picture(args.pictures, "critical")
        await legible(page, "with times")
        await page.key("w")
        await page.until("demi.current.since === null", "w tells steps again")


async def noted(page, args):
    """Notes are written at events, go with the link, and come back with it."""
    here = await page.run("demi.current.selected")
    await page.until("document.getElementById('note') !== null", "the panel has room for a note")
    await page.key("b")
    await page.until("document.activeElement.id === 'note'", "b writes a note")
    await page.call("Input.insertText", text="waits <b>here</b> & there")
    await page.until("demi.current.notes.get(demi.current.selected) === 'waits <b>here</b> & there' && location.hash.includes('&')", "the note is in the address")
    await page.key("Enter")
    await page.key("B")
    await page.until("document.querySelector('#results h2').textContent === 'Notes' && document.querySelector('#results [role=option]')?.textContent.includes('waits <b>here')", "the notes are listed")
    await page.picture(args.pictures, "notes")
    await legible(page, "with a note")
    await page.call("Page.reload")
    await page.until(f"document.documentElement?.dataset.ready !== undefined && window.demi?.current.selected === {here} && demi.current.notes.get({here}) === 'waits <b>here</b> & there'", "a link brings its notes", 60)
    await page.until("document.getElementById('note')?.value.includes('waits')", "the panel shows a note that came with the link")
    await page.run("(() => { const i = document.getElementById('note'); i.value = ''; i.dispatchEvent(new Event('input')); i.blur(); })()")
    await page.until("!location.hash.includes('&') && document.getElementById('notes').hidden", "an empty note is none")


async def over_time(page, args):
    """A variable along the lanes, actors that stand out, concurrent events, local events."""
    if await page.run("document.querySelector('#states th button') !== null"):
        await page.run("document.querySelector('#states th button').click()")
        await page.until("document.querySelectorAll('#results [role=option]').length > 0 && / of /.test(document.querySelector('#results h2').textContent)", "the changes of a variable are listed")
        if not await page.run("demi.page.served"):
            check(await page.run("demi.current.track !== null && !document.getElementById('track').hidden"), "a variable is drawn along the lanes")
            await page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            await page.picture(args.pictures, "track")
            await accessible(page, "with a variable along the lanes")
            await legible(page, "with a variable along the lanes")
            await page.run("document.querySelector('#track button').click()")
            await page.until("demi.current.track === null && document.getElementById('track').hidden", "and no longer")
    box = await page.run("(() => { const d = demi.current, b = d.box.getBoundingClientRect(), [{actors: [a]}] = d.view.lanes; return {a, x: b.left + d.x(a) + 4, y: b.top + 12}; })()")
    await page.click(box["x"], box["y"])
    await page.until(f"demi.current.lit.has({box['a']}) && demi.current.lit.size === 1", "a click on its name lets an actor stand out")
    await page.click(box["x"], box["y"])
    await page.until("demi.current.lit.size === 0", "another click takes that back")
    if not await page.run("demi.page.served"):
        look = "(async () => { document.getElementById('search').value = %s; await demi.search.run(); return demi.search.hits.total; })()"
        pair = await page.run("(() => { const t = demi.current.trace; for (let i = 0; i < Math.min(t.n, 300); i++) { const p = t.reach(i, false), f = t.reach(i, true); for (let k = 0; k < Math.min(t.n, 300); k++) if (k !== i && !p.has(t.get(k)) && !f.has(t.get(k))) return [i, k, t.idOf(i), t.idOf(k)]; } return null; })()")
        if pair:
            exact = lambda name: "id:/^" + re.sub(r"([.*+?^${}()|\[\]\\/])", r"\\\1", name) + "$/"
            check(await page.run(look % json.dumps(f"{exact(pair[2])} || {exact(pair[3])}")) == 2, "concurrent events are found")
        check(await page.run(look % json.dumps("is:local")) == await page.run("(() => { const t = demi.current.trace; let n = 0; for (let i = 0; i < t.n; i++) { const e = t.get(i); if (!['send', 'receive'].includes(e.kind) && ![...e.causes, ...e.effects].some((end) => end.actor !== e.actor)) n++; } return n; })()"), "local events are found")
        spans = await page.run("(() => { const t = demi.current.trace; let n = 0; for (let i = 0; i < t.n; i++) { const e = t.get(i), before = e.place > 0 ? t.get(t.chain[e.actor][e.place - 1]) : null; if (e.time && before?.time) n++; } return n; })()")
        check(await page.run(look % json.dumps("gap:>=0ms")) + await page.run(look % json.dumps("gap:<0ms")) == spans, "times are compared")
        await page.run("document.getElementById('search').value = ''; demi.search.run()")
        await page.key("f")
        local = "[...document.querySelectorAll('#filters .shown label')].find((l) => l.textContent === 'events of one actor alone')"
        await page.run(f"{local}.click()")
        await page.until("demi.current.view.count < demi.current.trace.n || !demi.current.trace.alone.some((one) => one)", "local events are hidden")
        await page.run(f"{local}.click()")
        await page.until("demi.current.view.count === demi.current.trace.n", "and shown again")
        await page.run("document.querySelector('#filters input').focus()")
        await page.key("Escape")


async def filters(page, args):
    """Actors are hidden, joined and ordered, events are hidden, and all comes back."""
    lanes = "demi.current.view.lanes"
    before = await page.run(f"{lanes}.map((lane) => lane.label)")
    await page.key("f")
    await page.until("!document.getElementById('filters').hidden && document.activeElement.ariaLabel.startsWith('Actors')", "f opens the filter")
    last = before[-1]
    await page.call("Input.insertText", text=last)
    press = "[...document.querySelectorAll('#filters button')].find((b) => b.textContent === %s || b.ariaLabel === %s).click()"
    async def button(name):
        await page.run(press % (json.dumps(name), json.dumps(name)))
    await button("hide")
    await page.until(f"{lanes}.length === {len(before) - 1}", "an actor is hidden")
    local = not await page.run("demi.page.served")
    if local:
        check(await page.run("[...Array(demi.current.view.count).keys()].every((row) => demi.current.view.lane[demi.current.trace.columns.actor[demi.current.view.at(row)]] >= 0)"), "and so are its events")
        check(await page.run("demi.list.rows.count === demi.current.view.count"), "in the list too")
        kind = await page.run("demi.current.trace.types()[0]")
        if kind:
            await page.run(f"[...document.querySelectorAll('#filters .shown label')].find((l) => l.textContent === {json.dumps(kind)}).click()")
            await page.until(f"[...Array(demi.current.view.count).keys()].every((row) => demi.current.trace.get(demi.current.view.at(row)).type !== {json.dumps(kind)} || demi.current.trace.violations.includes(demi.current.view.at(row)))", "events of a type are hidden")
    if len(before) > 2:
        await button(f"Move {before[1]} to the left")
        await page.until(f"{lanes}[0].label === {json.dumps(before[1])}", "an actor is moved")
        await button(f"Pin {before[-2]} on the left")
        await page.until(f"{lanes}[0].label === {json.dumps(before[-2])}", "an actor is pinned")
    await page.run("(() => { const i = document.querySelector('#filters input'); i.value = '*'; })()")
    await button("one lane")
    await page.until(f"{lanes}.length === 1", "actors share a lane")
    await page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    check(await page.run("document.documentElement.scrollWidth <= innerWidth + 1"), "the filter fits")
    await page.picture(args.pictures, "filter")
    await accessible(page, "with the filter")
    await legible(page, "with the filter")
    await button("show all")
    await page.until(f"{lanes}.length === {len(before)} && demi.current.view.count === demi.current.trace.n", "all is shown again")
    check(await page.run(f"{lanes}.map((lane) => lane.label)") == before, "in the order of before")
    await page.run("document.querySelector('#filters input').focus()")
    await page.key("Escape")
    await page.until("document.getElementById('filters').hidden", "Escape closes the filter")


async def use(page, args):
    seen = {}
    for domain in ("Page", "Runtime", "Log"):
        await page.call(f"{domain}.enable")
    await page.call("Performance.enable", timeDomain="threadTicks")
    await page.call("Emulation.setDeviceMetricsOverride", width=1440, height=900, deviceScaleFactor=1, mobile=False)
    await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    began = time.monotonic()
    await page.call("Page.navigate", url=args.url)
    await page.until("document.documentElement?.dataset.ready !== undefined || document.getElementById('notice')?.hidden === false", "the page opens", 60)
    await page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    seen["open_ms"] = round((time.monotonic() - began) * 1000)
    seen["open_cpu_ms"] = round(await page.cpu())
    check(await page.run("document.getElementById('notice').hidden"), "no error is shown: " + await page.run("document.getElementById('notice').textContent"))
    seen["title"] = await page.run("document.getElementById('heading').textContent")
    seen["traces"] = await page.run("demi.diagrams.map((d) => ({name: d.trace.name, events: d.trace.n, actors: d.trace.actors.length}))")
    check(await page.run("document.querySelectorAll('#facts dt').length > 2"), "the head tells facts")
    check(await page.run("document.querySelectorAll('b:not(h1 b, h2 b, li b, .tip b, [role=option] b)').length === 0"), "no markup came from texts")
    await page.picture(args.pictures, "light")
    seen["contrast"] = await legible(page, "at first")
    seen["axe"] = await accessible(page, "at first")

    # The page opens at the violation, and its address names the event.
    if await page.run("demi.page.differences.length > 0"):
        await page.until("demi.page.differences[0][demi.current === demi.diagrams[0] ? 'first' : 'second'] === demi.current.selected", "a page of two executions opens where they first differ")
        await page.key("n")
        await page.until("demi.current.selected !== null && document.querySelector('#event .only') !== null", "n goes to an event that only one has")
        check(await page.run("demi.current.other.selected === null && demi.current.other.past === null"), "what has no counterpart highlights none")
        check(await page.run("document.querySelectorAll('#sheets .link').length > 0"), "the differences are told")
        seen["contrast"] = min(seen["contrast"], await legible(page, "with differences"))
        await page.picture(args.pictures, "differences")
    elif await page.run("demi.current.trace.violations.length > 0"):
        await page.until("demi.current.trace.violations.includes(demi.current.selected)", "the page opens at the violation")
        await page.until("location.hash === demi.link()", "the address names the event")
    await linked(page)

    # Step with the keyboard.
    await page.key("Escape")
    await page.until("demi.current.selected === null", "Escape clears the choice")
    await page.key("Home")
    await page.until("demi.current.selected !== null", "Home chooses the first step")
    first = await page.run("demi.current.selected")
    await page.key("j")
    await page.until(f"demi.current.selected > {first}", "j steps")
    second = await page.run("demi.current.selected")
    await page.key("k")
    await page.until(f"demi.current.selected === {first}", "k steps back")
    check(second > first, "steps go forward")
    # The largest execution is walked through alone: steps of the script, and until they are painted.
    await page.run("demi.view(0)")
    await page.key("Home")
    times = []
    for _ in range(args.steps):
        times.append(await page.run(STEP))
    times.sort()
    seen["steps"] = {"n": len(times), "median_ms": round(times[len(times) // 2], 1), "p95_ms": round(times[int(len(times) * 0.95)], 1), "max_ms": round(times[-1], 1)}
    before = await page.cpu()
    script = sorted([await page.run(WORK) for _ in range(args.steps)])
    seen["steps"]["cpu_ms"] = round((await page.cpu() - before) / args.steps, 1)
    seen["steps"]["script_median_ms"] = round(script[len(script) // 2], 1)
    check(await page.run("document.querySelector('#event .headline').textContent.length > 0"), "the inspector tells the event")
    seen["variables"] = await page.run("document.querySelectorAll('#states details').length")

    # The whole run.
    await page.key("0")
    check(await page.run("demi.current.top === 0 && demi.current.rows >= demi.current.trace.n"), "0 shows the whole run")
    await page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    began = await page.cpu()
    await page.run("demi.current.paint()")
    seen["whole_cpu_ms"] = round(await page.cpu() - began, 1)
    await page.picture(args.pictures, "whole")
    await page.run("demi.current.zoom(22 / demi.current.row)")

    # Each execution is shown by itself and beside the first.
    count = await page.run("demi.diagrams.length")
    for which in range(1, count):
        await page.key(str(which + 1))
        await page.until(f"demi.current === demi.diagrams[{which}] && demi.diagrams.every((d, i) => d.pane.hidden === (i !== {which}))", "a digit shows one execution")
        await page.key(str(count + 1))
        await page.until(f"demi.diagrams.every((d, i) => d.pane.hidden === (i !== 0 && i !== {which})) && demi.diagrams[0].other === demi.diagrams[{which}]", "two stand side by side")
        await page.run(f"(() => {{ const d = demi.diagrams[{which}], i = d.trace.align.findIndex((to) => to >= 0); return demi.select(d, Math.max(0, i)); }})()")
        check(await page.run(f"demi.diagrams[0].selected === (demi.diagrams[{which}].trace.align[demi.diagrams[{which}].selected] >= 0 ? demi.diagrams[{which}].trace.align[demi.diagrams[{which}].selected] : null)"), "the counterpart is chosen too")
    await page.run("demi.view(0)")
    await page.key("Home")
    await page.until("demi.current.trace.nextStep(-1, true).then((i) => demi.current.selected === i)", "back at the first step")

    # Click an event: its past and future are shown, and agree with a walk over all edges.
    box = await page.run("(() => { const d = demi.current, b = d.box.getBoundingClientRect(), i = Math.floor(d.top + d.rows / 2); return {i, x: b.left + b.width / 2, y: b.top + d.y(i)}; })()")
    await page.click(box["x"], box["y"])
    await page.until(f"demi.current.selected === {box['i']}", "a click chooses the event of the row")
    await page.until("document.querySelector('#event .chip.past') !== null", "the past is told")
    seen["past"] = await page.run("demi.current.past.size")
    if not await page.run("demi.page.served"):
        check(await page.run(WALK), "past and future agree with a walk over all edges")
    await page.picture(args.pictures, "chosen")
    seen["contrast"] = min(seen["contrast"], await legible(page, "with a choice"))
    await keys(page)
    await page.picture(args.pictures, "list")

    # The first invariant that fails leads to its event.
    seen["invariants"] = await page.run("demi.page.invariants.map((i) => [i.found, i.event])")
    if await page.run("document.querySelector('#sheets .gap button') !== null"):
        await page.run("document.querySelector('#sheets .gap button').click()")
        await page.until("demi.current.selected === demi.page.invariants[0].at", "the event of a failing invariant is shown")
        check(await page.run("demi.current.trace.get(demi.current.selected).id === demi.page.invariants[0].event"), "it is the right event")
        await page.run("document.querySelector('.sheets').scrollIntoView()")
        await page.picture(args.pictures, "invariants")
        await page.run("window.scrollTo(0, 0)")

    # Search.
    await page.key("/")
    check(await page.run("document.activeElement.id === 'search'"), "/ goes to the search")
    word = await page.run("(demi.current.trace.get(demi.current.selected).type || 'a').slice(0, 6)")
    await page.call("Input.insertText", text=word)
    await page.until("document.querySelectorAll('#results [role=option]').length > 0", "the search finds")
    seen["found"] = await page.run("demi.search.hits.total")
    check(seen["found"] == await page.run(FOUND.replace("WORD", json.dumps(word))), "the search finds all")
    count = "document.querySelector('#results output').textContent.replaceAll('\u202f', '')"
    await page.key("Enter")
    await page.until(f"{count} === `1 of ${{demi.search.hits.total}}` && document.querySelector('#results [aria-selected=true]') !== null", "Enter chooses the first hit")
    if seen["found"] > 1:
        await page.key("Enter")
        await page.until(f"{count} === `2 of ${{demi.search.hits.total}}`", "Enter goes to the next hit")
        await page.run("document.querySelector('#results [aria-label=\"Hit before\"]').click()")
        await page.until(f"{count} === `1 of ${{demi.search.hits.total}}`", "a button goes back")
        await page.run("document.querySelector('#results [aria-label=\"Hit before\"]').click()")
        await page.until(f"{count} === `${{demi.search.hits.total}} of ${{demi.search.hits.total}}`", "before the first hit comes the last")
        await page.until("demi.current.selected === demi.search.hits.events[demi.search.hits.total - 1]", "it is shown")
    await page.picture(args.pictures, "search")
    seen["contrast"] = min(seen["contrast"], await legible(page, "while searching"))
    await accessible(page, "while searching")
    seen["searches"] = {text: await searched(page, text) for text in args.search}
    await page.run("document.getElementById('search').focus()")
    await page.key("Escape")
    await page.until("document.getElementById('results').hidden", "Escape ends the search")

    await fields(page)
    await chains(page)
    await filters(page, args)
    await counted(page, args)
    await noted(page, args)
    await over_time(page, args)

    # The violation, dark mode, help, a narrow window, paper.
    if await page.run("demi.current.trace.violations.length > 0"):
        await page.key("v")
        await page.until("demi.current.trace.violations.includes(demi.current.selected)", "v goes to the violation")
    else:
        check(await page.run("document.getElementById('violation').hidden"), "where there is no violation no button leads to it")
    await page.key("d")
    await page.until("document.documentElement.dataset.theme === 'dark'", "d is dark")
    await page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    await page.picture(args.pictures, "dark")
    seen["contrast"] = min(seen["contrast"], await legible(page, "in the dark"))
    await accessible(page, "in the dark")
    await page.run("document.querySelector('.sheets').scrollIntoView()")
    await page.picture(args.pictures, "sheets")
    await page.run("window.scrollTo(0, 0)")
    await page.key("d")
    await page.key("?")
    await page.until("document.getElementById('about').open", "? opens the help")
    await page.picture(args.pictures, "help")
    seen["contrast"] = min(seen["contrast"], await legible(page, "with help"))
    await accessible(page, "with help")
    await page.key("Escape")
    await page.until("!document.getElementById('about').open", "Escape closes the help")
    await page.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    await asyncio.sleep(0.3)
    check(await page.run("document.documentElement.scrollWidth <= innerWidth + 1"), "nothing overflows a narrow window")
    check(await page.run("[...document.querySelectorAll('kbd, .keyed')].every((e) => !e.checkVisibility())"), "a phone is told of no keys")
    wide = await page.run(TOO_WIDE)
    check(not wide, f"what is shown fits a narrow window: {wide}")
    await page.picture(args.pictures, "narrow")
    await page.call("Emulation.setDeviceMetricsOverride", width=360, height=780, deviceScaleFactor=1, mobile=True)
    await asyncio.sleep(0.3)
    check(await page.run("document.documentElement.scrollWidth <= innerWidth + 1"), "nothing overflows a window of 360 pixels")
    check(await page.run("[...document.querySelectorAll('#views button')].every((b) => b.scrollWidth <= b.clientWidth + 1)"), "the names of executions are whole")
    wide = await page.run(TOO_WIDE)
    check(not wide, f"what is shown fits a window of 360 pixels: {wide}")
    await page.picture(args.pictures, "narrowest")
    await page.run("document.getElementById('help').click()")
    check(await page.run("[...document.querySelectorAll('#about td:first-child')].filter((e) => e.checkVisibility()).every((e) => e.clientWidth >= 100)"), "the help can be read on a phone")
    await accessible(page, "with help on a phone")
    await page.picture(args.pictures, "narrowest-help")
    await page.run("document.getElementById('about').close()")
    await page.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    await accessible(page, "in a narrow window")
    if args.pictures:
        await page.call("Emulation.setDeviceMetricsOverride", width=390, height=2600, deviceScaleFactor=1, mobile=True)
        await asyncio.sleep(0.3)
        await page.picture(args.pictures, "narrow-long")
        await page.key("d")
        await page.picture(args.pictures, "narrow-dark")
        await page.key("d")
    await page.call("Emulation.setDeviceMetricsOverride", width=1440, height=900, deviceScaleFactor=1, mobile=False)
    printed = await page.call("Page.printToPDF", printBackground=True)
    check(len(printed["data"]) > 5000, "the page prints")
    if args.pictures:
        with open(os.path.join(args.pictures, "print.pdf"), "wb") as file:
            file.write(base64.b64decode(printed["data"]))
    check(not page.problems, f"the browser reports no errors: {page.problems}")

    # Without the script.
    await page.call("Emulation.setScriptExecutionDisabled", value=True)
    await page.call("Page.navigate", url=args.url.split("#")[0] + "?plain")
    await asyncio.sleep(1)
    root = (await page.call("DOM.getDocument"))["root"]["nodeId"]
    node = (await page.call("DOM.querySelector", nodeId=root, selector=".plain"))["nodeId"]
    check(node and "JavaScript, which is off" in (await page.call("DOM.getOuterHTML", nodeId=node))["outerHTML"], "without its script the page says what it is")
    await page.picture(args.pictures, "plain")
    await page.call("Emulation.setScriptExecutionDisabled", value=False)
    return seen


# How many events hold a word: asked of each event that is in the page, or of the server.
FOUND = """(async () => {
  const t = demi.current.trace, word = WORD.toLowerCase();
  if (demi.page.served) return (await t.search(demi.search.hits.query, -1)).total;
  let n = 0;
  for (let i = 0; i < t.n; i++) {
    const e = t.get(i);
    const changed = t.state(i).filter((row) => row.at === i).flatMap((row) => [row.variable, row.value]);
    const texts = [t.actors[e.actor], e.kind, e.type, e.payload, e.fields, e.from, e.to, e.id, e.time, e.msg_id, ...changed];
    if (texts.some((text) => (text ?? "").toLowerCase().includes(word))) n++;
  }
  return n;
})()"""


# Whether the page's past and future of the chosen event are those of a walk over all edges, event by event.
WALK = """(() => {
  const d = demi.current, t = d.trace, of = d.selected, c = t.columns;
  const walk = (forward) => {
    const seen = new Set([of]), work = [of];
    while (work.length) {
      const e = work.pop(), next = [];
      if (c.place[e] >= 0) next.push(t.chain[c.actor[e]][c.place[e] + (forward ? 1 : -1)]);
      for (let k = 0; k < c.edges.cause.length; k++) {
        if (forward && c.edges.cause[k] === e) next.push(c.edges.effect[k]);
        if (!forward && c.edges.effect[k] === e) next.push(c.edges.cause[k]);
      }
      for (const x of next) if (x !== undefined && !seen.has(x)) { seen.add(x); work.push(x); }
    }
    return seen;
  };
  for (const [reach, forward] of [[d.past, false], [d.future, true]]) {
    const truth = walk(forward);
    if (truth.size !== reach.size) return false;
    for (let i = 0; i < t.n; i++) if (truth.has(i) !== reach.has(t.get(i))) return false;
  }
  return true;
})()"""


def check(holds, what):
    if not holds:
        raise AssertionError(what)


async def in_browser(chromium, use):
    """What `use` returns, which gets a page of a browser of its own."""
    # Helpers of the browser may write into its folder for a moment after its end.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-port=0"]
        browser = subprocess.Popen([chromium, *flags, f"--user-data-dir={profile}", "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            port_file, end = os.path.join(profile, "DevToolsActivePort"), time.monotonic() + 60
            while not os.path.exists(port_file) or len(open(port_file).read().splitlines()) < 2:
                check(time.monotonic() < end and browser.poll() is None, "the browser starts")
                time.sleep(0.05)
            port, path = open(port_file).read().splitlines()[:2]
            async with websockets.connect(f"ws://127.0.0.1:{port}{path}", max_size=None) as root:
                control = Page(root)
                target = (await control.call("Target.createTarget", url="about:blank"))["targetId"]
                async with websockets.connect(f"ws://127.0.0.1:{port}/devtools/page/{target}", max_size=None) as socket:
                    return await use(Page(socket))
        finally:
            try:
                os.killpg(browser.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            browser.wait(20)


def chromium():
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--pictures")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--search", action="append", default=[], help="say how long this search takes")
    parser.add_argument("--chromium", default=chromium())
    args = parser.parse_args()
    if args.pictures:
        os.makedirs(args.pictures, exist_ok=True)
    print(json.dumps(await in_browser(args.chromium, lambda page: use(page, args))))


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except (AssertionError, RuntimeError) as error:
        print(f"page: {error}", file=sys.stderr)
        sys.exit(1)
