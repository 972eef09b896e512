use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::sync::{mpsc, Arc, Mutex};
use std::thread;
use std::time::Duration;
fn field<'a>(l: &'a str, k: &str) -> Option<&'a str> {
    let p = l.find(&format!("\"{k}\":"))? + k.len() + 3;
    let r = &l[p..];
    if let Some(s) = r.strip_prefix('"') {
        s.split('"').next()
    } else {
        r.split([',', '}']).next()
    }
}
fn main() {
    let (tx, rx) = mpsc::channel::<String>();
    let out = Arc::new(Mutex::new(()));
    let me = Arc::new(Mutex::new(String::new()));
    let peers = Arc::new(Mutex::new(Vec::<String>::new()));
    let set = Arc::new(Mutex::new(HashMap::<i64, ()>::new()));
    {
        let (me, peers, set, out) = (me.clone(), peers.clone(), set.clone(), out.clone());
        thread::spawn(move || loop {
            thread::sleep(Duration::from_millis(300));
            let v: Vec<String> = set.lock().unwrap().keys().map(|k| k.to_string()).collect();
            if v.is_empty() {
                continue;
            }
            let m = me.lock().unwrap().clone();
            for p in peers.lock().unwrap().iter() {
                let _g = out.lock().unwrap();
                println!(
                    "{{\"src\":\"{m}\",\"dest\":\"{p}\",\"body\":{{\"type\":\"g\",\"v\":[{}]}}}}",
                    v.join(",")
                );
            }
        });
    }
    let h = thread::spawn(move || {
        for l in rx {
            let src = field(&l, "src").unwrap_or("").to_string();
            let ty = field(&l, "type").unwrap_or("").to_string();
            let id = field(&l, "msg_id").unwrap_or("0").to_string();
            let rep = |b: String| {
                let _g = out.lock().unwrap();
                println!(
                    "{{\"src\":\"{}\",\"dest\":\"{src}\",\"body\":{{{b},\"in_reply_to\":{id}}}}}",
                    me.lock().unwrap()
                );
                std::io::stdout().flush().unwrap();
            };
            match ty.as_str() {
                "init" => {
                    *me.lock().unwrap() = field(&l, "node_id").unwrap().into();
                    let p = l.find("\"node_ids\":[").unwrap() + 12;
                    let e = l[p..].find(']').unwrap();
                    let m = me.lock().unwrap().clone();
                    *peers.lock().unwrap() = l[p..p + e]
                        .split(',')
                        .map(|s| s.trim_matches('"').to_string())
                        .filter(|x| *x != m)
                        .collect();
                    rep("\"type\":\"init_ok\"".into())
                }
                "topology" => rep("\"type\":\"topology_ok\"".into()),
                "broadcast" => {
                    set.lock().unwrap().insert(field(&l, "message").unwrap().parse().unwrap(), ());
                    rep("\"type\":\"broadcast_ok\"".into())
                }
                "g" => {
                    let p = l.find("\"v\":[").unwrap() + 5;
                    let e = l[p..].find(']').unwrap();
                    for x in l[p..p + e].split(',') {
                        if let Ok(x) = x.parse() {
                            set.lock().unwrap().insert(x, ());
                        }
                    }
                }
                "read" => {
                    let v: Vec<String> = set.lock().unwrap().keys().map(|k| k.to_string()).collect();
                    rep(format!("\"type\":\"read_ok\",\"messages\":[{}]", v.join(",")))
                }
                _ => {}
            }
        }
    });
    for l in std::io::stdin().lock().lines() {
        tx.send(l.unwrap()).unwrap();
    }
    drop(tx);
    h.join().unwrap();
}
