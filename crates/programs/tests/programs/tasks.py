import asyncio, sys, json
me=None; peers=[]; vals=set(); acks={}
def send(dest, body): print(json.dumps({"src":me,"dest":dest,"body":body}), flush=True)
async def gossip(p, v):
    for _ in range(5):
        if v in acks.get(p, ()): return
        send(p, {"type":"g","v":v})
        await asyncio.sleep(0.2)
async def handle(m):
    global me, peers
    b=m["body"]; t=b["type"]
    if t=="init": me=b["node_id"]; peers=[p for p in b["node_ids"] if p!=me]; send(m["src"],{"type":"init_ok","in_reply_to":b["msg_id"]})
    elif t=="topology": send(m["src"],{"type":"topology_ok","in_reply_to":b["msg_id"]})
    elif t=="broadcast":
        vals.add(b["message"])
        send(m["src"],{"type":"broadcast_ok","in_reply_to":b["msg_id"]})
        await asyncio.gather(*(gossip(p,b["message"]) for p in peers))
    elif t=="g":
        vals.add(b["v"]); send(m["src"],{"type":"ga","v":b["v"]})
    elif t=="ga": acks.setdefault(m["src"],set()).add(b["v"])
    elif t=="read": send(m["src"],{"type":"read_ok","messages":list(vals),"in_reply_to":b["msg_id"]})
async def main():
    loop=asyncio.get_running_loop()
    r=asyncio.StreamReader(); await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(r), sys.stdin)
    while True:
        line=await r.readline()
        if not line: return
        asyncio.create_task(handle(json.loads(line)))
asyncio.run(main())
