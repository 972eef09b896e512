"""Checks of the model: it keeps to the protocol, the bug is found, and the repaired system breaks nothing."""

import os
import re
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


def demi(*args):
    """Runs a command of demi-lineage and returns its exit status."""
    return subprocess.run(["demi-lineage", *args], cwd=HERE, check=False).returncode


class TestModel(unittest.TestCase):
    def fuzz(self, scenario, seed, expect):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "scenario.toml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(scenario)
            out = os.path.join(folder, "found")
            runs = ["--runs", "50", "--deliveries", "200"]
            return demi("fuzz", "--scenario", path, "--seed", str(seed), *runs, "--out", out, "--expect", expect)

    def scenario(self):
        with open(os.path.join(HERE, "scenario.toml"), encoding="utf-8") as file:
            return file.read()

    def test_it_keeps_to_the_protocol(self):
        self.assertEqual(demi("model", "check", "--scenario", "scenario.toml"), 0)

    def test_the_bug_is_found(self):
        self.assertEqual(self.fuzz(self.scenario(), 1, "violation"), 0)

    def test_the_repaired_system_breaks_nothing(self):
        # With every switch off the model is the repaired system.
        repaired = re.sub(r"(?m)^(\w+) = true$", r"\1 = false", self.scenario())
        for seed in range(5):
            self.assertEqual(self.fuzz(repaired, seed, "none"), 0)


if __name__ == "__main__":
    unittest.main()
