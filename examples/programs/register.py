"""A register on several nodes that answers before the others know: not linearizable. Run it with Maelstrom, or as docs/programs.md says."""

import json
import sys

node, others, values = None, [], {}


def send(dest, body):
    print(json.dumps({"src": node, "dest": dest, "body": body}), flush=True)


for line in sys.stdin:
    message = json.loads(line)
    source, body = message["src"], message["body"]
    kind = body["type"]
    if kind == "init":
        node = body["node_id"]
        others = [name for name in body["node_ids"] if name != node]
        answer = {"type": "init_ok"}
    elif kind == "write":
        values[body["key"]] = body["value"]
        for other in others:
            send(other, {"type": "replicate", "key": body["key"], "value": body["value"]})
        answer = {"type": "write_ok"}
    elif kind == "replicate":
        values[body["key"]] = body["value"]
        continue
    elif kind == "read":
        if body["key"] in values:
            answer = {"type": "read_ok", "value": values[body["key"]]}
        else:
            answer = {"type": "error", "code": 20, "text": "no such key"}
    elif kind == "cas":
        key = body["key"]
        if key not in values:
            answer = {"type": "error", "code": 20, "text": "no such key"}
        elif values[key] != body["from"]:
            answer = {"type": "error", "code": 22, "text": "another value"}
        else:
            values[key] = body["to"]
            for other in others:
                send(other, {"type": "replicate", "key": key, "value": body["to"]})
            answer = {"type": "cas_ok"}
    else:
        answer = {"type": "error", "code": 10, "text": "not supported"}
    send(source, dict(answer, in_reply_to=body["msg_id"]))
