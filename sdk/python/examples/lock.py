"""A lock service that leases its lock. The bug: the server gives the lock away when the lease ends, and the client that
held it does not know.

Run it with `demi-lineage fuzz --scenario sdk/python/examples/lock.toml --seed 1 --out found`.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from demi_model import Model, Violation, message, serve


class Lock(Model):
    actors = ["server", "client-1", "client-2"]

    def start(self, actor, ctx, disk=None):
        if actor == "server":
            return {"holder": None, "waiting": []}
        ctx.set_timer("want", message("Want"))
        return {"holds": False}

    def deliver(self, actor, state, msg, ctx):
        if actor == "server":
            if msg.type == "Acquire":
                state["waiting"].append(ctx.sender)
            elif msg.type == "LeaseEnds" or (msg.type == "Release" and ctx.sender == state["holder"]):
                state["holder"] = None
            if state["holder"] is None and state["waiting"]:
                state["holder"] = state["waiting"].pop(0)
                ctx.send(state["holder"], message("Granted"))
                ctx.set_timer("lease", message("LeaseEnds"))
        elif msg.type == "Want":
            ctx.send("server", message("Acquire"))
        elif msg.type == "Granted":
            state["holds"] = True
            ctx.set_timer("work", message("Done"))
        elif msg.type == "Done":
            state["holds"] = False
            ctx.send("server", message("Release"))
        return state

    def seen(self, actor, state):
        return state.get("holds", False)

    def check(self, seen, failed, memory):
        holders = sorted(actor for actor, holds in seen.items() if holds)
        return [Violation("MutualExclusion", holders)] if len(holders) > 1 else [], None


if __name__ == "__main__":
    serve(Lock())
