"""A model of akka-raft that was written apart from this project, wrapped by the SDK. Arguments: the folder of the SDK,
the folder with `model.py` and `invariants.py`."""

import sys

sys.path[:0] = sys.argv[1:]

import invariants
import model as akka
from demi_model import Model, Violation, message, serve

CHECKS = {
    "ElectionSafety": "election",
    "LogMatch": "logmatch",
    "LeaderCompleteness": "completeness",
    "StateMachine": "statemachine",
}


def entry(e):
    return [e.cmd, e.term, e.index]


def entries(rows):
    return [akka.Entry(*row) for row in rows]


class Net:
    """What a member asks for, as effects."""

    def __init__(self, model, ctx):
        self.model, self.ctx = model, ctx

    def send(self, src, dst, msg):
        if src == self.ctx.me:
            self.ctx.send(dst, self.model.wrap(msg))
        else:
            self.ctx.forward(self.model.wrap(msg))

    def arm(self, dst, timer):
        if timer[0] == "Timer":
            self.ctx.set_timer(timer[1], self.model.wrap(timer[:4] + (0,)), repeats=timer[3])
        else:
            self.ctx.set_timer("state-timeout", self.model.wrap(("TimeoutMarker", 0)))

    def disarm(self, dst, timer):
        self.ctx.cancel_timer(timer[1] if timer[0] == "Timer" else "state-timeout")


class Member:
    """What invariants read of one member."""

    def __init__(self, seen):
        self.term, rows, committed, self.words = seen
        self.state = "" if self.term is None else akka.LEADER
        self.log = akka.Log(True)
        self.log.entries, self.log.committed = entries(rows), committed


class Raft(Model):
    # Generations of timers count what is of no consequence: they are not kept, and hidden where logs tell them.
    masks = [
        {"type": timer, "pattern": r",\d+\)$", "replace": ")"} for timer in ("ElectionTimeout", "SendHeartbeat")
    ]

    def configure(self, scenario):
        self.switches = akka.Switches.of(*(name for name, on in scenario["switches"].items() if on))
        self.actors = ["raft-member-%d" % (n + 1) for n in range(scenario["members"])]
        self.checks = [CHECKS[name] for name in scenario["invariants"] or CHECKS]
        self.payload = scenario["payload"] or {}
        self.restarts = self.switches.raft62_restart

    def wrap(self, msg):
        payload = akka.payload(
            msg,
            self.switches.raft58b_zero_indexed_log,
            self.payload.get("client_message_names_client", False),
            self.payload.get("bare_change_configuration", False),
        )
        kind = {"Timer": msg[2] if len(msg) > 2 else "", "TimeoutMarker": "StateTimeout"}.get(msg[0], msg[0])
        data = list(msg)
        if msg[0] == "AppendEntries":
            data[4] = [entry(e) for e in msg[4]]
        return message(kind, data, payload)

    def unwrap(self, msg):
        data = list(msg.data)
        if data[0] == "AppendEntries":
            data[4] = tuple(entries(data[4]))
        if data[0] == "ChangeConfiguration":
            data[1] = tuple(data[1])
        return tuple(data)

    def start(self, actor, ctx, disk=None):
        return akka.Member(actor, Net(self, ctx), self.switches)

    def dump(self, m):
        tally = sorted(m.tally) if isinstance(m.tally, set) else m.tally
        tables = [[table.default, list(table.map.items())] for table in (m.next, m.match)]
        timers = sorted([name, list(timer[:4])] for name, timer in m.timers.items())
        log = [[entry(e) for e in m.log.entries], m.log.committed]
        words = m.words if "statemachine" in self.checks else []
        return [m.state, m.term, m.config, sorted(m.votes.items()), tally, log, tables, words, timers, m.marker is not None]

    def load(self, actor, value):
        m = akka.Member(actor, None, self.switches)
        m.state, m.term, config, votes, tally, log, tables, m.words, timers, marked = value
        m.config, m.votes = tuple(config), dict(votes)
        m.tally = set(tally) if isinstance(tally, list) else tally
        m.log.entries, m.log.committed = entries(log[0]), log[1]
        for table, (default, rows) in zip((m.next, m.match), tables):
            table.default, table.map = default, dict(rows)
        m.timers = {name: (*timer, 0) for name, timer in timers}
        m.marker = 0 if marked else None
        return m

    def deliver(self, actor, m, msg, ctx):
        m.net = Net(self, ctx)
        try:
            m.receive(ctx.sender, self.unwrap(msg))
        except akka.Crash as crash:
            ctx.fail(str(crash))

    def seen(self, actor, m):
        term = m.term if m.state == akka.LEADER else None
        if self.checks == ["election"]:
            return [term, [], 0, []]
        return [term, [entry(e) for e in m.log.entries], m.log.committed, m.words]

    def check(self, seen, failed, memory):
        checker = invariants.Checker(self.checks)
        if memory:
            leader_of, last_leader_of, log_of, ever, committed, words_of = memory
            checker.leader_of, checker.last_leader_of = dict(leader_of), dict(last_leader_of)
            checker.log_of = {name: entries(rows) for name, rows in log_of}
            checker.ever_in_log = {name: set(map(tuple, rows)) for name, rows in ever}
            checker.committed, checker.words_of = set(map(tuple, committed)), dict(words_of)
        members = {name: Member(value) for name, value in seen.items()}
        found = checker.observe({**dict.fromkeys(failed), **members})
        memory = [
            sorted(checker.leader_of.items()),
            sorted(checker.last_leader_of.items()),
            sorted((name, [entry(e) for e in log]) for name, log in checker.log_of.items()),
            sorted((name, sorted(rows)) for name, rows in checker.ever_in_log.items()),
            sorted(checker.committed),
            sorted(checker.words_of.items()),
        ]
        return [Violation(name, sorted(who)) for name, who in found.items()], memory

    def external(self, type, payload, fields):
        if type == "ChangeConfiguration":
            return self.wrap((type, tuple(fields["members"])))
        if type == "ClientMessage":
            return self.wrap((type, "AppendWord(%s)" % fields["word"]))
        return None


serve(Raft())
