"""Uses the pages of incidents in headless Chromium as somebody does who looks after a bug: on a phone and on a wide screen, in dark and in light, with
script and without, and prints what it saw as JSON.

    python drive.py URL [--pictures FOLDER] [--chromium PATH]

The first bug of the list must be new. Needs the package `websockets`. Exit status 1 when something is not as it should be.
"""

import argparse
import asyncio
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "report_page"))

from drive import check, chromium, in_browser  # noqa: E402

# What can be pressed and is smaller than a finger, and what stands out of the window.
SMALL = """[...document.querySelectorAll("a, button, input, select, summary")].filter((e) => e.checkVisibility() && e.type !== "hidden").map((e) => {
  const box = e.getBoundingClientRect();
  return [e.tagName, (e.textContent || e.ariaLabel || "").trim().slice(0, 40), box.width, box.height];
}).filter(([, , width, height]) => width < 43.99 || height < 43.99)"""
WIDE = "document.documentElement.scrollWidth > innerWidth + 1"
# Contrast of the text in sight with what it stands on: the least.
CONTRAST = """(() => {
  const parts = (color) => (color.match(/[\\d.]+/g) ?? []).map(Number);
  const light = (c) => { const [r, g, b] = c.slice(0, 3).map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = (node) => { for (let n = node; n; n = n.parentElement) { const c = parts(getComputedStyle(n).backgroundColor); if (c.length === 3 || c[3] === 1) return c; } return [255, 255, 255]; };
  let least = 21;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!node.data.trim() || !node.parentElement.checkVisibility()) continue;
    const [a, b] = [light(parts(getComputedStyle(node.parentElement).color)), light(ground(node.parentElement))];
    least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return least;
})()"""


class Reader:
    """A browser of one size and colour, with script or without. What is asked of the page goes another way than the page's own script, and works in
    both."""

    def __init__(self, page, url, args, look):
        self.page, self.url, self.args, self.look = page, url.rstrip("/"), args, look
        self.requests, self.pages = [], 0

    def note(self, event):
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(event["params"]["request"]["url"])
        if event.get("method") == "Runtime.consoleAPICalled" and event["params"]["type"] in ("error", "warning"):
            self.page.problems.append(f"console: {event['params']['args']}")

    async def open(self):
        width, height, scheme, script = self.look
        page, noted = self.page, self.page.note
        page.note = lambda event: (noted(event), self.note(event))
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            await page.call(f"{domain}.enable")
        await page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        await page.call("Emulation.setScriptExecutionDisabled", value=not script)
        await page.call("Page.navigate", url=self.url + "/")
        await self.arrived("/")

    async def arrived(self, path):
        """Waits for a page, and looks at all of it."""
        await self.page.until(f"document.readyState === 'complete' && location.pathname === {json.dumps(path)} && document.querySelector('main h1') !== null", f"the page {path}", 60)
        where = f"{path}, {self.look}"
        small = await self.page.run(SMALL)
        check(small == [], f"what can be pressed is at least 44 px, {where}: {small}")
        check(not await self.page.run(WIDE), f"nothing stands out of the window, {where}")
        least = await self.page.run(CONTRAST)
        check(least >= 4.5, f"text has a contrast of at least 4.5, {where}: {least}")
        headings = await self.page.run("[document.querySelectorAll('h1').length, document.querySelectorAll('main').length, document.documentElement.lang]")
        check(headings == [1, 1, "en"], f"a heading, a landmark and a language, {where}: {headings}")
        self.pages += 1
        await self.page.picture(self.args.pictures, f"{'-'.join(map(str, self.look))}-{self.pages}")

    async def press(self, what):
        """Presses what a script finds, where it is, as a finger does."""
        box = await self.page.run(f"(() => {{ const e = {what}; if (!e) return null; e.scrollIntoView({{block: 'center', behavior: 'instant'}}); const b = e.getBoundingClientRect(); return [b.x + Math.min(b.width / 2, 40), b.y + b.height / 2]; }})()")
        check(box is not None, f"there is {what}, {self.look}")
        await self.page.click(*box)

    def labelled(self, label):
        return f"[...document.querySelectorAll('button, a')].find((e) => e.textContent.trim() === {json.dumps(label)})"


async def walk(page, url, args, look, last):
    """List, bug, every step, incident, and what is to be done about it."""
    reader = Reader(page, url, args, look)
    await reader.open()
    await reader.press("document.querySelector('ul.list a.row')")
    await page.until("location.pathname.startsWith('/b/')", "a bug opens")
    bug = await page.run("location.pathname")
    await reader.arrived(bug)
    steps = await page.run("document.querySelectorAll('ol.steps > li').length")
    check(steps > 5, f"the steps are there: {steps}")
    # Every step, one after the other and back.
    await page.call("Page.navigate", url=f"{reader.url}{bug}#s1")
    for step in range(1, steps):
        await reader.press(f"[...document.querySelectorAll('#s{step} a')].find((e) => e.textContent === 'Next')")
        await page.until(f"location.hash === '#s{step + 1}'", f"step {step + 1} is next")
        seen = await page.run(f"(() => {{ const b = document.getElementById('s{step + 1}').getBoundingClientRect(); return b.top < innerHeight && b.bottom > 0 && getComputedStyle(document.getElementById('s{step + 1}')).outlineStyle !== 'none'; }})()")
        check(seen, f"step {step + 1} is in sight and marked, {look}")
    await reader.press(f"[...document.querySelectorAll('#s{steps} a')].find((e) => e.textContent === 'Previous')")
    await page.until(f"location.hash === '#s{steps - 1}'", "and the one before")
    # By the keyboard alone: what has the focus can be seen.
    await page.call("Input.dispatchKeyEvent", type="keyDown", key="Tab", windowsVirtualKeyCode=9)
    await page.call("Input.dispatchKeyEvent", type="keyUp", key="Tab", windowsVirtualKeyCode=9)
    check(await page.run("document.activeElement !== document.body && getComputedStyle(document.activeElement).outlineStyle !== 'none'"), "Tab goes on, and it can be seen where")
    # Its first occurrence, and back.
    await reader.press("[...document.querySelectorAll('ul.list a.row')].find((e) => e.pathname.startsWith('/i/'))")
    await page.until("location.pathname.startsWith('/i/')", "an incident opens")
    await reader.arrived(await page.run("location.pathname"))
    await reader.press(f"[...document.querySelectorAll('dd a')].find((e) => e.pathname === {json.dumps(bug)})")
    await reader.arrived(bug)
    status = "(document.querySelector('dl dd')?.textContent ?? '')"
    check(await page.run(status) in ("new", "regressed", "acknowledged"), "the bug is open")
    if await page.run(f"{status} !== 'acknowledged'"):
        await reader.press(reader.labelled("Acknowledge"))
        await page.until(f"document.readyState === 'complete' && {status} === 'acknowledged'", "it is acknowledged")
    await reader.press("document.querySelector('input[name=fixed_in]')")
    await page.call("Input.insertText", text="1.4.2")
    await reader.press(reader.labelled("Close"))
    await page.until(f"document.readyState === 'complete' && {status}.startsWith('resolved, fixed in 1.4.2')", "it is closed")
    await reader.arrived(bug)
    if not last:
        await reader.press(reader.labelled("Open again"))
        await page.until(f"document.readyState === 'complete' && {status} === 'acknowledged'", "it is open again")
    foreign = [to for to in reader.requests if not to.startswith((reader.url + "/", "data:"))]
    check(foreign == [], f"nothing is asked of elsewhere: {foreign}")
    check(page.problems == [], f"nothing is wrong: {page.problems}")
    return {"look": look, "pages": reader.pages, "steps": steps, "requests": len(reader.requests)}


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--pictures")
    parser.add_argument("--chromium", default=chromium())
    args = parser.parse_args()
    if args.pictures:
        os.makedirs(args.pictures, exist_ok=True)
    looks = [(*size, scheme, script) for size in ((360, 780), (1400, 900)) for scheme in ("light", "dark") for script in (True, False)]
    seen = []
    for look in looks:
        seen.append(await in_browser(args.chromium, lambda page: walk(page, args.url, args, look, look == looks[-1])))
    print(json.dumps(seen))


try:
    asyncio.run(main())
except (AssertionError, RuntimeError) as error:
    print(f"pages: {error}", file=sys.stderr)
    sys.exit(1)
