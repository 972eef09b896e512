"""The register of register.py, with lines of its own: lines_register.toml says how they look."""

import json
import sys

name, others, values = None, [], {}


def tell(to, **fields):
    print(json.dumps({"from": name, "to": to, **fields}), flush=True)


for line in sys.stdin:
    said = json.loads(line)
    if "hello" in said:
        name, others = said["hello"], said["peers"]
    elif "copy" in said:
        values[said["copy"]] = said["is"]
    elif said["ask"] == "get":
        if said["key"] in values:
            tell(said["from"], re=said["nr"], found=values[said["key"]])
        else:
            tell(said["from"], re=said["nr"], failed="nothing there")
    elif said["ask"] == "swap" and values.get(said["key"]) != said["old"]:
        failed = "another value" if said["key"] in values else "nothing there"
        tell(said["from"], re=said["nr"], failed=failed)
    else:
        values[said["key"]] = said["new"]
        for other in others:
            tell(other, copy=said["key"], **{"is": said["new"]})
        tell(said["from"], re=said["nr"])
