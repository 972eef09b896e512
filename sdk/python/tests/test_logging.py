"""What the logging side of the SDK writes."""

import asyncio
import enum
import json
import os
import tempfile
import unittest

from demi_model import EventLog, tells_state


class Role(enum.Enum):
    LEADER = 1


class Replica:
    def __init__(self, path):
        self.log = EventLog(path, "r", 0)
        self.term, self.votes, self.role = 0, set(), Role.LEADER
        self.password, self._hidden, self.opener, self.ratio = "x", 1, open, float("nan")

    @tells_state(without=["password"])
    def on_vote(self, term, voter):
        self.term = term
        self.votes.add(voter)
        return len(self.votes)

    @tells_state(only=["term"])
    async def on_crash(self, term):
        self.term = term
        raise ValueError("broken")


class StatesAreTold(unittest.TestCase):
    def test_a_handler_tells_what_it_changed(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "log.jsonl")
            replica = Replica(path)
            self.assertEqual(replica.on_vote(1, "b"), 1)
            replica.on_vote(1, "b")
            replica.on_vote(1, "a")
            with self.assertRaises(ValueError):
                asyncio.run(replica.on_crash(5))
            replica.log.close()
            with open(path, encoding="utf-8") as log:
                records = [json.loads(line) for line in log]
        self.assertEqual([record["seq"] for record in records], [1, 2, 3])
        self.assertTrue(all(record["kind"] == "state" for record in records))
        self.assertEqual(records[0]["state"], {"term": 1, "votes": ["b"], "role": "LEADER"})
        self.assertEqual(records[1]["state"], {"term": 1, "votes": ["a", "b"], "role": "LEADER"})
        self.assertEqual(records[2]["state"], {"term": 5})


if __name__ == "__main__":
    unittest.main()
