"""Ingest beside its peers, in one run: the same NDJSON into zstd Parquet.

    python ingest/daemon/benches/peers.py DEMI_LINEAGE FOLDER EVENTS [ROUNDS]

Each round takes the same records, 220 bytes each, through `ingest load`, through the daemon (two files and two TCP connections, spooled,
synced, committed), and through Polars and, where it is installed, DuckDB, which write one zstd Parquet file without durability,
without keys, without order. Prints the seconds of each round, and how many times the best of Polars the best of ours take. Needs polars.
"""

import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import polars
from serving import Daemon

try:
    import duckdb
except ImportError:
    duckdb = None

ACTORS = 8


def records(events):
    """A ring of actors that pass messages on; each actor's own records are in order."""
    for n in range(events):
        actor, step = n % ACTORS, n // ACTORS
        kind, sender, receiver = "send", actor, (actor + 1) % ACTORS
        if step % 2:
            kind, sender, receiver = "receive", (actor + ACTORS - 1) % ACTORS, actor
        identity = n // 2
        yield (
            f'{{"actor":"member-{actor}","seq":{step + 1},"kind":"{kind}","msg_id":"{identity}",'
            f'"from":"member-{sender}","to":"member-{receiver}","type":"AppendEntries",'
            f'"payload":"AppendEntries(Term({step // 1000}),List(Entry({identity},Term({step // 1001}),{step})),{identity % 977})",'
            f'"time":{1_715_731_200_000 + n}}}\n'
        ).encode()


def timed(work):
    begin = time.perf_counter()
    work()
    return round(time.perf_counter() - begin, 2)


def load(program, folder):
    store = folder / "loaded"
    shutil.rmtree(store, ignore_errors=True)
    command = [program, "-q", "ingest", "load", "--store", store, "--system", "bench", folder / "input.jsonl"]
    return timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))


def send(address, part):
    """Sends everything and waits until it is acknowledged."""
    host, port = address.rsplit(":", 1)
    last = b'{"acknowledged":%d}' % part.count(b"\n")
    with socket.create_connection((host, int(port))) as stream:
        sender = threading.Thread(target=stream.sendall, args=(part,))
        sender.start()
        for answer in stream.makefile("rb"):
            assert b"error" not in answer, answer
            if answer.strip() == last:
                break
        sender.join()


def daemon(program, folder, parts, events):
    for name in ("store", "spool", "logs"):
        shutil.rmtree(folder / name, ignore_errors=True)
    (folder / "logs").mkdir()
    for name, part in zip("ab", parts):
        (folder / "logs" / f"{name}.log").write_bytes(part)
    config = folder / "demi.toml"
    config.write_text(
        f'[store]\ndir = "{folder}/store"\n[spool]\ndir = "{folder}/spool"\n[admin]\nlisten = "127.0.0.1:0"\n[daemon]\nlog = "warn"\n'
        f'[sources.logs]\ntype = "files"\nsystem = "bench"\npaths = ["{folder}/logs/*.log"]\n'
        '[sources.tcp]\ntype = "tcp"\nsystem = "bench"\nlisten = "127.0.0.1:0"\n'
    )
    served = Daemon(program, config)

    def drive():
        senders = [threading.Thread(target=send, args=(served.addresses["tcp"], part)) for part in parts[2:]]
        [sender.start() for sender in senders]
        while served.metric("demi_events_written_total") < events:
            time.sleep(0.02)
        [sender.join() for sender in senders]

    try:
        return timed(drive)
    finally:
        served.stop()


def main():
    program, folder, events, *rounds = sys.argv[1:]
    folder, events = Path(folder).resolve(), int(events)
    folder.mkdir(parents=True, exist_ok=True)
    source, parts = folder / "input.jsonl", [bytearray() for _ in range(4)]
    with open(source, "wb") as out:
        for n, line in enumerate(records(events)):
            out.write(line)
            # Each actor's records stay together, so that its log comes in order.
            parts[n % ACTORS % 4].extend(line)
    parquet = folder / "polars.parquet"
    scan = polars.scan_ndjson
    seconds = {"load": [], "daemon": [], "polars": []}
    if duckdb:
        seconds["duckdb"] = []
    query = f"copy (select * from read_ndjson_auto('{source}')) to '{folder}/duckdb.parquet' (format parquet, compression zstd)"
    for _ in range(int(rounds[0]) if rounds else 3):
        seconds["load"].append(load(program, folder))
        seconds["daemon"].append(daemon(program, folder, parts, events))
        seconds["polars"].append(timed(lambda: scan(source).sink_parquet(parquet, compression="zstd", compression_level=3)))
        if duckdb:
            seconds["duckdb"].append(timed(lambda: duckdb.sql(query)))
    assert polars.scan_parquet(parquet).select(polars.len()).collect().item() == events
    best = {name: min(all) for name, all in seconds.items()}
    times = {name: round(best[name] / best["polars"], 2) for name in ("load", "daemon")}
    print(json.dumps({"megabytes": source.stat().st_size // 10**6, "seconds": seconds, "times_polars": times}, indent=2))


if __name__ == "__main__":
    main()
