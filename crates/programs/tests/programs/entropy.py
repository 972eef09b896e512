# Identifiers from everything that differs from run to run.
import json, os, random, secrets, socket, sys, threading, time, uuid

node = None


def send(dest, body):
    print(json.dumps({"src": node, "dest": dest, "body": body}), flush=True)


def identifier():
    return [
        str(uuid.uuid1()), str(uuid.uuid4()), random.random(), os.urandom(4).hex(), secrets.token_hex(3),
        hash("x"), list({"a", "b", node}), id(object()),
        time.time(), time.perf_counter(), time.process_time(), time.thread_time(), os.times()[4],
        os.getpid(), os.getppid(), threading.get_native_id(), os.uname().nodename, socket.gethostname(),
        open("/dev/urandom", "rb").read(4).hex(), open("/proc/sys/kernel/random/uuid").read().strip(),
    ]


for line in sys.stdin:
    message = json.loads(line)
    body = message["body"]
    if body["type"] == "init":
        node = body["node_id"]
        send(message["src"], {"type": "init_ok", "in_reply_to": body["msg_id"]})
    elif body["type"] == "generate":
        send(message["src"], {"type": "generate_ok", "id": identifier(), "in_reply_to": body["msg_id"]})
