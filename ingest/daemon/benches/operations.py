"""What an operator does in a busy day, once each, while records come in: is anything lost or doubled?

    python ingest/daemon/benches/operations.py DEMI_LINEAGE FOLDER RATE [EARLIER_DEMI_LINEAGE]

DEMI_LINEAGE is the binary, FOLDER a folder that is absent or empty, RATE how many records a second all senders write together. With an earlier
binary, the upgrade begins with it. Needs `gzip`, and root for the small disk; without root that row is missing. Takes five minutes.

Senders number the records of each actor from 1. Two send by HTTP, two by TCP, two write files that are rotated. A sender over a connection knows what was
acknowledged, and sends the rest again, as the documents ask of a client. What is in a file needs no acknowledgement: all of it has to come.
After each operation, while the senders go on, the store is asked by `query --sql` which numbers of each actor it has. The columns of the table:

    sent, acked     records in the time of the operation; a line in a file counts as both
    checked         records that were acknowledged so far, in all, and had to be in the store
    lost            those of them that the store has not
    doubled         rows of the store whose actor and number another row has
    altered         rows whose content is not what was sent, and lines in quarantine
    revived         deleted records that are there
    p50 p99 max     milliseconds from the time when the first record of a batch was due to the acknowledgement of the batch, over connections. Each of
                    its records counts. A batch is made every 50 ms, which is in it, and so is the time while the daemon is stopped
    load            load of the machine in the last minute

Ends with 1 if a figure of lost, doubled, altered or revived is not 0, or an operation did something else than the documents say.
"""

import collections
import contextlib
import functools
import http.client
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

SYSTEM = "shop"
TICK = 0.05  # seconds between two batches of a sender
MOST = 2000  # records of an actor in a batch, when a sender catches up
AGED = 4000  # the first records of the actors `aged-...` are older than what is kept
SEGMENT = 1 << 20  # bytes of a segment of the spool: so few that what is in the store soon leaves the spool
WINDOW = 6  # seconds of sending before and after each operation
PATIENCE = 90  # seconds until what was acknowledged has to be in the store
TOKENS = ["the-token-of-the-morning", "the-token-of-the-evening"]


def free_ports(count):
    """Ports that nobody listens at. They stay the same when a daemon starts again, so that senders find it."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        [one.bind(("127.0.0.1", 0)) for one in sockets]
        return [one.getsockname()[1] for one in sockets]


class Actor:
    """Who numbers records. What a record holds follows from its actor and number, so each can be made again."""

    def __init__(self, name, rate, birth):
        self.name, self.rate, self.birth = name, rate, birth
        self.sent = self.acknowledged = self.removed = 0
        self.begin = time.monotonic()
        self.ended = None

    def record(self, seq):
        stamp = self.birth + seq / self.rate
        if self.name.startswith("aged") and seq <= AGED:
            stamp -= 40 * 86400
        text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(stamp))
        return (
            f'{{"actor":"{self.name}","seq":{seq},"kind":"local","type":"Order","time":"{text}",'
            f'"payload":"{self.name} {seq}","fields":{{"customer":{seq * 7919 % 100003},"basket":[{seq % 17},{seq % 23}],"paid":true}}}}\n'
        ).encode()

    def records(self, first, last):
        return b"".join(map(self.record, range(first, last + 1)))

    def due(self, now):
        """First and last number that are due, and when the first was; `None` if none is."""
        last = min(int((now - self.begin) * self.rate), self.sent + MOST, self.ended or sys.maxsize)
        return (self.sent + 1, last, self.begin + (self.sent + 1) / self.rate) if last > self.sent else None


class Sender(threading.Thread):
    """Sends the records of its actors when they are due, until it is stopped."""

    def __init__(self, site, actors):
        super().__init__(daemon=True)
        self.site, self.actors = site, actors
        self.stopping = threading.Event()

    def batch(self):
        """What is due now: its actors with their last numbers, its bytes, the time since which it is due."""
        now, ends, parts, since = time.monotonic(), [], [], None
        for actor in self.actors:
            found = actor.due(now)
            if found:
                first, actor.sent, at = found
                ends.append((actor, actor.sent))
                parts.append(actor.records(first, actor.sent))
                since = min(at, since or at)
        return (ends, b"".join(parts), since) if ends else None

    def acknowledge(self, ends, since):
        now, count = time.monotonic(), 0
        for actor, last in ends:
            count += last - actor.acknowledged
            actor.acknowledged = last
        self.site.latencies.append((now, (now - since) * 1000, count))

    def stop(self):
        self.stopping.set()
        self.join()


class HttpSender(Sender):
    def run(self):
        connection = None
        while not self.stopping.wait(TICK):
            batch = self.batch()
            # The same request until it is acknowledged, as a client that wants to lose nothing sends it.
            while batch:
                try:
                    connection = connection or http.client.HTTPConnection("127.0.0.1", self.site.ports["web"], timeout=60)
                    connection.request("POST", "/v1/events", batch[1], {"Authorization": f"Bearer {self.site.token}"})
                    answer = connection.getresponse()
                    answer.read()
                    if answer.status == 200:
                        self.acknowledge(batch[0], batch[2])
                        break
                    self.site.refusals[answer.status] += 1
                except (OSError, http.client.HTTPException) as error:
                    self.site.refusals[type(error).__name__] += 1
                    connection = None
                if self.stopping.wait(TICK):
                    return


class TcpSender(Sender):
    def run(self):
        pending = collections.deque()
        while not self.stopping.is_set():
            try:
                with socket.create_connection(("127.0.0.1", self.site.ports["lines"]), timeout=5) as stream:
                    self.converse(stream, pending)
            except OSError as error:
                self.site.refusals[type(error).__name__] += 1
            self.stopping.wait(TICK)

    def converse(self, stream, pending):
        """Sends what is pending once more and then what is due, until the daemon closes the connection."""
        stream.setblocking(False)
        out = bytearray(f"AUTH {self.site.token}\n".encode() + b"".join(batch[1] for batch in pending))
        answers, lines = b"", 0
        ends = collections.deque()  # the number of this connection's line with which each pending batch ends
        for batch in pending:
            lines += batch[1].count(b"\n")
            ends.append(lines)
        next_tick = time.monotonic()
        # When it is stopped it waits for its acknowledgements, as long as somebody is there to give them.
        while not (self.stopping.is_set() and not pending):
            now = time.monotonic()
            # While the daemon does not read, nothing new is made: it stays due.
            if now >= next_tick and len(out) < 1 << 20 and not self.stopping.is_set():
                next_tick = now + TICK
                batch = self.batch()
                if batch:
                    pending.append(batch)
                    lines += batch[1].count(b"\n")
                    ends.append(lines)
                    out += batch[1]
            readable, writable, _ = select.select([stream], [stream] if out else [], [], TICK / 2)
            if writable:
                del out[: stream.send(out[: 1 << 16])]
            if readable:
                some = stream.recv(1 << 16)
                if not some:
                    return
                *whole, answers = (answers + some).split(b"\n")
                for answer in map(json.loads, whole):
                    if "error" in answer:
                        self.site.refusals[answer["error"]] += 1
                        continue
                    while ends and ends[0] <= answer["acknowledged"]:
                        ends.popleft()
                        done = pending.popleft()
                        self.acknowledge(done[0], done[2])


class FileSender(Sender):
    """Writes a file that can be rotated in each of the ways that `logrotate` knows."""

    def __init__(self, site, actors, path):
        super().__init__(site, actors)
        self.path, self.lock = path, threading.Lock()
        self.file = open(path, "ab", buffering=0)

    def run(self):
        while not self.stopping.wait(TICK):
            batch = self.batch()
            if batch:
                with self.lock:
                    self.file.write(batch[1])
                for actor, last in batch[0]:
                    actor.acknowledged = last

    def named(self, number, packed=""):
        return self.path.with_name(f"{self.path.name}.{number}{packed}")

    def shift(self):
        """Every rotated file gets the next number; what was `.1` until now is packed."""
        number = 1
        while self.named(number).exists() or self.named(number, ".gz").exists():
            number += 1
        for old in range(number - 1, 0, -1):
            for packed in ("", ".gz"):
                if self.named(old, packed).exists():
                    self.named(old, packed).rename(self.named(old + 1, packed))
        if self.named(2).exists():
            subprocess.run(["gzip", self.named(2)], check=True)

    def rename(self):
        """The file gets another name, and the sender goes on in a new one."""
        self.shift()
        with self.lock:
            self.path.rename(self.named(1))
            self.file.close()
            self.file = open(self.path, "ab", buffering=0)

    def copy_and_truncate(self):
        """The content goes into a copy, the file is cut. The sender waits, since what it writes in between would be in neither."""
        self.shift()
        with self.lock:
            shutil.copyfile(self.path, self.named(1))
            os.truncate(self.path, 0)


class Site:
    """A daemon in a folder, its configuration, and those who send to it."""

    def __init__(self, program, folder, rate, disk=None, **settings):
        """`disk` is where store and spool are, if they are not in the folder."""
        self.program, self.folder, self.rate = program, folder, rate
        self.store, self.spool = (disk or folder) / "store", (disk or folder) / "spool"
        self.logs = folder / "logs"
        self.logs.mkdir(parents=True)
        self.settings = {"seal_millis": 1000, **settings}
        self.ports = dict(zip(("admin", "web", "lines"), free_ports(3)))
        self.token, self.process, self.senders, self.actors = TOKENS[0], None, [], []
        self.latencies, self.refusals, self.complaints = [], collections.Counter(), []
        self.rows = 0  # of the store at the last start, where an operation counted them
        self.write_tokens(TOKENS[:1])

    def write_tokens(self, tokens):
        path = self.folder / "tokens"
        path.touch(mode=0o600)
        path.write_text("".join(f"{token}\n" for token in tokens))

    def configure(self, **settings):
        self.settings.update(settings)
        store = "".join(f"{key} = {json.dumps(value)}\n" for key, value in self.settings.items())
        listen = "\n".join(
            f'[sources.{name}]\ntype = "{kind}"\nsystem = "{SYSTEM}"\nlisten = "127.0.0.1:{self.ports[name]}"\ntoken_file = "{self.folder}/tokens"'
            for name, kind in (("web", "http"), ("lines", "tcp"))
        )
        self.config = self.folder / "demi.toml"
        self.config.write_text(
            f'[store]\ndir = "{self.store}"\n{store}[spool]\ndir = "{self.spool}"\nsegment_bytes = {SEGMENT}\n'
            f'[admin]\nlisten = "127.0.0.1:{self.ports["admin"]}"\n[limits]\nfull_secs = 1\n{listen}\n'
            f'[sources.files]\ntype = "files"\nsystem = "{SYSTEM}"\npaths = ["{self.logs}/*.jsonl*"]\n'
        )

    def run(self, *arguments, code=0, program=None):
        """Runs a command that has to end with a status. Gives what it printed, on both channels."""
        done = subprocess.run([program or self.program, *arguments], capture_output=True, text=True)
        if done.returncode != code:
            raise Unexpected(f"status {done.returncode} instead of {code}: {arguments}: {done.stdout[-300:]}{done.stderr[-300:]}")
        return done.stdout, done.stderr

    def start(self, program=None):
        """Starts the daemon. Gives the seconds until it is ready."""
        self.configure()
        begin = time.monotonic()
        with open(self.folder / "daemon.log", "ab") as log:
            command = [program or self.program, "ingest", "serve", self.config]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        for line in self.process.stdout:
            if line.strip() == "ready":
                return time.monotonic() - begin
        raise Unexpected(f"the daemon does not start: status {self.process.wait()}, see {self.folder}/daemon.log")

    def end(self, how=signal.SIGTERM):
        """Ends the daemon. Gives the seconds that it took."""
        begin = time.monotonic()
        self.process.send_signal(how)
        code = self.process.wait(timeout=60)
        self.process.stdout.close()
        if how == signal.SIGTERM and code != 0:
            raise Unexpected(f"the daemon ended with status {code} at SIGTERM")
        return time.monotonic() - begin

    def verify(self, code=0):
        """What `ingest verify` says while the daemon is down."""
        return self.run("ingest", "verify", "--store", self.store, "--spool", self.spool, code=code)[0]

    def ask(self, path, token=None, method="GET", body=None, port="admin"):
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[port], timeout=60)
        connection.request(method, path, body, {"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def expect(self, condition, text):
        """What is written down if it is not so, and does not end the operation."""
        if not condition:
            self.complaints.append(text)

    def metric(self, name):
        """The sum of a metric, whatever its labels."""
        lines = self.ask("/metrics")[1].splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))

    def send(self):
        """Begins to send. A third of the records goes each way; the actors `aged` and `leaver` write less than the others."""
        birth = int(time.time())

        def make(way, shares):
            total = sum(shares.values())
            made = [Actor(f"{name}-{way}", self.rate / 3 * share / total, birth) for name, share in shares.items()]
            self.actors += made
            return made

        web = make("web", {"ada": 4, "aged": 1, "leaver": 1, "bob": 4})
        lines = make("lines", {"cyd": 4, "aged": 1, "leaver": 1, "dan": 4})
        files = make("file", {"eve": 4, "aged": 1, "leaver": 1, "fay": 4})
        for kind, actors in ((HttpSender, web), (TcpSender, lines)):
            self.senders += [kind(self, actors[:2]), kind(self, actors[2:])]
        self.renamed = FileSender(self, files[:2], self.logs / "renamed.jsonl")
        self.copied = FileSender(self, files[2:], self.logs / "copied.jsonl")
        self.senders += [self.renamed, self.copied]
        [sender.start() for sender in self.senders]

    def stop_sending(self):
        [sender.stop() for sender in self.senders]
        self.senders.clear()

    def send_again(self, actor, first, last):
        """Sends records once more that were acknowledged: what a client does that learns of a loss."""
        for begin in range(first, last + 1, MOST):
            body = actor.records(begin, min(last, begin + MOST - 1))
            status, text = self.ask("/v1/events", self.token, "POST", body, "web")
            if status != 200:
                raise Unexpected(f"records that are sent again are answered {status} {text}")

    def truth(self):
        return {actor.name: actor.acknowledged for actor in self.actors}

    def sql(self, store, statement):
        # The note on what had to be built anew goes to standard error, and says nothing here.
        out, _ = self.run("query", store, "--system", SYSTEM, "--format", "jsonl", "--sql", statement)
        return [json.loads(line) for line in out.splitlines()]

    def count(self):
        return self.sql(self.store, "SELECT count(*) AS n FROM events")[0]["n"]

    def compare(self, truth, store=None):
        """What the store has, compared with what has to be there."""
        store = store or self.store
        rows = self.sql(
            store,
            "SELECT actor, count(*) AS n, count(DISTINCT seq) AS numbers, "
            "sum(CASE WHEN payload = actor || ' ' || CAST(seq AS VARCHAR) THEN 0 ELSE 1 END) AS altered FROM events GROUP BY actor",
        )
        runs = collections.defaultdict(list)
        for run in self.sql(store, "SELECT actor, from_seq, to_seq FROM completeness"):
            runs[run["actor"]].append((run["from_seq"], run["to_seq"]))
        quarantined = self.sql(store, "SELECT count(*) AS n FROM quarantine")[0]["n"]
        found = Figures(doubled=sum(row["n"] - row["numbers"] for row in rows), altered=sum(row["altered"] for row in rows) + quarantined)

        def present(actor, first, last):
            return sum(max(0, min(last, end) - max(first, begin) + 1) for begin, end in runs[actor.name])

        for actor in self.actors:
            first, last = actor.removed + 1, truth[actor.name]
            found.checked += max(0, last - first + 1)
            found.lost += max(0, last - first + 1) - present(actor, first, last)
            found.revived += present(actor, 1, actor.removed)
            # A number that nobody has sent is content that nobody has sent.
            found.altered += present(actor, actor.sent + 1, sys.maxsize)
        return found

    def check(self):
        """Compares until all is there, and gives up after a while."""
        truth, end = self.truth(), time.monotonic() + PATIENCE
        self.await_status(truth, end)
        while True:
            found = self.compare(truth)
            if not found.lost or time.monotonic() > end:
                return found
            time.sleep(2)

    def await_status(self, truth, end):
        """Waits until `ingest status` tells that the store has come so far: it costs less than a question in SQL."""
        while time.monotonic() < end:
            out, _ = self.run("ingest", "status", "--store", self.store, "--json")
            there = {row["actor"]: row["last_seq"] for row in json.loads(out)["completeness"]}
            if all(there.get(actor.name, 0) >= truth[actor.name] for actor in self.actors if actor.removed < truth[actor.name]):
                return
            time.sleep(0.5)


class Unexpected(Exception):
    """Something went otherwise than the documents say."""


class Figures:
    def __init__(self, doubled=0, altered=0):
        self.checked = self.lost = self.revived = 0
        self.doubled, self.altered = doubled, altered

    def bad(self):
        return self.lost or self.doubled or self.altered or self.revived


def expect(condition, text):
    if not condition:
        raise Unexpected(text)


def wait_for(condition, seconds, text):
    end = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < end, f"not within {seconds} s: {text}")
        time.sleep(0.1)


# The operations. Each gets a site that is sent to, and gives a note for the table.


def quiet(_):
    return "nothing is done: the figures to compare with"


def restart(site):
    stopped = site.end()
    said = site.verify().splitlines()[-1]
    return f"stopped in {stopped:.1f} s, ready in {site.start():.1f} s; verify: {said}"


def kill(site):
    site.end(signal.SIGKILL)
    said = site.verify().splitlines()[-1]
    return f"ready in {site.start():.1f} s; verify: {said}"


def reload(site):
    """A new token beside the old one, then without it, then a file that is no good: the documents say that the old tokens stay."""
    old, new = TOKENS

    def status(token):
        return site.ask("/v1/events", token, "POST", b"", "web")[0]

    def hang_up(tokens):
        site.write_tokens(tokens)
        site.process.send_signal(signal.SIGHUP)

    hang_up([old, new])
    wait_for(lambda: status(new) == 200, 10, "the new token is taken")
    site.token = new
    hang_up([new])
    wait_for(lambda: status(old) == 401, 10, "the old token is refused")
    hang_up([])
    time.sleep(1)
    expect(status(new) == 200, "an empty file of tokens replaced those that were there")
    hang_up([new])
    return "tokens changed by SIGHUP, an empty file of tokens left the old ones"


def rotate(site):
    def both(times):
        for _ in range(times):
            site.renamed.rename()
            site.copied.copy_and_truncate()
            time.sleep(1.5)

    both(4)
    # While it does not run, it cannot see what became which file.
    site.end()
    both(2)
    site.start()
    return "each of 6 times, 2 of them while the daemon was stopped: renamed, another copied and truncated, the one before packed"


def back_up(site):
    """A backup while all goes on, and a store of it elsewhere. Then the disk breaks, and the daemon goes on with that store."""
    out, _ = site.run("ingest", "status", "--store", site.store, "--json")
    before = {row["actor"]: row["last_seq"] for row in json.loads(out)["completeness"]}
    backup, restored = site.folder / "backup", site.folder / "restored"
    begin = time.monotonic()
    site.run("ingest", "backup", "--store", site.store, "--spool", site.spool, "--out", backup)
    took = time.monotonic() - begin
    # The table of completeness is a commit ahead of the events for a moment, so what it told may be a commit more than the backup has.
    held = site.compare({actor.name: 0 for actor in site.actors}, backup)
    expect(not held.bad(), f"the backup has {held.doubled} doubled and {held.altered} altered rows")
    saved = {row["actor"]: row["last"] for row in site.sql(backup, "SELECT actor, max(seq) AS last FROM events GROUP BY actor")}
    behind = sum(max(0, before[name] - saved.get(name, 0)) for name in before)
    expect(behind <= site.rate * 3, f"the backup lacks {behind} records that were in the store before it")
    time.sleep(WINDOW)
    site.end(signal.SIGKILL)
    # Somewhere else than where the store was.
    site.store.rename(site.folder / "broken")
    site.store = restored
    told = site.run("ingest", "restore", backup, "--store", restored, "--spool", site.spool)[0]
    kept = site.compare({name: saved.get(name, 0) for name in site.truth()}, restored)
    expect(not kept.bad(), f"the restored store lacks {kept.lost} records of the backup, {kept.doubled} are doubled")
    truth = site.truth()
    site.start()
    # What came by a connection since the backup has to be sent again; what is in the store already, or in the spool, comes twice.
    for actor in site.actors:
        if not actor.name.endswith("-file"):
            site.send_again(actor, saved.get(actor.name, 0) + 1, truth[actor.name])
    site.await_status(site.truth(), time.monotonic() + PATIENCE)
    lost, twice = int(site.metric("demi_spool_lost_frames")), int(site.metric("demi_events_duplicate_total"))
    marks = list(site.spool.glob("unreadable-*"))
    site.expect(bool(lost) == bool(marks), f"demi_spool_lost_frames is {lost} after the restore, with {[mark.name for mark in marks]} in the spool")
    # All is sent again: what tells of the loss can go.
    site.end()
    [mark.unlink() for mark in marks]
    site.verify()
    site.start()
    expect(site.metric("demi_spool_lost_frames") == 0, "frames are called lost after all was sent again")
    told = " ".join(told.split()).replace(f"{site.folder}/", "")
    return f"backup in {took:.1f} s; restore: {told}; frames lost by the metric: {lost}; {twice} records came twice and count once"


def retain(site):
    """Events of days that are over go at the start; what is sent of them once more does not come back."""
    aged = [actor for actor in site.actors if actor.name.startswith("aged")]
    wait_for(lambda: min(actor.acknowledged for actor in aged) > AGED, 120, "all records of an earlier day are sent")
    site.await_status(site.truth(), time.monotonic() + PATIENCE)
    site.settings["keep"] = "30d"
    site.end()
    site.start()
    wait_for(lambda: site.metric("demi_events_expired_total") >= AGED * len(aged), 30, "old events are deleted")
    gone = int(site.metric("demi_events_expired_total"))
    for actor in aged:
        actor.removed = AGED
        site.send_again(actor, 1, AGED // 2)
    expect(gone == AGED * len(aged), f"{gone} events went instead of {AGED * len(aged)}")
    return f"{gone} events of an earlier day went"


def delete(site):
    leavers = [actor for actor in site.actors if actor.name.startswith("leaver")]
    for actor in leavers:
        actor.ended = actor.sent
    names = [part for actor in leavers for part in ("--actor", actor.name)]
    command = ("ingest", "delete", "--store", site.store, "--system", SYSTEM, *names)
    refused = site.run(*command, code=2)[1].strip().splitlines()[-1]
    wait_for(lambda: all(actor.acknowledged == actor.sent for actor in leavers), 30, "the actors that leave have sent all")
    site.end()
    # Once it is killed, at the moment when it removes the order that the questions of this program made: it has to be possible again.
    order = site.store / "orders" / SYSTEM
    killed = subprocess.Popen([site.program, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while (order / ".demi-lineage.json").exists() and killed.poll() is None:
        time.sleep(0)
    killed.kill()
    killed.wait()
    begin = time.monotonic()
    try:
        site.run(*command)
    except Unexpected as error:
        site.complaints.append(f"a deletion that was killed cannot be done again: {error}")
        shutil.rmtree(order)
        site.run(*command)
    took = time.monotonic() - begin
    site.verify()
    site.start()
    for actor in leavers:
        actor.removed = actor.sent
        site.send_again(actor, 1, actor.sent)
    expect("is writing" in refused, f"refused with other words: {refused}")
    gone = sum(actor.sent for actor in leavers)
    return f"refused while the daemon wrote; {gone} events deleted, killed once and done again in {took:.1f} s; all sent again"


def compact(site):
    site.settings["compact_files"] = 3
    site.end()
    site.rows = site.count()
    site.start()
    wait_for(lambda: site.metric("demi_compacted_files_total") > 0, 60, "files are merged")
    time.sleep(WINDOW)
    return f"{int(site.metric('demi_compacted_files_total'))} files merged since the start"


def upgrade(site, earlier):
    """As docs/upgrading.md says, from tables of the version before: its commits name it, and completeness has the name that it had then."""
    backup = site.folder / "backup"
    site.run("ingest", "backup", "--store", site.store, "--spool", site.spool, "--out", backup, program=earlier)
    site.run("ingest", "validate", site.config)
    site.end()
    site.verify()
    ready = site.start()
    expect(site.ask("/readyz")[0] == 200, "not ready after the upgrade")
    versions = {table_version(site.store / name) for name in ("events", "quarantine")}
    expect((site.store / "ledger").exists(), "the table of completeness lost its former name")
    # Tables of a version that it does not know are refused, and stay as they were.
    unknown = site.folder / "unknown"
    shutil.copytree(backup, unknown)
    set_version(unknown, "demi-tables/0")
    before = sorted(str(path) for path in unknown.rglob("*"))
    said = site.run("ingest", "status", "--store", unknown, code=2)[1].strip().splitlines()[-1]
    expect("demi-tables/0" in said, f"refused with other words: {said}")
    expect(sorted(str(path) for path in unknown.rglob("*")) == before, "a store of another version was changed")
    return f"ready in {ready:.1f} s, tables stay {', '.join(sorted(versions))}; tables/0 refused"


def first_commit(table):
    return table / "_delta_log/00000000000000000000.json"


def table_version(table):
    text = first_commit(table).read_text()
    return next(part for part in text.replace("\\", "").split('"') if part.startswith("demi-tables/"))


def set_version(store, version):
    """Makes tables of another version, as the tests of the store do. A commit without a digest is one of another program, and no damage."""
    for table in ("events", "quarantine"):
        path = first_commit(store / table)
        text = path.read_text().replace(table_version(store / table), version)
        path.write_text(text.replace("demiSum", "otherSum"))


def make_older(site):
    """A store of the version before, in which the daemon has written nothing yet."""
    one = site.folder / "one.jsonl"
    one.write_text('{"actor":"nobody","seq":1,"kind":"local"}\n')
    site.run("ingest", "load", "--store", site.store, "--system", "another", one)
    shutil.rmtree(site.store / "completeness", ignore_errors=True)
    set_version(site.store, "demi-tables/2")
    # An empty table of completeness under its former name: a daemon makes it in a folder aside.
    aside = Site(site.program, site.folder / "aside", site.rate)
    aside.start()
    aside.ask("/v1/events", aside.token, "POST", b'{"actor":"nobody","seq":1,"kind":"local"}\n', "web")
    aside.end()
    shutil.copytree(aside.store / "completeness", site.store / "ledger")


def fill_disk(site, disk):
    """Somebody else fills the disk of spool and store, and later makes room."""
    with open(disk / "ballast", "wb", buffering=0) as ballast:

        def fill():
            with contextlib.suppress(OSError):
                while ballast.write(bytes(65536)):
                    pass
            return site.ask("/readyz")[0] == 503

        wait_for(fill, 60, "the full disk is told")
        said = site.ask("/readyz")[1].strip().replace("\n", "; ")
        refused, held = site.refusals[503], []
        # What the daemon gives up, somebody else takes.
        for _ in range(WINDOW):
            time.sleep(1)
            fill()
            held.append(int(site.metric("demi_reserve_held")))
        expect(site.ask("/healthz")[0] == 200, "the daemon is not well while the disk is full")
        refused = site.refusals[503] - refused
    (disk / "ballast").unlink()
    begin = time.monotonic()
    wait_for(lambda: site.ask("/readyz")[0] == 200, 60, "it goes on when there is room")
    ready = time.monotonic() - begin
    return f"/readyz: {said}; {refused} requests answered 503; reserve held by the second: {held}; ready {ready:.1f} s after there was room"


class Table:
    """Does operations, and has a row for each."""

    HEADS = ("operation", "seconds", "sent", "acked", "checked", "lost", "doubled", "altered", "revived", "p50", "p99", "max", "load")

    def __init__(self):
        self.rows, self.notes, self.good = [], [], True

    def do(self, name, site, operation, before=WINDOW):
        time.sleep(before)
        begin, sent, acknowledged = time.monotonic(), *self.counts(site)
        refused = collections.Counter(site.refusals)
        try:
            note = operation(site)
        except (Unexpected, OSError, subprocess.SubprocessError) as error:
            note = f"UNEXPECTED: {error}"
            # The other operations are to be seen as well.
            if site.senders and site.process.poll() is not None:
                site.start()
        time.sleep(WINDOW)
        end, (sent_then, acknowledged_then) = time.monotonic(), self.counts(site)
        waits = [(wait, count) for at, wait, count in list(site.latencies) if begin <= at <= end]
        share = [percentile(waits, part) for part in (0.5, 0.99, 1)]
        try:
            found = site.check()
        except Unexpected as error:
            found, note = Figures(), f"{note}; UNEXPECTED: {error}"
        note = " ".join("; UNEXPECTED: ".join([note, *site.complaints]).split())
        site.complaints.clear()
        self.good &= not found.bad() and "UNEXPECTED" not in note
        cells = (found.checked, found.lost, found.doubled, found.altered, found.revived)
        load = f"{os.getloadavg()[0]:.1f}"
        self.rows.append((name, f"{end - begin:.0f}", sent_then - sent, acknowledged_then - acknowledged, *cells, *share, load))
        new = ", ".join(f"{count} {what}" for what, count in (site.refusals - refused).items())
        self.notes.append(f"{name}: {note}" + (f" [senders saw: {new}]" if new else ""))
        print(self.notes[-1], file=sys.stderr, flush=True)

    @staticmethod
    def counts(site):
        return sum(actor.sent for actor in site.actors), sum(actor.acknowledged for actor in site.actors)

    def print(self):
        rows = [self.HEADS, *[tuple(map(str, row)) for row in self.rows]]
        widths = [max(len(row[column]) for row in rows) for column in range(len(self.HEADS))]
        for row in rows:
            print("  ".join([row[0].ljust(widths[0]), *[cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]]))
        print("\n" + "\n".join(self.notes))


def percentile(waits, part):
    """The wait that a part of all records did not exceed."""
    waits, left = sorted(waits), part * sum(count for _, count in waits)
    for wait, count in waits:
        left -= count
        if left <= 0:
            return f"{wait:.0f}"
    return "-"


@contextlib.contextmanager
def small_disk(folder, size):
    """A file system of a size in memory; `None` where nothing can be mounted."""
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True).returncode == 0
    try:
        yield folder if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", "-l", folder])


@contextlib.contextmanager
def running(site, program=None):
    """A site that is sent to; nothing of it is left in the end."""
    try:
        site.start(program)
        site.send()
        yield site
    finally:
        site.stop_sending()
        if site.process and site.process.poll() is None:
            site.process.kill()
            site.process.wait()


def last_look(site):
    """Nobody sends any more, the daemon is stopped: all that was sent is there, and nothing else."""
    site.stop_sending()
    # What stands in a file and was not read yet would wait for the next start.
    site.await_status(site.truth(), time.monotonic() + PATIENCE)
    written, twice = site.metric("demi_events_written_total"), site.metric("demi_events_duplicate_total")
    received, rows = site.metric("demi_events_received_total"), site.count() - site.rows
    site.expect(written == rows, f"demi_events_written_total is {written:.0f}, and the store has {rows} more")
    site.expect(received == written + twice, f"{received:.0f} received by the metrics, {written:.0f} written, {twice:.0f} duplicates")
    ends = [site.metric(f"demi_{name}_lsn") for name in ("durable", "committed")]
    site.expect(ends[0] == ends[1], f"durable and committed are {ends} when all is in the store")
    said = {name: int(site.metric(f"demi_{name}")) for name in ("sequence_gaps", "commit_failures_total", "task_failures_total")}
    expect(not any(said.values()), f"metrics tell {said}")
    site.end()
    return f"stopped; {int(written)} events written since the last start; verify: {site.verify().splitlines()[-1]}"


def main():
    program, folder, rate, *earlier = sys.argv[1:]
    program, folder, rate = Path(program).resolve(), Path(folder).resolve(), int(rate)
    earlier = Path(earlier[0]).resolve() if earlier else program
    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"{folder} is not empty")
    table = Table()
    with running(Site(program, folder / "day", rate)) as site:
        for name, operation in (
            ("quiet", quiet),
            ("restart, SIGTERM", restart),
            ("SIGKILL and start", kill),
            ("reload, SIGHUP", reload),
            ("rotation", rotate),
            ("backup, restore", back_up),
            ("retention", retain),
            ("delete actors", delete),
            ("compaction", compact),
            ("all stops", last_look),
        ):
            table.do(name, site, operation)
    older = Site(program, folder / "older", rate)
    make_older(older)
    with running(older, earlier) as site:
        table.do("upgrade", site, functools.partial(upgrade, earlier=earlier))
    with small_disk(folder / "disk", "300M") as disk:
        if disk:
            # The logs are elsewhere: the disk is full for the daemon, and not for those who write them.
            with running(Site(program, folder / "full", rate, disk, reserve_bytes=16 << 20)) as site:
                table.do("disk full", site, functools.partial(fill_disk, disk=disk))
        else:
            table.notes.append("disk full: left out, nothing can be mounted here")
    table.print()
    sys.exit(0 if table.good else 1)


if __name__ == "__main__":
    main()
