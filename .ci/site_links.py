"""A preprocessor of mdBook: links that lead out of `docs` lead to the repository, where what they name is shown."""

import json
import posixpath
import re
import sys

REPOSITORY = "https://github.com/demi-lineage/demi-lineage/blob/main/"
# Code, in blocks or in a line, and links outside of it.
PARTS = re.compile(r"(?P<code>^```.*?^```|`[^`\n]*`)|\]\((?P<target>[^)\s]+)\)", re.MULTILINE | re.DOTALL)


def mended(text, folder):
    def one(part):
        target = part["target"]
        if target is None or "://" in target or target.startswith(("#", "mailto:")):
            return part[0]
        path = posixpath.normpath(posixpath.join("docs", folder, target))
        return part[0] if path.startswith("docs/") else f"]({REPOSITORY}{path})"
    return PARTS.sub(one, text)


def walk(items):
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            if chapter.get("path"):
                chapter["content"] = mended(chapter["content"], posixpath.dirname(chapter["path"]))
            walk(chapter["sub_items"])


if len(sys.argv) > 1 and sys.argv[1] == "supports":
    sys.exit(0)
_, book = json.load(sys.stdin)
# Its name depends on mdBook's version.
for name in ("sections", "items"):
    walk(book.get(name, []))
json.dump(book, sys.stdout)
