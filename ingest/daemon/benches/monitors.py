"""What monitors cost ingest: event records with states are posted to a daemon at a rate, without a monitor and with 60 invariants.

    python3 ingest/daemon/benches/monitors.py DEMI_LINEAGE FOLDER RECORDS RATE [CPU_SHARE...]

A third of the records are states of 20 variables of ten actors. RATE is records a second, 0 as fast as they are taken. For each run: how
long the records took to be acknowledged and to be in the store, the daemon's processor time and memory, which share of the states
the monitor looked at, and how many records it missed. Needs Python alone.
"""

import http.client
import os
import shutil
import sys
import time

from serving import Daemon

ACTORS, VARIABLES, INVARIANTS, POST = 10, 20, 60, 5_000


def invariants():
    text = 'schema = "demi-invariants/1"\n'
    for n in range(INVARIANTS):
        v, w = n % VARIABLES, (n * 7 + 3) % VARIABLES
        holds = [
            f"v{v} >= prev.v{v} OR v{v} < 0",
            f"v{v} + v{w} >= 0",
            f"max(v{v}) - min(v{v}) <= 1000000",
            f"WHERE role = 'Leader' GROUP BY v{v} HAVING count(*) <= 9",
            f"PAIRS a, b WHERE a.v{v} > b.v{v} HAVING a.v{w} >= 0",
            f"EVER WHERE role = 'Leader' GROUP BY v{v} HAVING count(DISTINCT actor) <= 10",
        ][n % 6]
        text += f'[[invariant]]\nid = "i{n}"\nholds = "{holds}"\n'
    return text


def posts(records):
    values, seqs, lines = [[0] * VARIABLES for _ in range(ACTORS)], [0] * ACTORS, []
    for n in range(records // 3):
        sender, receiver = (n * 7) % ACTORS, (n * 3 + 1) % ACTORS
        own = values[receiver]
        own[n % VARIABLES] = n // 50
        own[n * 3 % VARIABLES] += 1
        state = ",".join(f'"v{i}":{value}' for i, value in enumerate(own))
        role = "Follower" if n % 5 else "Leader"
        told = [
            (sender, f'"kind":"send","to":"n-{receiver}","type":"m","msg_id":"{n}"'),
            (receiver, f'"kind":"receive","from":"n-{sender}","type":"m","msg_id":"{n}"'),
            (receiver, f'"kind":"state","state":{{"role":"{role}",{state}}}'),
        ]
        for actor, rest in told:
            seqs[actor] += 1
            lines.append(f'{{"actor":"n-{actor}","seq":{seqs[actor]},{rest}}}\n')
        if len(lines) >= POST:
            yield len(lines), "".join(lines).encode()
            lines = []
    if lines:
        yield len(lines), "".join(lines).encode()


def processor_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(program, folder, bodies, records, rate, share):
    for name in ("store", "spool"):
        shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
    config = (
        f'[store]\ndir = "{folder}/store"\nseal_millis = 1000\n[spool]\ndir = "{folder}/spool"\n'
        '[admin]\nlisten = "127.0.0.1:0"\n[daemon]\nlog = "warn"\n'
        '[sources.http]\ntype = "http"\nsystem = "s"\nlisten = "127.0.0.1:0"\n'
    )
    if share is not None:
        config += f'[monitors.m]\nsystem = "s"\ninvariants = "{folder}/invariants.toml"\ncpu_share = {share}\nkeys = 10000\n'
    with open(os.path.join(folder, "demi.toml"), "w") as file:
        file.write(config)
    daemon = Daemon(program, os.path.join(folder, "demi.toml"))

    def memory(which):
        line = next(line for line in open(f"/proc/{daemon.process.pid}/status") if line.startswith(which))
        return int(line.split()[1]) // 1024

    began, sent, slowest, samples, held = time.monotonic(), 0, 0.0, [], []
    source = http.client.HTTPConnection(daemon.addresses["http"])
    for count, body in bodies:
        if rate:
            time.sleep(max(0.0, began + sent / rate - time.monotonic()))
        posted = time.monotonic()
        source.request("POST", "/v1/events", body)
        answer = source.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        slowest = max(slowest, time.monotonic() - posted)
        sent += count
        if sent * 5 // records > len(held):
            held.append(memory("VmRSS"))
        if share is not None and len(samples) < (time.monotonic() - began):
            samples.append(daemon.metric("demi_invariant_sample"))
    acknowledged = time.monotonic() - began
    while daemon.metric("demi_events_written_total") < sent:
        time.sleep(0.02)
    stored = time.monotonic() - began
    most = memory("VmHWM")
    used = processor_seconds(daemon.process.pid)
    dropped = daemon.metric("demi_monitor_dropped_total")
    daemon.stop()
    sample = f", sample {sum(samples) / len(samples):.3f}" if samples else ""
    print(
        f"{'no monitor' if share is None else f'cpu_share {share}'}: {sent / acknowledged:,.0f} records/s acknowledged, "
        f"{sent / stored:,.0f} in the store, slowest post {slowest * 1000:.0f} ms, {used:.1f} s of processor time, "
        f"{most} MiB at most, {', '.join(map(str, held))} after each fifth, {dropped:,.0f} of {sent:,} missed{sample}",
        flush=True,
    )


def main():
    program, folder, records, rate, *shares = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "invariants.toml"), "w") as file:
        file.write(invariants())
    # Made before the clock runs, for to make them costs as much as to take them.
    bodies = list(posts(int(records)))
    for share in [None, *(float(share) for share in shares or ["1.0"])]:
        run(program, os.path.abspath(folder), bodies, sum(count for count, _ in bodies), float(rate), share)


if __name__ == "__main__":
    main()
