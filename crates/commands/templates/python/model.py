"""A model to start from: clients ask a server for a lock, and the server lends it for a time.

The switch `forgetful_lease` is a bug. When a lease ends, the server gives the lock to the next client, and the client that had
it is not told. With the switch off the server asks for the lock back, and waits.

Replace all of it by your own system.
"""

from demi_model import Model, Violation, message, serve


class Lock(Model):
    knows = {"switches": ["forgetful_lease"], "settings": [], "invariants": []}

    def configure(self, scenario):
        clients = ["client-%d" % (n + 1) for n in range(scenario.get("members") or 2)]
        self.actors = ["server"] + clients
        self.forgetful_lease = scenario["switches"].get("forgetful_lease", False)

    def start(self, actor, ctx, disk=None):
        if actor == "server":
            return {"holder": None, "waiting": []}
        ctx.set_timer("want", message("Want"))
        return {"works": False}

    def deliver(self, actor, state, msg, ctx):
        if actor == "server":
            self.serve_lock(state, msg, ctx)
        else:
            self.use_lock(state, msg, ctx)
        return state

    def serve_lock(self, state, msg, ctx):
        if msg.type == "Acquire":
            state["waiting"].append(ctx.sender)
            if state["holder"] is None:
                self.lend(state, ctx)
        elif msg.type == "LeaseEnds":
            if self.forgetful_lease:
                self.lend(state, ctx)
            elif state["holder"] is not None:
                ctx.send(state["holder"], message("Revoke"))
        elif msg.type == "Release" and ctx.sender == state["holder"]:
            self.lend(state, ctx)

    def lend(self, state, ctx):
        state["holder"] = state["waiting"].pop(0) if state["waiting"] else None
        if state["holder"] is not None:
            ctx.send(state["holder"], message("Granted"))
            ctx.set_timer("lease", message("LeaseEnds"))

    def use_lock(self, state, msg, ctx):
        if msg.type == "Want":
            ctx.send("server", message("Acquire"))
        elif msg.type == "Granted":
            state["works"] = True
            ctx.set_timer("work", message("Done"))
        elif msg.type in ("Done", "Revoke") and state["works"]:
            state["works"] = False
            ctx.cancel_timer("work")
            ctx.send("server", message("Release"))
            ctx.set_timer("want", message("Want"))

    def seen(self, actor, state):
        return state.get("works", False)

    def check(self, seen, failed, memory):
        working = sorted(actor for actor, works in seen.items() if works)
        return [Violation("MutualExclusion", working)] if len(working) > 1 else [], None


if __name__ == "__main__":
    serve(Lock())
