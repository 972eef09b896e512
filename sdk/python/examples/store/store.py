"""A replicated register: three processes, sockets, and a real bug.

A client may put a value at any replica. The replica takes it over and tells the others, which take it over as well. Nobody compares
who was first: of two values that are put at the same time, each replica keeps the one that came last to it. So replicas that have
taken the same writes may hold different values for ever.

    python3 store.py --logs logs

starts the replicas, puts values, waits until everything has arrived, and compares. Each process writes its own log, through the package
`demi_model`; the one that compares writes a violation.
"""

import argparse
import asyncio
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from demi_model import EventLog

NAMES = ["a", "b", "c"]
PUTS = 12


async def send(writer, message):
    """One message is one line of JSON."""
    writer.write(json.dumps(message).encode() + b"\n")
    await writer.drain()


class Replica:
    """One process: a register, and connections to the other replicas."""

    def __init__(self, name, folder):
        self.name = name
        self.log = EventLog(os.path.join(folder, name + ".jsonl"), name)
        self.value = None
        self.applied = []
        self.peers = {}
        self.puts = 0

    async def connect(self, ports):
        """Connects to the others, which listen already."""
        for name, port in ports.items():
            if name != self.name:
                _, self.peers[name] = await asyncio.open_connection("127.0.0.1", port)
        self.log.start()

    async def put(self, value):
        """A client puts a value here: it is taken over, and the others are told."""
        self.log.receive(None, None, "Put", "Put %d" % value, {"value": value})
        self.puts += 1
        write = {"id": "%s%d" % (self.name, self.puts), "value": value}
        self.apply(write)
        for name, writer in self.peers.items():
            msg_id = self.log.send(name, "Write", "Write %(id)s %(value)d" % write, write)
            # Networks take their time.
            asyncio.get_running_loop().call_later(
                random.random() / 50, lambda w=writer, m=msg_id: asyncio.ensure_future(
                    send(w, {"write": write, "from": self.name, "msg_id": m})))

    def take(self, message):
        """Another replica tells of a write."""
        write = message["write"]
        self.log.receive(message["from"], message["msg_id"], "Write", "Write %(id)s %(value)d" % write, write)
        self.apply(write)

    def apply(self, write):
        """The bug: whatever comes last stays."""
        self.applied.append(write["id"])
        self.value = write["value"]

    async def serve(self, reader, writer):
        """Handles the lines of one connection."""
        while line := await reader.readline():
            message = json.loads(line)
            if "write" in message:
                self.take(message)
            elif "connect" in message:
                await self.connect(message["connect"])
                await send(writer, "connected")
            elif "put" in message:
                await self.put(message["put"])
            elif "get" in message:
                await send(writer, {"value": self.value, "applied": sorted(self.applied)})


async def replica(name, folder):
    """The main function of a replica: it prints its port and serves until it is ended."""
    one = Replica(name, folder)
    server = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def ask(pair, message):
    """Sends a message and waits for the answer."""
    await send(pair[1], message)
    return json.loads(await pair[0].readline())


async def run(folder):
    """Starts the replicas, puts values, and compares; says whether the replicas agree."""
    os.makedirs(folder, exist_ok=True)
    processes, pairs, ports = [], {}, {}
    try:
        for name in NAMES:
            process = await asyncio.create_subprocess_exec(
                sys.executable, __file__, "--replica", name, "--logs", folder, stdout=asyncio.subprocess.PIPE)
            processes.append(process)
            ports[name] = int(await process.stdout.readline())
            pairs[name] = await asyncio.open_connection("127.0.0.1", ports[name])
        for name in NAMES:
            await ask(pairs[name], {"connect": ports})
        for value in range(PUTS):
            await send(pairs[NAMES[value % len(NAMES)]][1], {"put": value})
            await asyncio.sleep(0.005)
        held = {}
        while len(held) < len(NAMES) or any(len(one["applied"]) < PUTS for one in held.values()):
            await asyncio.sleep(0.02)
            held = {name: await ask(pairs[name], {"get": True}) for name in NAMES}
    finally:
        for process in processes:
            process.terminate()
            await process.wait()
    values = {name: one["value"] for name, one in held.items()}
    print("after the same %d writes: %s" % (PUTS, values))
    agree = len(set(values.values())) == 1
    if not agree:
        monitor = EventLog(os.path.join(folder, "monitor.jsonl"), "monitor")
        monitor.violation("Converged", NAMES)
        monitor.close()
    return agree


def main():
    """Reads the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", required=True, help="the folder for the logs")
    parser.add_argument("--replica", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.replica:
        asyncio.run(replica(arguments.replica, arguments.logs))
    else:
        sys.exit(0 if asyncio.run(run(arguments.logs)) else 1)


if __name__ == "__main__":
    main()
