"""The daemon beside its peers, in one run: the same NDJSON into zstd Parquet.

    python ingest/benches/peers.py PROGRAM DIR EVENTS

PROGRAM is the built example `daemon_throughput`. It writes DIR/input.jsonl and takes it through the daemon (two files
and two TCP connections, spooled, synced, committed); then Polars and DuckDB turn the same file into one zstd Parquet
file, without durability, without keys, without order. Prints one JSON object: seconds of each, and the daemon's seconds
as a multiple of theirs.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import polars


def timed(work):
    begin = time.perf_counter()
    work()
    return round(time.perf_counter() - begin, 2)


def main():
    program, folder, events = sys.argv[1:]
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    daemon = json.loads(subprocess.run([program, str(folder), events], check=True, capture_output=True).stdout)
    source = folder / "input.jsonl"
    parquet = folder / "polars.parquet"
    polars_seconds = timed(
        lambda: polars.scan_ndjson(source).sink_parquet(parquet, compression="zstd", compression_level=3)
    )
    duck = folder / "duckdb.parquet"
    query = f"copy (select * from read_ndjson_auto('{source}')) to '{duck}' (format parquet, compression zstd)"
    duckdb_seconds = timed(lambda: duckdb.sql(query))
    rows = polars.scan_parquet(parquet).select(polars.len()).collect().item()
    assert rows == int(events) == duckdb.sql(f"select count(*) from '{duck}'").fetchall()[0][0]
    print(
        json.dumps(
            {
                "daemon": daemon,
                "polars_seconds": polars_seconds,
                "duckdb_seconds": duckdb_seconds,
                "daemon_to_polars": round(daemon["seconds"] / polars_seconds, 2),
                "daemon_to_duckdb": round(daemon["seconds"] / duckdb_seconds, 2),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
