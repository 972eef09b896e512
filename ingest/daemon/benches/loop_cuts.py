"""Power cuts on a real file system: images of an ext4 file system on a loop device, copied while a daemon runs on it.

    python ingest/daemon/benches/loop_cuts.py PROGRAM DIR [CUTS]

PROGRAM is the binary demi-lineage, DIR a folder with 1 GB of room, best in memory. Needs root and loop devices. What is not on the device when it is
copied is lost: pages that nobody synced, and the journal's open transaction. The daemon is halted while the image is copied, so that a copy is one
moment. Each copy is mounted, which replays the journal; the daemon starts on it, commits what its spool has, and stops. Every acknowledged record must
be there once.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request

BATCH = 20
SIZE = "192M"


def run(*args, check=True):
    return subprocess.run(args, check=check, capture_output=True, text=True)


def config(mount, path):
    with open(path, "w") as out:
        out.write(
            f'[store]\ndir = "{mount}/a/store"\nseal_millis = 100\nreserve_bytes = 1048576\n'
            f'[spool]\ndir = "{mount}/b/spool"\nsegment_bytes = 1048576\nmax_bytes = 67108864\n'
            "[limits]\nbody_bytes = 1048576\nline_bytes = 65536\n"
            '[sources.h]\ntype = "http"\nsystem = "s"\nlisten = "127.0.0.1:0"\n'
        )


class Daemon:
    def __init__(self, program, mount, work):
        path = os.path.join(work, "loop.toml")
        config(mount, path)
        self.process = subprocess.Popen(
            [program, "ingest", "serve", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        for line in self.process.stdout:
            found = re.match(r"h (\S+)", line)
            if found:
                self.address = found.group(1)
            if line.startswith("ready"):
                return
        raise SystemExit("the daemon does not start")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)


def send(address, batch):
    first = batch * BATCH
    lines = "".join(
        json.dumps({"actor": "a", "seq": first + n + 1, "kind": "local", "payload": f"{random.random()}"}) + "\n"
        for n in range(BATCH)
    )
    request = urllib.request.Request(f"http://{address}/v1/events", data=lines.encode(), method="POST")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.status == 200


def check(program, image, mount, work, acknowledged):
    run("mount", "-o", "loop", image, mount)
    try:
        Daemon(program, mount, work).stop()
        told = run(program, "ingest", "status", "--store", f"{mount}/a/store", "--json", check=False)
        if acknowledged == 0 and told.returncode != 0:
            return None
        if told.returncode != 0:
            return told.stderr
        rows = json.loads(told.stdout)["completeness"]
        events, missing = sum(row["events"] for row in rows), sum(row["missing"] for row in rows)
        if events < acknowledged or missing:
            return f"{events} events, {missing} missing, {acknowledged} acknowledged"
        return None
    finally:
        run("umount", mount)


def main():
    program, work = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    cuts = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    os.makedirs(work, exist_ok=True)
    image, mount, copied, other = (os.path.join(work, name) for name in ("image", "mount", "copy", "other"))
    for folder in (mount, other):
        os.makedirs(folder, exist_ok=True)
    failures = 0
    for cut in range(cuts):
        # Every other cut is in the first half minute of a new store, when the journal may not have been written on its own.
        run("truncate", "-s", "0", image)
        run("truncate", "-s", SIZE, image)
        run("mkfs.ext4", "-q", "-F", image)
        run("mount", "-o", "loop", image, mount)
        acknowledged = 0
        try:
            daemon = Daemon(program, mount, work)
            over = threading.Event()

            def client():
                nonlocal acknowledged
                batch = 0
                while not over.is_set():
                    try:
                        if send(daemon.address, batch):
                            batch += 1
                            acknowledged = batch * BATCH
                    except OSError:
                        return

            thread = threading.Thread(target=client)
            thread.start()
            time.sleep(random.uniform(0.05, 3 if cut % 2 == 0 else 12))
            known = acknowledged
            daemon.process.send_signal(signal.SIGSTOP)
            shutil.copyfile(image, copied)
            daemon.process.send_signal(signal.SIGCONT)
            over.set()
            daemon.stop()
            thread.join()
        finally:
            run("umount", mount)
        problem = check(program, copied, other, work, known)
        print(f"cut {cut + 1}: {known} acknowledged: {problem or 'all there once'}", flush=True)
        failures += problem is not None
    print(f"{cuts} cuts, {failures} failures")
    sys.exit(1 if failures else 0)


main()
