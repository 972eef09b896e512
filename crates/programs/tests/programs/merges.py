import sys, json, select, time, os
me=None; peers=[]; store=set(); buf=b""; last=time.time()
def send(dest, body): os.write(1,(json.dumps({"src":me,"dest":dest,"body":body})+"\n").encode())
while True:
    r,_,_=select.select([0],[],[],0.5)
    if r:
        buf+=os.read(0,65536)
        while b"\n" in buf:
            l,buf=buf.split(b"\n",1); m=json.loads(l); b=m["body"]; t=b["type"]
            if t=="init": me=b["node_id"]; peers=[p for p in b["node_ids"] if p!=me]; send(m["src"],{"type":"init_ok","in_reply_to":b["msg_id"]})
            elif t=="add": store.add(b["element"]); send(m["src"],{"type":"add_ok","in_reply_to":b["msg_id"]})
            elif t=="read": send(m["src"],{"type":"read_ok","value":sorted(store),"in_reply_to":b["msg_id"]})
            elif t=="merge": store|=set(b["v"])
    if me and time.time()-last>=1:
        last=time.time()
        for p in peers: send(p,{"type":"merge","v":sorted(store)})
