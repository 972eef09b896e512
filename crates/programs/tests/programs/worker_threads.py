import sys, json, threading, queue
q = queue.Queue(); out = threading.Lock(); store = {}; me=None; peers=[]; mid=[0]
def send(dest, body):
    with out:
        sys.stdout.write(json.dumps({"src": me, "dest": dest, "body": body}) + "\n"); sys.stdout.flush()
def worker(n):
    global me, peers
    while True:
        m = q.get()
        b = m["body"]; t = b["type"]
        if t == "init":
            me = b["node_id"]; peers = [p for p in b["node_ids"] if p != me]
            send(m["src"], {"type":"init_ok","in_reply_to":b["msg_id"]})
        elif t == "write":
            store[b["key"]] = b["value"]
            for p in peers: send(p, {"type":"rep","key":b["key"],"value":b["value"]})
            send(m["src"], {"type":"write_ok","in_reply_to":b["msg_id"]})
        elif t == "rep": store[b["key"]] = b["value"]
        elif t == "read":
            if b["key"] in store: send(m["src"], {"type":"read_ok","value":store[b["key"]],"in_reply_to":b["msg_id"]})
            else: send(m["src"], {"type":"error","code":20,"text":"nope","in_reply_to":b["msg_id"]})
        elif t == "cas":
            if b["key"] not in store: send(m["src"], {"type":"error","code":20,"text":"nope","in_reply_to":b["msg_id"]})
            elif store[b["key"]] != b["from"]: send(m["src"], {"type":"error","code":22,"text":"no","in_reply_to":b["msg_id"]})
            else:
                store[b["key"]] = b["to"]
                for p in peers: send(p, {"type":"rep","key":b["key"],"value":b["to"]})
                send(m["src"], {"type":"cas_ok","in_reply_to":b["msg_id"]})
for i in range(4): threading.Thread(target=worker, args=(i,), daemon=True).start()
for line in sys.stdin: q.put(json.loads(line))
