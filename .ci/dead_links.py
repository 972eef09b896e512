"""Looks for links of a built site that lead nowhere within it:  dead_links.py FOLDER"""

import html.parser
import os
import sys
from urllib.parse import unquote, urldefrag


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.ids = [], set()

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.ids.add(value)
            if name in ("href", "src") and value:
                self.links.append(value)


def pages(folder):
    found = {}
    for room, _, files in os.walk(folder):
        for file in files:
            if file.endswith(".html"):
                path = os.path.join(room, file)
                found[os.path.normpath(path)] = page = Page()
                with open(path, encoding="utf-8") as text:
                    page.feed(text.read())
    return found


folder = sys.argv[1]
known, dead, seen = pages(folder), [], 0
for path, page in known.items():
    # Those two are shown in place of others, or hold all others.
    if os.path.basename(path) in ("404.html", "print.html", "toc.html"):
        continue
    for link in page.links:
        target, anchor = urldefrag(link)
        if ":" in target.split("/")[0] or target.startswith("//"):
            continue
        seen += 1
        there = os.path.normpath(os.path.join(os.path.dirname(path), unquote(target))) if target else path
        if os.path.isdir(there):
            there = os.path.join(there, "index.html")
        if not os.path.exists(there) or (anchor and there in known and unquote(anchor) not in known[there].ids):
            dead.append(f"{path}: {link}")
print(f"{len(known)} pages, {seen} links, {len(dead)} dead")
print("\n".join(dead))
sys.exit(1 if dead or not seen else 0)
