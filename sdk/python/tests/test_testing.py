"""Schedules as tests: what a schedule names is what is done."""

import json
import os
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

from demi_model.testing import follow

MODEL = '''
import sys
from demi_model import Model, Violation, message as M, serve

class Small(Model):
    """Numbered messages of a timer, one that the timer forwards, and a count that outlives a failure."""
    actors = ["a", "b"]
    disk = True
    def start(self, actor, ctx, disk=None):
        if actor == "a" and disk is None:
            ctx.set_timer("go", M("Go"), survives=True)
        return {"got": [], "again": disk is not None}
    def deliver(self, actor, state, msg, ctx):
        if msg.type == "Go" and ctx.sender is None:
            for i in (1, 2, 3):
                ctx.send("b", M("Put", {"i": i, "b": True}))
            ctx.forward(M("Late"))
        elif msg.type == "Put":
            state["got"].append(msg.data["i"])
        elif msg.type == "Late" and state["again"]:
            state["got"].append("late")
        return state
    def check(self, seen, failed, memory):
        firsts = {name: state["got"][:1] for name, state in seen.items()}
        broken = [Violation("First:%s" % got[0], [name]) for name, got in sorted(firsts.items()) if got]
        return broken, None

serve(Small())
'''


def step(kind, to, type=None, payload=None, **more):
    return {"kind": kind, "to": to, **({"type": type, "payload": payload} if type else {}), **more}


STARTS = [step("start", "a"), step("start", "b")]
GO = step("timer", "a", "Go", "Go", **{"from": "a"})


def put(data):
    return step("deliver", "b", "Put", "Put(%s)" % data, **{"from": "a"})


class Testing(unittest.TestCase):
    def outcome(self, wanted, *steps):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "small.py"
            path.write_text(MODEL)
            os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])
            header = {"schema": "demi-schedule/1", "network": "unordered", "violation": [wanted]}
            text = "\n".join(map(json.dumps, [header, *steps]))
            return follow([sys.executable, str(path)], {"network": "unordered"}, text)

    def test_contents_tell_messages_apart(self):
        found = self.outcome("First:2", *STARTS, GO, put('{"b":true,"i":2}'))
        self.assertEqual((found.violations, found.step), (["First:2"], 4))

    def test_what_else_breaks_is_warned_of(self):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = self.outcome("First:2", *STARTS, GO, put('{"b":true,"i":1}'))
        self.assertEqual(found.violations, [])
        self.assertIn("step 4 breaks something else: First:1", str(told[0].message))

    def test_a_timer_survives_and_forwards(self):
        late = step("deliver", "a", "Late", "Late", **{"from": "a"})
        found = self.outcome("First:late", *STARTS, step("crash", "a"), step("restart", "a"), GO, late)
        self.assertEqual((found.violations, found.passed_over), (["First:late"], []))


if __name__ == "__main__":
    unittest.main()
