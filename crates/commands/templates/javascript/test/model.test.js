// Checks of the model: it keeps to the protocol, the bug is found, and the repaired system breaks nothing.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const here = join(dirname(fileURLToPath(import.meta.url)), "..");
const scenario = readFileSync(join(here, "scenario.toml"), "utf8");

/** Runs a command of demi-lineage and returns its exit status. */
function demi(...args) {
  return spawnSync("demi-lineage", args, { cwd: here, stdio: "ignore" }).status;
}

function fuzz(text, seed, expect) {
  const folder = mkdtempSync(join(tmpdir(), "fuzz-"));
  try {
    const path = join(folder, "scenario.toml");
    writeFileSync(path, text);
    const runs = ["--runs", "50", "--deliveries", "200"];
    const out = ["--out", join(folder, "found"), "--expect", expect];
    return demi("fuzz", "--scenario", path, "--seed", String(seed), ...runs, ...out);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("it keeps to the protocol", () => {
  assert.equal(demi("model", "check", "--scenario", "scenario.toml"), 0);
});

test("the bug is found", () => {
  assert.equal(fuzz(scenario, 1, "violation"), 0);
});

test("the repaired system breaks nothing", () => {
  const repaired = scenario.replace("forgetful_lease = true", "forgetful_lease = false");
  for (let seed = 0; seed < 5; seed += 1) {
    assert.equal(fuzz(repaired, seed, "none"), 0);
  }
});
