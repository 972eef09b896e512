"""Schedules as tests: a model takes the steps of a schedule, and what breaks on the way is told.

``demi-lineage export OUT --format pytest`` writes such a test. It fails while the bug is there. Steps that a mended model
does not offer any more are passed over.

``DEMI_REPLAY=@7`` in the environment stops the model in a debugger in front of the handler of step 7; ``DEMI_REPLAY=FILE@7``
takes the steps of another schedule file, and ``DEMI_REPLAY=FILE`` does that without stopping.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import warnings
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

Ask = Callable[[Dict[str, Any]], Dict[str, Any]]


class Outcome(NamedTuple):
    """What came of a schedule."""

    violations: List[str]
    """Fingerprints of the invariants that the last step reached broke; empty where none did."""
    step: int
    """The number of that step, from 1."""
    passed_over: List[int]
    """Steps that could not be taken."""


class _Child:
    """A model in a process of its own."""

    def __init__(self, command: Sequence[str], cwd: Optional[str]) -> None:
        self.process = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=cwd
        )
        self.count = 0

    def send(self, request: Dict[str, Any]) -> Dict[str, Any]:
        self.count += 1
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps({"id": self.count, **request}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the model ended at the request %s" % json.dumps(request))
        reply: Dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise RuntimeError("the model says: %s" % reply["error"])
        return reply

    def ask(self, question: Dict[str, Any]) -> Dict[str, Any]:
        answer: Dict[str, Any] = self.send({"requests": [question]})["answers"][0]
        return answer

    def close(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=10)


OUTSIDE = "deadLetters"
"""The name in schedules of who is no actor."""


def _same(value: Any, other: Any) -> bool:
    """Whether two values are the same JSON: to Python, true is 1."""
    return json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True)


def _is_text(message: Dict[str, Any], text: Optional[str]) -> bool:
    """Whether a schedule writes the message so: ``TYPE(DATA)``, in whatever order the keys of the data are."""
    if message.get("payload") is not None:
        return str(message["payload"]) == text
    kind, data = str(message["type"]), message.get("data")
    if data is None or text is None:
        return text == kind
    if not (text.startswith(kind + "(") and text.endswith(")")):
        return False
    try:
        return _same(json.loads(text[len(kind) + 1 : -1]), data)
    except ValueError:
        return False


def _timer_name(name: str, key: int) -> str:
    return name if key == 0 else "%s/%d" % (name, key)


class _World:
    """States, and what is pending in the order in which it was sent."""

    def __init__(self, ask: Ask, hello: Dict[str, Any], network: str) -> None:
        self.ask, self.hello, self.network = ask, hello, network
        self.states: Dict[str, Any] = {}
        self.seen: Dict[str, Any] = {}
        self.status: Dict[str, str] = {}
        self.pending: List[Dict[str, Any]] = []
        self.memory: Any = None
        self.stops = False
        self.unknown: Optional[str] = None
        self.crash_text: Optional[str] = None

    def _random(self, question: Dict[str, Any]) -> int:
        digest = hashlib.sha256(json.dumps(question, sort_keys=True).encode()).digest()
        return int.from_bytes(digest[:8], "little") >> 11

    def _do(self, actor: str, sender: str, question: Dict[str, Any]) -> None:
        """Asks an actor. What it forwards comes from ``sender``."""
        question = {**question, "actor": actor, "now": None}
        question["random"] = self._random(question)
        answer = self.ask({**question, "stop": True} if self.stops else question)
        if answer.get("raised"):
            raised = answer["raised"]
            place = " (%s)" % raised["at"] if raised.get("at") else ""
            self.crash_text = "crash: %s, %s%s" % (actor, raised["text"], place)
            return
        self.states[actor] = answer["state"]
        self.seen[actor] = answer.get("seen", answer["state"])
        for effect in answer.get("effects", []):
            self._effect(actor, sender, effect)

    def _effect(self, me: str, sender: str, effect: Dict[str, Any]) -> None:
        if "send" in effect:
            wish = effect["send"]
            self._send(wish.get("as") or me, wish["to"], wish["message"])
        elif "forward" in effect:
            self._send(sender, me, effect["forward"])
        elif "set" in effect or "cancel" in effect:
            wish = effect.get("set") or effect["cancel"]
            timer = (wish["timer"], wish.get("key", 0))
            self.pending = [p for p in self.pending if (p["to"], p["timer"]) != (me, timer)]
            if "set" in effect:
                entry = {"from": me, "to": me, "message": wish["message"], "timer": timer}
                self.pending.append({**entry, "repeats": wish.get("repeats"), "survives": wish.get("survives")})
        elif "start" in effect:
            self.start(effect["start"])
        elif "stop" in effect:
            self.stop(effect["stop"])
        elif "fail" in effect:
            self.crash(me)

    def _send(self, sender: str, to: Optional[str], message: Dict[str, Any]) -> None:
        there = self.status.get(to or "") in ("running", "crashed")
        if there and self.status.get(sender) != "isolated":
            self.pending.append({"from": sender, "to": to, "message": message, "timer": None})

    def start(self, actor: str) -> bool:
        if actor not in self.hello["actors"] or self.status.get(actor) in ("running", "isolated"):
            return False
        failed = self.status.get(actor) == "crashed"
        disk = self.states.get(actor) if failed and self.hello.get("disk") else None
        self.status[actor] = "running"
        self._do(actor, actor, {"do": "start", "disk": disk})
        return True

    def crash(self, actor: str) -> bool:
        if self.status.get(actor) not in ("running", "isolated"):
            return False
        self.status[actor] = "crashed"
        self.seen.pop(actor, None)
        if self.hello.get("restarts"):
            return self.restart(actor)
        self.pending = [p for p in self.pending if p["to"] != actor or not p["timer"] or p["survives"]]
        return True

    def restart(self, actor: str) -> bool:
        self.pending = [p for p in self.pending if p["to"] != actor or not p["timer"] or p["survives"]]
        if self.status.get(actor) in ("running", "isolated"):
            self.status[actor] = "crashed"
        return self.start(actor)

    def stop(self, actor: str) -> bool:
        self.status[actor] = "stopped"
        self.seen.pop(actor, None)
        self.pending = [p for p in self.pending if p["to"] != actor]
        return True

    def isolate(self, actor: str) -> bool:
        if self.status.get(actor) != "running":
            return False
        self.status[actor] = "isolated"
        return True

    def heal(self, actor: str) -> bool:
        if self.status.get(actor) != "isolated":
            return False
        self.status[actor] = "running"
        return True

    def deliver(self, step: Dict[str, Any]) -> bool:
        to, kind = step["to"], step["kind"]
        if self.status.get(to) not in ("running", "isolated"):
            return False
        if kind == "deliver" and step.get("external"):
            message = self._external(step)
            if message is None or self.status[to] == "isolated":
                return False
            self._do(to, OUTSIDE, {"do": "deliver", "state": self.states[to], "from": None, "message": message})
            return True
        entry = self._find(step, timer=kind == "timer")
        if entry is None:
            return False
        sender = None if entry["timer"] or entry["from"] == OUTSIDE else entry["from"]
        if not entry["timer"] and not entry.get("copy"):
            before = self.pending[: self.pending.index(entry)]
            ordered = (p for p in before if not p["timer"] and not p.get("copy"))
            # Of what comes from outside nothing is in order.
            overtaken = [p for p in ordered if sender and (p["from"], p["to"]) == (sender, to)]
            if overtaken and self.network == "fifo":
                return False
            if self.network == "fifo-loss":
                self.pending = [p for p in self.pending if not any(p is lost for lost in overtaken)]
        self.pending = [p for p in self.pending if p is not entry]
        if entry.get("repeats"):
            self.pending.append(entry)
        question = {"do": "deliver", "state": self.states[to], "from": sender, "message": entry["message"]}
        self._do(to, entry["from"], question)
        return True

    def duplicate(self, step: Dict[str, Any]) -> bool:
        entry = self._find(step, timer=False)
        if entry is None:
            return False
        # A copy has no place in the order of its channel.
        self.pending.append({**entry, "copy": True})
        return True

    def _external(self, step: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        told = {"type": step.get("type", ""), "payload": step.get("payload", ""), "fields": step.get("fields")}
        if not self.hello.get("external"):
            return {"type": told["type"], "payload": told["payload"], "data": told["fields"]}
        answer = self.ask({"do": "external", **told})
        self.unknown = answer.get("unknown")
        return answer.get("message")

    def _find(self, step: Dict[str, Any], timer: bool) -> Optional[Dict[str, Any]]:
        """What the step means: the oldest of its content, or of its type where a mended model writes it otherwise."""
        alike = [
            p
            for p in self.pending
            if p["to"] == step["to"]
            and bool(p["timer"]) == timer
            and (timer or p["from"] == step.get("from"))
            and p["message"]["type"] == step.get("type", p["message"]["type"])
        ]
        exact = [p for p in alike if _is_text(p["message"], step.get("payload"))] or alike
        name = (step.get("timer") or {}).get("name")
        if name is not None:
            # Which of several timers that carry the same.
            exact = [p for p in exact if p["timer"] and _timer_name(*p["timer"]) == name] or exact
        wanted = [p for p in exact if bool(p.get("copy")) == bool(step.get("copy"))]
        return next(iter(wanted or exact), None)

    def check(self) -> List[str]:
        if self.crash_text is not None:
            return [self.crash_text]
        seen = {a: s for a, s in self.seen.items() if self.status[a] in ("running", "isolated")}
        failed = sorted(a for a, status in self.status.items() if status == "crashed")
        answer = self.ask({"do": "check", "seen": seen, "failed": failed, "memory": self.memory})
        self.memory = answer.get("memory")
        return [v["fingerprint"] for v in answer.get("violations", [])]


def _replayed(schedule: str) -> Tuple[str, Optional[int]]:
    """The schedule that ``DEMI_REPLAY`` asks for, and the step to stop at."""
    file, at, step = os.environ.get("DEMI_REPLAY", "").rpartition("@")
    if not at:
        file, step = step, ""
    if step and not step.isdigit():
        raise ValueError("DEMI_REPLAY is FILE, @STEP or FILE@STEP, not '%s@%s'" % (file, step))
    if file:
        with open(file, encoding="utf-8") as lines:
            schedule = lines.read()
    return schedule, int(step) if step else None


def follow(
    command: Sequence[str], scenario: Dict[str, Any], schedule: str, cwd: Optional[str] = None
) -> Outcome:
    """Has the model that ``command`` starts take the steps of a schedule, until what the schedule breaks is broken, or the end. What else breaks
    on the way is warned of.

    ``scenario`` has the keys of the scenario file, ``schedule`` the text of a schedule file. Random numbers that a model
    asks for are others than under demi-lineage.
    """
    schedule, stop = _replayed(schedule)
    child = _Child(command, cwd)
    try:
        asked = {key: scenario[key] for key in ("members", "invariants") if scenario.get(key) is not None}
        asked.update({key: scenario.get(key, {}) for key in ("switches", "settings", "payload")})
        hello = child.send({"hello": {"protocol": "demi-model/1", "scenario": asked}})["hello"]
        if hello.get("kind") != "pure":
            raise ValueError("only pure models can be followed here; this one is %s" % hello.get("kind"))
        header, *steps = [json.loads(line) for line in schedule.strip().splitlines()]
        wanted = header.get("violation") or []
        others: Dict[str, int] = {}
        world = _World(child.ask, hello, scenario.get("network", "fifo"))
        does = {
            "start": world.start,
            "crash": world.crash,
            "restart": world.restart,
            "stop": world.stop,
            "isolate": world.isolate,
            "heal": world.heal,
        }
        if stop is not None and not 1 <= stop <= len(steps):
            raise ValueError("DEMI_REPLAY: the schedule has the steps 1 to %d" % len(steps))
        passed_over: List[int] = []
        deliveries = 0
        for number, step in enumerate(steps, 1):
            kind = step["kind"]
            world.stops = number == stop
            if kind in does and step.get("external") is not False:
                taken = does[kind](step["to"])
            elif kind == "duplicate":
                taken = world.duplicate(step)
            elif kind in ("deliver", "timer"):
                taken = world.deliver(step)
            else:
                continue
            if not taken:
                if step.get("external") and kind == "deliver" and world.unknown:
                    raise ValueError("step %d: %s; export the test anew" % (number, world.unknown))
                passed_over.append(number)
                continue
            deliveries += kind in ("deliver", "timer")
            violations = world.check()
            crashes = world.crash_text is not None and any(text.startswith("crash: ") for text in wanted)
            if crashes or any(violation in wanted or not wanted for violation in violations):
                return Outcome(violations, number, passed_over)
            others.update((violation, number) for violation in violations if violation not in others)
            if world.crash_text is not None:
                break
        for violation, number in others.items():
            warnings.warn("step %d breaks something else: %s" % (number, violation), stacklevel=2)
        if not deliveries:
            raise ValueError("the model takes no step of the schedule: its actors and messages have other names")
        if passed_over:
            first = steps[passed_over[0] - 1]
            warnings.warn(
                "%d of %d steps could not be taken, first step %d, %s at %s: that is so once the bug is mended. Where messages or "
                "actors only have other names now, the test checks nothing: export it anew"
                % (len(passed_over), len(steps), passed_over[0], first.get("type", first["kind"]), first["to"]),
                stacklevel=2,
            )
        return Outcome([], len(steps), passed_over)
    finally:
        child.close()
