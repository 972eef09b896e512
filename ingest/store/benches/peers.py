"""Load and build beside peers, in one run, on the same made-up log.

    python ingest/store/benches/peers.py DEMI_LINEAGE LOG FOLDER [ROUNDS]

LOG is what `cargo run --release -p demi-store --example generate_logs -- 4000000 200` writes. Each work runs in a process of its own, in each round all
of them one after the other; what is printed is the round with the least processor time: seconds, processor seconds, peak memory in MB, and
the size of what was written in MB. Polars, and DuckDB where it is installed, write one zstd Parquet file, without durability, keys or order; beside
`build` Polars joins sends with receives, sorts by actor and number, and writes that. The load of the machine is printed too. Needs polars.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

POLARS = "import sys, polars as pl; log, out = sys.argv[1:]; "
PEERS = {
    "Polars: NDJSON to Parquet": POLARS + "pl.scan_ndjson(log).sink_parquet(out, compression='zstd', compression_level=3)",
    "Polars: join, sort, write": POLARS
    + "events = pl.scan_parquet(out.replace('sorted', 'polars')); "
    + "sends = events.filter(pl.col('kind') == 'send').select('msg_id', sender='actor', sent='seq'); "
    + "events.join(sends, on='msg_id', how='left').sort('actor', 'seq').sink_parquet(out, compression='zstd', compression_level=3)",
    "DuckDB: NDJSON to Parquet": "import sys, duckdb; log, out = sys.argv[1:]; "
    + "duckdb.sql(f\"copy (select * from read_ndjson_auto('{log}')) to '{out}' (format parquet, compression zstd)\")",
}


def measured(command):
    """Seconds, processor seconds and peak memory of a process."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    if status:
        sys.exit(f"{command[0]} ended with {status}")
    return round(seconds, 2), round(used.ru_utime + used.ru_stime, 2), used.ru_maxrss // 1024


def size(path):
    """Bytes of a file, or of the files in a folder that have no other name elsewhere."""
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return sum(p.stat().st_size for p in files if p.stat().st_nlink == 1)


def fresh(path):
    shutil.rmtree(path, ignore_errors=True)
    path.unlink(missing_ok=True)
    return path


def main():
    program, log, folder, *rounds = sys.argv[1:]
    folder = Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    store, execution = folder / "store", folder / "exec"
    quiet = [program, "-q"]
    works = {
        "ingest load": ([*quiet, "ingest", "load", "--store", store, "--system", "bench", log], store),
        "build": ([*quiet, "build", "--store", store, "--system", "bench", "--violation", "none", "--out", execution], execution),
    }
    for name, script in PEERS.items():
        module = "duckdb" if "DuckDB" in name else "polars"
        if subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode:
            print(f"skipped: {name}, for want of {module}", file=sys.stderr)
            continue
        out = folder / {"Polars: NDJSON to Parquet": "polars.parquet", "Polars: join, sort, write": "sorted.parquet"}.get(name, "duckdb.parquet")
        works[name] = ([sys.executable, "-c", script, log, out], out)
    best = {}
    for _ in range(int(rounds[0]) if rounds else 3):
        for name, (command, out) in works.items():
            fresh(out)
            figures = (*measured(command), round(size(out) / 1e6, 1))
            if name not in best or figures[1] < best[name][1]:
                best[name] = figures
    names = ("seconds", "processor seconds", "peak MB", "written MB")
    table = {name: dict(zip(names, figures)) for name, figures in best.items()}
    print(json.dumps({"load of the machine": os.getloadavg()[0], "megabytes": round(Path(log).stat().st_size / 1e6), "works": table}, indent=2))


if __name__ == "__main__":
    main()
