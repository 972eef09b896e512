"""The causal past of one event: demi-lineage, DuckDB (recursive SQL) and networkx on the same execution.

    python3 -m venv venv && venv/bin/pip install duckdb networkx pyarrow
    venv/bin/python lineage/benches/peers.py --demi target/release/demi-lineage EXEC [EXEC ..]

Each EXEC is a folder written by `demi-lineage build --copy`. All answer with the number of events before the event with the longest
chain, from a process that starts cold; the answers must be equal. Peers are stopped after 60 seconds, and the largest
execution that each finished is printed at the end.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

LIMIT = 60

LAST = """
    SELECT actor, incarnation, seq FROM read_parquet('{exec}/events.parquet')
    WHERE actor NOT IN ('_environment', '_monitor') ORDER BY depth DESC, actor LIMIT 1
"""

# Edges of happens-before: each event after the one before it in its log, and each receive after its send. The environment's
# events, and what threads send, stand outside the order of a log.
EDGES = """
    WITH e AS (
        SELECT "order" AS id, actor, incarnation, seq,
               actor = '_environment' OR (kind IN ('send', 'timer_set') AND coalesce(via, '') = 'thread') AS alone
        FROM read_parquet('{exec}/events.parquet')),
    log AS (
        SELECT lag(id) OVER (PARTITION BY actor ORDER BY incarnation, seq) AS cause, id AS effect
        FROM e WHERE NOT alone),
    message AS (
        SELECT s.id AS cause, r.id AS effect FROM read_parquet('{exec}/messages.parquet') m
        JOIN e s ON (s.actor, s.incarnation, s.seq) = (m.send_actor, m.send_incarnation, m.send_seq)
        JOIN e r ON (r.actor, r.incarnation, r.seq) = (m.receive_actor, m.receive_incarnation, m.receive_seq))
    SELECT * FROM log WHERE cause IS NOT NULL UNION ALL SELECT * FROM message
"""

START = """
    SELECT "order" FROM read_parquet('{exec}/events.parquet') WHERE (actor, incarnation, seq) = {event}
"""


def last_event(folder):
    import duckdb

    return duckdb.sql(LAST.format(exec=folder)).fetchall()[0]


def duckdb_past(folder, event):
    import duckdb

    db = duckdb.connect()
    db.sql("CREATE TABLE edges AS " + EDGES.format(exec=folder))
    start = db.sql(START.format(exec=folder, event=event)).fetchall()[0][0]
    query = f"""
        WITH RECURSIVE past(id) AS (
            SELECT {start} UNION SELECT cause FROM edges JOIN past ON edges.effect = past.id)
        SELECT count(*) - 1 FROM past"""
    return db.sql(query).fetchall()[0][0]


def networkx_past(folder, event):
    import duckdb
    import networkx

    graph = networkx.DiGraph()
    graph.add_edges_from(duckdb.sql(EDGES.format(exec=folder)).fetchall())
    start = duckdb.sql(START.format(exec=folder, event=event)).fetchall()[0][0]
    return len(networkx.ancestors(graph, start)) if start in graph else 0


def timed(command):
    began = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return None, None
    if done.returncode != 0:
        print(done.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return None, None
    return time.monotonic() - began, json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demi", default="demi-lineage", help="the program")
    parser.add_argument("--peer", choices=["duckdb", "networkx"], help=argparse.SUPPRESS)
    parser.add_argument("--event", help=argparse.SUPPRESS)
    parser.add_argument("exec", nargs="+", type=Path)
    args = parser.parse_args()
    if args.peer:
        run = {"duckdb": duckdb_past, "networkx": networkx_past}[args.peer]
        print(json.dumps({"size": run(args.exec[0], tuple(json.loads(args.event)))}))
        return
    largest = {}
    print(f"{'events':>10} {'peer':>12} {'seconds':>9} {'ratio':>8}")
    for folder in args.exec:
        events = json.loads((folder / "summary.json").read_text())["events"]
        actor, incarnation, seq = last_event(folder)
        name = f"{actor}/{seq}" if incarnation == 0 else f"{actor}/{incarnation}/{seq}"
        ours, answer = timed([args.demi, "-q", "query", str(folder), "past", name, "--json"])
        if ours is None:
            sys.exit(f"{folder}: the program gave no answer")
        print(f"{events:>10} {'demi-lineage':>12} {ours:>9.3f} {1:>8.1f}")
        for peer in ("duckdb", "networkx"):
            event = json.dumps([actor, incarnation, seq])
            command = [sys.executable, __file__, "--peer", peer, "--event", event, str(folder)]
            seconds, found = timed(command)
            if seconds is None:
                print(f"{events:>10} {peer:>12} {'> ' + str(LIMIT):>9}")
                continue
            if found["size"] != answer["size"]:
                sys.exit(f"{folder}: {peer} finds {found['size']} events before {name}, not {answer['size']}")
            largest[peer] = max(events, largest.get(peer, 0))
            print(f"{events:>10} {peer:>12} {seconds:>9.3f} {seconds / ours:>8.1f}")
    for peer, events in largest.items():
        print(f"largest that {peer} finished in {LIMIT} s: {events} events")


if __name__ == "__main__":
    main()
