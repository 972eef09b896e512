"""The model of store.py: what each replica does with one message, and what must hold."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from demi_model import Message, Model, Violation, message, serve


class Store(Model):
    actors = ["a", "b", "c"]

    def configure(self, scenario):
        self.last_wins = scenario["switches"].get("last_wins", False)

    def start(self, actor, ctx, disk=None):
        return {"value": None, "latest": "", "puts": 0, "applied": []}

    def deliver(self, actor, state, msg, ctx):
        if msg.type == "Put":
            state["puts"] += 1
            write = {"id": "%s%d" % (actor, state["puts"]), "value": msg.data["value"]}
            self.apply(state, write)
            for peer in self.actors:
                if peer != actor:
                    ctx.send(peer, message("Write", write, "Write %(id)s %(value)d" % write))
        else:
            self.apply(state, msg.data)
        return state

    def apply(self, state, write):
        state["applied"] = sorted(state["applied"] + [write["id"]])
        # Repaired, the largest number wins, whenever it comes.
        number = "%s %s" % (write["id"][1:].zfill(4), write["id"][0])
        if self.last_wins or number > state["latest"]:
            state["latest"], state["value"] = number, write["value"]

    def seen(self, actor, state):
        return [state["applied"], state["value"]]

    def check(self, seen, failed, memory):
        held = [applied_and_value for applied_and_value in seen.values() if applied_and_value[0]]
        same = len(held) == len(self.actors) and all(one[0] == held[0][0] for one in held)
        if same and len({one[1] for one in held}) > 1:
            return [Violation("Converged", sorted(seen))], None
        return [], None

    def client(self, n, random):
        return random.choice(self.actors), message("Put", {"value": n}, "Put %d" % n)

    def external(self, type, payload, fields):
        return Message("Put", {"value": int(payload.split()[1])}, payload) if type == "Put" else None


if __name__ == "__main__":
    serve(Store())
