"""The model of `speed.rs` in Python: a lock service with leases, whose storage has no fencing."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "sdk", "python"))

from demi_model import Message, Model, Violation, serve


def message(type, token=0, content=0):
    return Message(type, payload=f"{type}({token},{content})", data=[token, content])


class Lease(Model):
    actors = ["lock", "storage", "client-1", "client-2"]

    def start(self, actor, ctx, disk=None):
        return {"token": 0, "held": False, "queue": [], "content": 0, "highest": 0, "overtaken": False, "waiting": 0, "busy": False}

    def grant(self, state, ctx):
        state["held"] = False
        ctx.cancel_timer("lease")
        if state["queue"]:
            state["held"] = True
            state["token"] += 1
            ctx.send(state["queue"].pop(0), message("Granted", state["token"]))
            ctx.set_timer("lease", message("Expire"))

    def acquire(self, state, ctx):
        state["busy"] = state["waiting"] > 0
        if state["busy"]:
            state["waiting"] -= 1
            ctx.send("lock", message("Acquire"))

    def deliver(self, actor, state, msg, ctx):
        token, content = msg.data
        if msg.type == "Add":
            state["waiting"] += 1
            if not state["busy"]:
                self.acquire(state, ctx)
        elif msg.type == "Acquire":
            state["queue"].append(ctx.sender)
            if not state["held"]:
                self.grant(state, ctx)
        elif msg.type == "Release":
            if state["held"] and token == state["token"]:
                self.grant(state, ctx)
        elif msg.type == "Expire":
            self.grant(state, ctx)
        elif msg.type == "Granted":
            ctx.send("storage", message("Read", token))
        elif msg.type == "Read":
            state["highest"] = max(state["highest"], token)
            ctx.send(ctx.sender, message("Content", token, state["content"]))
        elif msg.type == "Content":
            ctx.send("storage", message("Write", token, content + 1))
        elif msg.type == "Write":
            state["overtaken"] |= token < state["highest"]
            state["highest"] = max(state["highest"], token)
            state["content"] = content
            ctx.send(ctx.sender, message("Written", token))
        elif msg.type == "Written":
            ctx.send("lock", message("Release", token))
            self.acquire(state, ctx)
        return state

    def seen(self, actor, state):
        return state["overtaken"]

    def check(self, seen, failed, memory):
        return [Violation("LateWrite", ["storage"])] if seen.get("storage") else [], None

    def external(self, type, payload, fields):
        return message(type)


if __name__ == "__main__":
    serve(Lease())
