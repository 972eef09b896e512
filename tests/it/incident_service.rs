//! The incident service in a running daemon: from records that stream in to pages and messages.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::browser::browser;

const LOGS: &[u8] = include_bytes!("../../examples/demo/logs.jsonl.zst");
const SCENARIO: &str = include_str!("../../examples/demo/scenario.toml");
/// So long that only a service that does nothing misses it.
const PATIENCE: Duration = Duration::from_secs(400);

/// An answer: status, head and body.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

/// Asks over a connection of its own.
fn ask(to: SocketAddr, line: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut stream = TcpStream::connect(to).unwrap();
    let mut text = format!("{line} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    if !headers.iter().any(|(name, _)| *name == "host") {
        text.push_str(&format!("host: {to}\r\n"));
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{text}\r\n{body}").as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let chunked = head.to_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { unchunked(body) } else { body.to_owned() };
    Answer { status, head: head.to_owned(), body }
}

fn unchunked(mut body: &str) -> String {
    let mut out = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let Ok(length @ 1..) = usize::from_str_radix(length.trim(), 16) else { break };
        out.push_str(&rest[..length.min(rest.len())]);
        body = rest.get(length + 2..).unwrap_or("");
    }
    out
}

/// Heads and bodies of posts, by key.
type Posts = BTreeMap<String, Vec<(String, Value)>>;

/// A receiver of messages, which refuses the first post of each.
struct Hook {
    address: SocketAddr,
    posts: Arc<Mutex<Posts>>,
}

impl Hook {
    fn start() -> Hook {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let posts: Arc<Mutex<Posts>> = Arc::default();
        let kept = posts.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut reader = BufReader::new(stream.unwrap());
                let (mut head, mut length, mut key) = (String::new(), 0, String::new());
                loop {
                    let mut line = String::new();
                    if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
                        break;
                    }
                    let lower = line.to_lowercase();
                    if let Some(value) = lower.strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    if lower.starts_with("idempotency-key:") {
                        key = line.split_once(':').unwrap().1.trim().to_owned();
                    }
                    head.push_str(&lower);
                }
                let mut body = vec![0; length];
                if reader.read_exact(&mut body).is_err() {
                    continue;
                }
                let mut posts = kept.lock().unwrap();
                let of = posts.entry(key).or_default();
                of.push((head, serde_json::from_slice(&body).unwrap_or_default()));
                let taken = of.len() > 1 || of[0].1["type"] == "test";
                let status = if taken { "204 No Content" } else { "503 Service Unavailable" };
                let stream = reader.get_mut();
                let _ = write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            }
        });
        Hook { address, posts }
    }
}

struct Daemon {
    child: Child,
    pages: SocketAddr,
}

impl Daemon {
    fn start(config: &Path) -> Daemon {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin("demi-lineage"))
            .args(["ingest", "serve"])
            .arg(config)
            .env("DEMI_RECEIVER_TEAM_SECRETS", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut pages = None;
        for line in lines {
            let line = line.unwrap();
            if let Some(address) = line.strip_prefix("incidents ") {
                pages = Some(address.parse().unwrap());
            }
            if line == "ready" {
                break;
            }
        }
        Daemon { child, pages: pages.expect("the address of the pages") }
    }

    fn get(&self, path: &str) -> Answer {
        ask(self.pages, &format!("GET {path}"), &[], "")
    }

    fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.get(path).body).unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn config(dir: &Path, hook: &Hook) -> std::path::PathBuf {
    std::fs::create_dir_all(dir.join("logs")).unwrap();
    std::fs::write(dir.join("scenario.toml"), SCENARIO).unwrap();
    let text = format!(
        "[store]\ndir = \"{0}/store\"\nseal_millis = 200\n[spool]\ndir = \"{0}/spool\"\n\
         [sources.logs]\ntype = \"files\"\nsystem = \"demo\"\npaths = [\"{0}/logs/*\"]\nscan_millis = 50\n\
         [incidents]\nlisten = \"127.0.0.1:0\"\nat_once = 1\nsettle_secs = 1\nlease_secs = 3\npublic_url = \"https://pages.example/\"\n\
         [models.raft]\nscenario = \"{0}/scenario.toml\"\ntakes = {{ systems = [\"demo\"] }}\n\
         limits = {{ budget = \"20000states\", further = \"20000states\" }}\n\
         [receivers.team]\ntype = \"webhook\"\nurl = \"http://{1}/hook\"\n",
        dir.display(),
        hook.address
    );
    let path = dir.join("demi.toml");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_recording_that_streams_in_becomes_pages_and_messages_without_a_command() {
    let dir = tempfile::tempdir().unwrap();
    let hook = Hook::start();
    let path = config(dir.path(), &hook);
    let mut daemon = Daemon::start(&path);
    let plain = zstd::decode_all(LOGS).unwrap();
    std::fs::write(dir.path().join("logs/demo.jsonl"), plain).unwrap();
    let only = |daemon: &Daemon| {
        daemon.json("/v1/incidents")["items"].as_array().and_then(|items| items.first().cloned())
    };
    let incident = wait_for("an incident opens", || only(&daemon));
    let id = incident["id"].as_str().unwrap().to_owned();
    // A first page is there before the last one.
    wait_for("a first page", || (daemon.get(&format!("/i/{id}/page")).status == 200).then_some(()));
    // A kill in the middle of the work loses nothing, and repeats no incident.
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    daemon = Daemon::start(&path);
    let done = wait_for("the work ends", || {
        only(&daemon).filter(|one| one["work"] == "done" && !one["bug"].is_null())
    });
    assert_eq!(
        (&done["result"], &done["bug"], &done["id"]),
        (&"minimized".into(), &"B-1".into(), &id.as_str().into())
    );
    let steps = done["steps"].as_u64().unwrap();
    assert!((26..=40).contains(&steps), "{done}");

    // Pages, which need no script and allow none.
    let list = daemon.get("/");
    assert!(list.body.contains("B-1") && list.body.contains("ElectionSafety"), "{}", list.body);
    let bug = daemon.get("/b/1");
    assert!(bug.body.contains("raft-member-3") && bug.body.contains("id=\"s1\""), "{}", bug.body);
    for answer in [&list, &bug, &daemon.get(&format!("/i/{id}"))] {
        assert_eq!(answer.status, 200);
        let head = answer.head.to_lowercase();
        assert!(head.contains("content-security-policy: default-src 'none'"), "{head}");
        // Browsers say the origin of a form only where the policy lets them.
        assert!(head.contains("referrer-policy: same-origin"), "{head}");
        assert!(!answer.body.contains("<script"));
    }
    let page = daemon.get(&format!("/i/{id}/page"));
    assert!(page.head.to_lowercase().contains("sandbox") && page.body.contains("<html"));
    let schedule = daemon.get(&format!("/v1/incidents/{id}/schedule"));
    assert_eq!(schedule.body.lines().count() as u64, steps + 1);
    // With the number of the journal it is not sent again.
    let tag = daemon
        .get("/v1/bugs/1")
        .head
        .lines()
        .find_map(|line| Some(line.to_lowercase().strip_prefix("etag: ")?.to_owned()));
    let again = ask(daemon.pages, "GET /v1/bugs/1", &[("if-none-match", &tag.unwrap())], "");
    assert!(again.status == 304 || again.status == 200, "{}", again.head);

    // Each message comes until it is taken, with one key, and signed.
    let told = wait_for("both messages", || {
        let posts = hook.posts.lock().unwrap();
        let taken = posts.iter().filter(|(_, all)| all.len() >= 2).count();
        (taken >= 2).then(|| posts.clone())
    });
    let news: Vec<&str> = told.values().map(|all| all[0].1["type"].as_str().unwrap()).collect();
    assert!(news.contains(&"bug.seen") && news.contains(&"bug.ready") && news.len() == 2, "{news:?}");
    for all in told.values() {
        assert!(
            all[0].0.contains("webhook-signature: v1,") && all[0].0.contains("webhook-id: "),
            "{}",
            all[0].0
        );
        assert!(all[0].1["url"].as_str().unwrap().starts_with("https://pages.example/"), "{}", all[0].1);
    }

    // What people say, from the page of this origin alone.
    let own = format!("http://{}", daemon.pages);
    let say = |path: &str, headers: &[(&str, &str)], body: &str| {
        ask(daemon.pages, &format!("POST {path}"), headers, body)
    };
    assert_eq!(say("/b/1/ack", &[("origin", "http://evil.example")], "").status, 403);
    assert_eq!(say("/b/1/ack", &[("sec-fetch-site", "cross-site")], "").status, 403);
    assert_eq!(ask(daemon.pages, "GET /", &[("host", "evil.example")], "").status, 421);
    assert_eq!(say("/b/1/ack", &[("origin", &own)], "").status, 303);
    assert_eq!(say("/b/1/ack", &[("origin", &own)], "").status, 409);
    assert_eq!(say("/b/1/note", &[("origin", &own)], "text=%3Cb%3Ehi%3C%2Fb%3E").status, 303);
    assert_eq!(say("/v1/bugs/1/close", &[], "{\"fixed_in\":\"1.4.2\"}").status, 202);
    let bug = daemon.get("/b/1").body;
    assert!(bug.contains("&lt;b&gt;hi&lt;/b&gt;") && !bug.contains("<b>hi"), "{bug}");
    assert_eq!(daemon.json("/v1/bugs/1")["status"], "resolved");

    // Requests and alerts open incidents, each once.
    let request = "{\"system\":\"other\",\"invariant\":\"<script>\",\"links\":[\"javascript:alert(1)\"]}";
    let opened = say("/v1/incidents", &[("idempotency-key", "k")], request);
    assert_eq!(
        (opened.status, say("/v1/incidents", &[("idempotency-key", "k")], request).status),
        (201, 200)
    );
    assert_eq!(say("/v1/incidents", &[], "{\"sytem\":\"x\"}").status, 422);
    let alert = |labels: &str| {
        format!(
            "{{\"alerts\":[{{\"status\":\"firing\",\"labels\":{{{labels}}},\"startsAt\":\"t\",\"fingerprint\":\"f\"}}]}}"
        )
    };
    assert_eq!(say("/v1/alertmanager", &[], &alert("\"demi_system\":\"other\"")).status, 200);
    assert_eq!(say("/v1/alertmanager", &[], &alert("")).status, 422);
    assert_eq!(daemon.json("/v1/incidents")["items"].as_array().unwrap().len(), 3);
    // No name leads out of what was published.
    for path in [
        format!("/v1/incidents/{id}/..%2f..%2fjournal%2f00000000000000000001.json"),
        format!("/v1/incidents/{id}/log-1.txt"),
        "/v1/incidents/..%2f..%2fstore/summary".to_owned(),
        "/i/%2e%2e".to_owned(),
        "/b/999".to_owned(),
        "/assets/..%2fx.css".to_owned(),
    ] {
        assert_eq!(daemon.get(&path).status, 404, "{path}");
    }
}

/// With tokens, nothing but the way in is answered without one.
#[test]
fn every_route_asks_for_a_token_where_there_are_some() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = dir.path().join("tokens");
    let named: String = ["viewer", "reporter", "operator", "worker", "admin"]
        .iter()
        .map(|role| format!("{role} some-{role} {role}-0123456789abcdef\n"))
        .collect();
    std::fs::write(&tokens, format!("0123456789abcdef0123\n{named}")).unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&tokens, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("demi-lineage"))
        .args(["-q", "incident", "serve", "--listen", "127.0.0.1:0", "--store"])
        .arg(dir.path().join("store"))
        .arg("--token-file")
        .arg(&tokens)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let to: SocketAddr = line.trim().trim_start_matches("http://").trim_end_matches('/').parse().unwrap();
    let daemon = Daemon { child, pages: to };
    let routes = [
        ("GET /", 303),
        ("GET /incidents", 303),
        ("GET /b/1", 303),
        ("POST /b/1/ack", 401),
        ("GET /i/x", 303),
        ("GET /i/x/page", 303),
        ("POST /i/x/retry", 401),
        ("GET /v1/incidents", 401),
        ("POST /v1/incidents", 401),
        ("GET /v1/incidents/x", 401),
        ("POST /v1/incidents/x/retry", 401),
        ("GET /v1/incidents/x/schedule", 401),
        ("GET /v1/bugs", 401),
        ("GET /v1/bugs/1", 401),
        ("POST /v1/bugs/1/close", 401),
        ("POST /v1/alertmanager", 401),
        ("GET /v1/stats", 401),
        ("GET /login", 200),
        ("GET /healthz", 200),
        ("GET /v1/openapi.json", 401),
        ("POST /v1/uploads", 401),
        ("GET /v1/incidents/x/bundle", 401),
        ("GET /v1/incidents/x/test?language=python", 401),
        ("GET /v1/workers", 401),
        ("GET /v1/models", 401),
        ("GET /v1/receivers", 401),
        // With a number it would not end.
        ("GET /v1/events?after=x", 401),
        ("POST /v1/purge", 401),
        ("POST /v1/replays", 401),
        ("GET /v1/replays/x", 401),
        ("POST /v1/receivers/x/test", 401),
    ];
    let bearer = ("authorization", "Bearer 0123456789abcdef0123");
    for (route, status) in routes {
        assert_eq!(ask(daemon.pages, route, &[], "").status, status, "{route}");
        let wrong = [("authorization", "Bearer 0123456789abcdef0124"), ("cookie", "demi=00")];
        assert_eq!(ask(daemon.pages, route, &wrong, "").status, status, "{route}");
        assert_ne!(ask(daemon.pages, route, &[bearer], "").status, 401, "{route}");
    }
    // Each role on each route: what it may not do is refused, and what it may do is at most wrong otherwise.
    let roles = ["viewer", "reporter", "operator", "worker", "admin"];
    for (route, _) in routes.iter().filter(|(route, _)| !["GET /login", "GET /healthz"].contains(route)) {
        let may: &[&str] = match *route {
            "POST /v1/incidents" | "POST /v1/alertmanager" | "POST /v1/uploads" => {
                &["reporter", "operator", "worker", "admin"]
            }
            "POST /v1/purge" | "POST /v1/receivers/x/test" => &["admin"],
            route if route.starts_with("GET ") => &["viewer", "operator", "worker", "admin"],
            _ => &["operator", "worker", "admin"],
        };
        for role in roles {
            let shown = format!("Bearer {role}-0123456789abcdef");
            let status = ask(to, route, &[("authorization", &shown)], "").status;
            assert_eq!(status != 403, may.contains(&role), "{role}: {route}: {status}");
            assert_ne!(status, 401, "{role}: {route}");
        }
    }
    // A browser logs in, and its session counts for its own pages alone.
    assert_eq!(ask(to, "POST /login", &[], "token=wrong").status, 401);
    let origin = format!("http://{to}");
    assert_eq!(
        ask(to, "POST /login", &[("origin", "http://evil.example")], "token=0123456789abcdef0123").status,
        403
    );
    let login = ask(to, "POST /login", &[("origin", &origin)], "token=0123456789abcdef0123");
    assert_eq!(login.status, 303);
    let cookie = login
        .head
        .lines()
        .find_map(|line| Some(line.to_lowercase().strip_prefix("set-cookie: ")?.to_owned()))
        .unwrap();
    assert!(cookie.contains("httponly") && cookie.contains("samesite=strict"), "{cookie}");
    let session = cookie.split(';').next().unwrap();
    assert_eq!(ask(to, "GET /", &[("cookie", session)], "").status, 200);
    assert_eq!(
        ask(to, "POST /b/1/ack", &[("cookie", session), ("origin", "http://evil.example")], "").status,
        403
    );
    assert_eq!(
        ask(to, "POST /v1/bugs/1/ack", &[("cookie", session), ("sec-fetch-site", "cross-site")], "").status,
        403
    );
    assert_eq!(ask(to, "POST /b/1/ack", &[("cookie", session), ("origin", &origin)], "").status, 409);
    // It says who it is of, and ends when its browser says so, and at no other page's word.
    let shown = ask(to, "GET /login", &[("cookie", session)], "");
    assert!(shown.body.contains("Log out") && shown.body.contains("<b>admin</b>"), "{}", shown.body);
    let evil = [("cookie", session), ("origin", "http://evil.example")];
    assert_eq!(ask(to, "POST /logout", &evil, "").status, 403);
    assert_eq!(ask(to, "GET /", &[("cookie", session)], "").status, 200);
    let gone = ask(to, "POST /logout", &[("cookie", session), ("origin", &origin)], "");
    assert!(gone.status == 303 && gone.head.to_lowercase().contains("max-age=0"), "{}", gone.head);
    assert_eq!(ask(to, "GET /", &[("cookie", session)], "").status, 303);
    assert!(ask(to, "GET /login", &[("cookie", session)], "").body.contains("action=\"/login\""));
    // Programs are told what is wrong in one form.
    let long = "x".repeat(300_000);
    let odd = [("GET /v1/nothing", "", 404), ("POST /v1/stats", "", 405), ("POST /v1/incidents", &long, 413)];
    for (route, body, status) in odd {
        let told = ask(to, route, &[bearer], body);
        assert_eq!(told.status, status, "{route}: {}", told.head);
        assert!(told.head.to_lowercase().contains("content-type: application/problem+json"), "{}", told.head);
        let told: Value = serde_json::from_str(&told.body).unwrap();
        assert!(told["status"] == status && told["detail"].is_string(), "{told}");
    }
    assert!(ask(to, "POST /v1/stats", &[bearer], "").head.to_lowercase().contains("allow: get"));
    // Whoever hangs while a log is sent keeps nobody else out.
    let hanging: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = TcpStream::connect(to).unwrap();
            let (name, value) = bearer;
            let head = format!(
                "POST /v1/uploads HTTP/1.1\r\nhost: {to}\r\n{name}: {value}\r\ncontent-length: 1000\r\n\r\n{{"
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    let record = "{\"actor\":\"a\",\"seq\":1,\"kind\":\"local\"}\n";
    assert_eq!(ask(to, "POST /v1/uploads", &[bearer], record).status, 202);
    drop(hanging);
}

/// Who listens is told each entry as it comes; an incident is given as the same bundle as on the command line; and an administrator forgets it.
#[test]
fn the_journal_is_listened_to_and_incidents_are_given_away_and_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(path("logs.jsonl.zst"), LOGS).unwrap();
    let demi = |args: &[&str]| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("demi-lineage"));
        let output = command.arg("-q").args(args).args(["--store", &path("store")]).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let id = demi(&["incident", "open", &path("logs.jsonl.zst"), "--system", "zebra7"]);
    demi(&["incident", "work", "--once"]);
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("demi-lineage"))
        .args(["-q", "incident", "serve", "--listen", "127.0.0.1:0", "--store", &path("store")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let to: SocketAddr = line.trim().trim_start_matches("http://").trim_end_matches('/').parse().unwrap();
    let _daemon = Daemon { child, pages: to };

    let mut listening = TcpStream::connect(to).unwrap();
    listening.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(listening, "GET /v1/events?after=1 HTTP/1.1\r\nhost: {to}\r\n\r\n").unwrap();
    let mut listening = BufReader::new(listening);
    let mut heard = |wanted: &str| {
        let mut line = String::new();
        while listening.read_line(&mut line).unwrap() > 0 {
            if line.contains(wanted) {
                return line;
            }
            line.clear();
        }
        panic!("nobody said {wanted}");
    };
    let claimed = heard("\"e\":\"claimed\"");
    assert!(claimed.contains("\"n\":2"), "from behind the first entry on: {claimed}");
    demi(&["incident", "note", "B-1", "seen by somebody"]);
    assert!(heard("\"e\":\"noted\"").contains("seen by somebody"));

    // Over HTTP as on the command line.
    demi(&["incident", "bundle", &id, "--out", &path("own.tar.zst")]);
    let mut stream = TcpStream::connect(to).unwrap();
    write!(stream, "GET /v1/incidents/{id}/bundle HTTP/1.0\r\nhost: {to}\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let at = answer.windows(4).position(|part| part == b"\r\n\r\n").unwrap() + 4;
    assert!(answer[at..] == std::fs::read(path("own.tar.zst")).unwrap(), "{}", answer.len());

    let shown = ask(to, "GET /v1/incidents?since=2020-01-01&until=2020-01-02", &[], "");
    assert!(shown.body.contains("\"items\":[]"), "{}", shown.body);
    assert!(ask(to, "GET /v1/incidents?since=2020-01-01", &[], "").body.contains(&id));
    for (body, status) in [("{}", 422), ("{\"before\":\"x\"}", 422), ("{\"systems\":\"x\"}", 422)] {
        assert_eq!(ask(to, "POST /v1/purge", &[], body).status, status, "{body}");
    }
    let none = ask(to, "POST /v1/purge", &[], "{\"system\":\"zebra7\",\"before\":\"2020-01-01\"}");
    assert_eq!((none.status, none.body.contains(&id)), (202, false), "{}", none.body);
    let purged = ask(to, "POST /v1/purge", &[], "{\"system\":\"zebra7\",\"before\":\"2999-01-01\"}");
    assert_eq!((purged.status, purged.body.contains(&id)), (202, true), "{}", purged.body);
    let shown = ask(to, &format!("GET /v1/incidents/{id}"), &[], "");
    assert!(shown.body.contains("purged") && !shown.body.contains("zebra7"), "{}", shown.body);
    assert_eq!(ask(to, &format!("GET /v1/incidents/{id}/bundle"), &[], "").status, 404);
}

/// A program in Python runs, one of its processes sees that replicas differ, and its model in Python makes a page and a test in Python of it.
#[test]
fn what_a_program_in_python_logs_becomes_a_page_by_its_model_in_python() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: there is no python3");
        return;
    }
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("sdk/python/examples/store");
    let dir = tempfile::tempdir().unwrap();
    let hook = Hook::start();
    let path = config(dir.path(), &hook);
    let place = |name: &str| example.join(name).display().to_string();
    let scenario = std::fs::read_to_string(place("scenario.toml")).unwrap();
    let scenario = scenario.replace("\"model.py\"", &format!("{:?}", place("model.py")));
    std::fs::write(dir.path().join("scenario.toml"), scenario).unwrap();
    let text = std::fs::read_to_string(&path).unwrap().replace("20000states", "20000r");
    std::fs::write(&path, text).unwrap();
    let daemon = Daemon::start(&path);
    // How long the network takes is chance, and whether the replicas differ at the end is too.
    let broken = (0..20).map(|n| dir.path().join(format!("run-{n}"))).find(|logs| {
        let program =
            Command::new("python3").args([&place("store.py"), "--logs"]).arg(logs).output().unwrap();
        program.status.code() == Some(1)
    });
    for log in std::fs::read_dir(broken.unwrap()).unwrap() {
        let log = log.unwrap();
        std::fs::copy(log.path(), dir.path().join("logs").join(log.file_name())).unwrap();
    }
    let done = wait_for("the work ends", || {
        let list = daemon.json("/v1/incidents");
        let one = list["items"].as_array().and_then(|items| items.first().cloned())?;
        (one["work"] == "done" || one["work"] == "failed").then_some(one)
    });
    assert_eq!((&done["result"], &done["source"]), (&"minimized".into(), &"record".into()), "{done}");
    let steps = done["steps"].as_u64().unwrap();
    assert!((7..=12).contains(&steps), "of some 50: {done}");
    let id = done["id"].as_str().unwrap();
    let incident = daemon.json(&format!("/v1/incidents/{id}"));
    assert_eq!(incident["findings"]["story"].as_array().unwrap().len() as u64, steps, "{incident}");
    assert!(daemon.get(&format!("/i/{id}/page")).body.contains("<html"));
    assert!(daemon.get(&format!("/i/{id}")).body.contains("Converged"));
    // The test fails while the bug is there.
    let test = daemon.get(&format!("/v1/incidents/{id}/test?language=python"));
    assert_eq!(test.status, 200);
    std::fs::write(dir.path().join("test_it.py"), test.body).unwrap();
    let bin = assert_cmd::cargo::cargo_bin("demi-lineage");
    let paths = std::env::join_paths(
        std::iter::once(bin.parent().unwrap().to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let failed = Command::new("python3")
        .arg("test_it.py")
        .env("PYTHONPATH", example.join("../.."))
        .env("PATH", paths.unwrap())
        .current_dir(dir.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&failed.stderr);
    assert!(!failed.status.success() && told.contains("Converged"), "{told}");
}

/// A receiver of the configuration is sent a signed message that says that it is a test; no other address is reached.
#[test]
fn a_receiver_is_tested() {
    let dir = tempfile::tempdir().unwrap();
    let hook = Hook::start();
    let path = config(dir.path(), &hook);
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let away = format!("[receivers.away]\ntype = \"slack\"\nurl = \"http://{free}/\"\n");
    std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + &away).unwrap();
    let daemon = Daemon::start(&path);
    let test = |name: &str| ask(daemon.pages, &format!("POST /v1/receivers/{name}/test"), &[], "");
    let answer = test("team");
    assert_eq!((answer.status, answer.body.as_str()), (200, r#"{"receiver":"team","taken":true}"#));
    assert_eq!(test("team").status, 200);
    let posts = hook.posts.lock().unwrap().clone();
    assert_eq!(posts.len(), 2, "each with a key of its own");
    for (key, all) in &posts {
        let [(head, body)] = all.as_slice() else { panic!("{all:?}") };
        assert!(key.starts_with("test.team.") && body["type"] == "test", "{key}: {body}");
        assert!(head.contains("webhook-signature: v1,") && head.contains("webhook-id: test.team."), "{head}");
    }
    let gone = test("away");
    assert!(gone.status == 502 && !gone.body.contains(&free.to_string()), "{}", gone.body);
    assert_eq!(test("http:%2f%2f127.0.0.1").status, 404);
    assert_eq!(daemon.json("/v1/stats")["deliveries"], serde_json::json!({}), "no bug was told of");
}

/// Logs that are sent, plain or packed, are an incident each; what is no log, or too large once it is unpacked, is nothing.
#[test]
fn logs_that_are_sent_become_incidents() {
    let dir = tempfile::tempdir().unwrap();
    let hook = Hook::start();
    let path = config(dir.path(), &hook);
    let text = std::fs::read_to_string(&path).unwrap();
    let bounds = "[incidents]\nupload_bytes = 1000000\nunpacked_bytes = 4000000\n";
    std::fs::write(&path, text.replace("[incidents]\n", bounds)).unwrap();
    let daemon = Daemon::start(&path);
    let send = |query: &str, bytes: &[u8]| {
        let mut stream = TcpStream::connect(daemon.pages).unwrap();
        let head = format!(
            "POST /v1/uploads{query} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            daemon.pages,
            bytes.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        // Who is refused early need not be heard to the end.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status: u16 = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, serde_json::from_str::<Value>(body).unwrap_or_default())
    };
    let plain = zstd::decode_all(LOGS).unwrap();
    let (status, first) = send("?system=demo&version=1.4.0", LOGS);
    assert_eq!((status, &first["new"], &first["system"]), (202, &true.into(), &"demo".into()), "{first}");
    let (status, again) = send("?system=demo", LOGS);
    assert_eq!((status, &again["id"], &again["new"]), (202, &first["id"], &false.into()), "{again}");
    // Without a system they have one of their own.
    let (status, other) = send("", &plain);
    assert!(status == 202 && other["system"].as_str().unwrap().starts_with("upload-I-"), "{other}");
    let bomb = zstd::encode_all(&vec![0; 1 << 20][..], 3).unwrap().repeat(1000);
    assert!(bomb.len() < 1_000_000);
    assert_eq!(send("", &bomb).0, 413);
    assert_eq!(send("", &vec![b'x'; 1_000_001]).0, 413);
    assert_eq!(send("", b"").0, 422);
    assert_eq!(send("", b"BZh91AY&SY").0, 422);
    // What no mapping makes an event of is no log, and opens nothing.
    let (status, why) = send("", b"a line\nand another\n");
    assert!(status == 422 && why.to_string().contains("no line is an event: line 1"), "{status} {why}");
    assert_eq!(send("", &[0, 1, 2, 255]).0, 422);
    assert_eq!(send("?mapping=akka", b"a line\n").0, 422);
    assert_eq!(send("?mapping=/etc/passwd", &plain).0, 422);
    assert_eq!(send("?sytem=demo", &plain).0, 422);
    let uploads = std::fs::read_dir(dir.path().join("store/incidents/uploads")).unwrap().count();
    assert_eq!(uploads, 2, "nothing else is kept");
    let id = first["id"].as_str().unwrap();
    let done = wait_for("the work ends", || {
        let incident = daemon.json(&format!("/v1/incidents/{id}"));
        (incident["work"] == "done").then_some(incident)
    });
    assert_eq!(
        (&done["result"], &done["source"], &done["version"]),
        (&"minimized".into(), &"upload".into(), &"1.4.0".into())
    );
    let document = daemon.json("/v1/openapi.json");
    assert!(document["paths"]["/v1/uploads"]["post"].is_object(), "{document}");
}

/// Processes below one, as far as the system tells.
fn children(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of = |path: std::path::PathBuf| std::fs::read_to_string(path.join("children")).unwrap_or_default();
    let text: String = threads.map(|thread| of(thread.path())).collect();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// All entries of a journal, those in packs and those by themselves.
fn entries_of(incidents: &Path) -> Vec<Value> {
    let names = |folder: &str| {
        let names = std::fs::read_dir(incidents.join(folder)).into_iter().flatten();
        let mut paths: Vec<_> = names.map(|name| name.unwrap().path()).collect();
        paths.retain(|path| !path.file_name().unwrap().to_string_lossy().starts_with('.'));
        paths.sort();
        paths
    };
    let packed =
        names("pack").into_iter().map(|path| zstd::decode_all(&*std::fs::read(path).unwrap()).unwrap());
    let single = names("journal").into_iter().map(|path| std::fs::read(path).unwrap());
    let mut entries: BTreeMap<u64, Value> = BTreeMap::new();
    for bytes in packed.chain(single) {
        // A digest stands below each.
        for line in String::from_utf8(bytes).unwrap().lines().step_by(2) {
            let entry: Value = serde_json::from_str(line).unwrap();
            entries.entry(entry["n"].as_u64().unwrap()).or_insert(entry);
        }
    }
    entries.into_values().collect()
}

/// Daemon, worker and their children are killed again and again, at moments that the journal's growth says; then all is done, once.
#[test]
fn whoever_is_killed_each_incident_is_published_once() {
    if !Path::new("/proc/self/task").exists() {
        println!("skipped: this system does not say which processes are whose");
        return;
    }
    if std::env::var_os("DEMI_LONG").is_none() {
        killed_again_and_again(1, 4, 6);
        return;
    }
    let (mut kills, mut round) = (0, 0);
    while kills < 1000 {
        round += 1;
        let killed = killed_again_and_again(round, 50, 1000 - kills);
        println!("round {round}: killed {killed:?} of daemon, worker and child");
        kills += killed.iter().sum::<u32>();
    }
}

/// One service with so many incidents, of which processes are killed at most so often: how many daemons, workers and children.
fn killed_again_and_again(seed: u64, incidents: usize, kills: u32) -> [u32; 3] {
    let dir = tempfile::tempdir().unwrap();
    let hook = Hook::start();
    let path = config(dir.path(), &hook);
    // No model takes them: what is done is a build and a page.
    let text = std::fs::read_to_string(&path).unwrap().replace("lease_secs = 3", "lease_secs = 1");
    std::fs::write(&path, text.replace("systems = [\"demo\"]", "systems = [\"another\"]")).unwrap();
    let store = dir.path().join("store");
    let work = || {
        Command::new(assert_cmd::cargo::cargo_bin("demi-lineage"))
            .args(["-q", "incident", "work", "--lease", "1", "--settle", "0", "--store"])
            .arg(&store)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut log = zstd::decode_all(LOGS).unwrap();
    for n in 1..incidents {
        let record = format!(
            "{{\"actor\":\"_test\",\"seq\":{n},\"kind\":\"violation\",\"fields\":{{\"fingerprints\":[\"I{n}:a\"],\"affected\":[\"raft-member-3\"]}}}}\n"
        );
        log.extend(record.as_bytes());
    }
    let mut daemon = Daemon::start(&path);
    std::fs::write(dir.path().join("logs/demo.jsonl"), log).unwrap();
    let mut worker = work();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed);
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let all = |daemon: &Daemon| {
        daemon.json("/v1/incidents?limit=500")["items"].as_array().cloned().unwrap_or_default()
    };
    let over = |all: &[Value]| all.len() == incidents && all.iter().all(|one| one["work"] == "done");
    // What failed for a kill, or is one of many of its kind, is asked for as somebody would.
    let retry = |daemon: &Daemon, all: &[Value]| {
        let left = all.iter().filter(|one| ["failed", "parked"].contains(&one["work"].as_str().unwrap()));
        for one in left {
            ask(daemon.pages, &format!("POST /v1/incidents/{}/retry", one["id"].as_str().unwrap()), &[], "");
        }
    };
    let mut killed = [0_u32; 3];
    for _ in 0..kills {
        let entries = || daemon.json("/v1/stats")["journal"].as_u64().unwrap();
        let wanted = entries() + 1 + next(3);
        let mut ended = false;
        wait_for("the journal grows, or all is done", || {
            let all = all(&daemon);
            retry(&daemon, &all);
            ended = over(&all);
            (ended || entries() >= wanted).then_some(())
        });
        if ended {
            break;
        }
        match next(3) {
            0 => {
                daemon.child.kill().unwrap();
                daemon.child.wait().unwrap();
                daemon = Daemon::start(&path);
                killed[0] += 1;
            }
            1 => {
                worker.kill().unwrap();
                worker.wait().unwrap();
                worker = work();
                killed[1] += 1;
            }
            _ => {
                let below = [children(daemon.child.id()), children(worker.id())].concat();
                if let Some(child) = below.first() {
                    let _ = Command::new("kill").args(["-9", &child.to_string()]).status();
                    killed[2] += 1;
                }
            }
        }
        retry(&daemon, &all(&daemon));
    }
    wait_for("all is done", || {
        let all = all(&daemon);
        retry(&daemon, &all);
        over(&all).then_some(())
    });
    worker.kill().unwrap();
    worker.wait().unwrap();
    drop(daemon);
    // No number is missing; each is opened once, and published once.
    let (mut opened, mut done) = (BTreeMap::new(), BTreeMap::new());
    for (at, entry) in entries_of(&store.join("incidents")).iter().enumerate() {
        assert_eq!(entry["n"], at + 1, "a number is missing");
        for event in entry["events"].as_array().unwrap() {
            let count = match event["e"].as_str().unwrap() {
                "opened" => &mut opened,
                "done" => &mut done,
                _ => continue,
            };
            *count.entry(event["id"].as_str().unwrap().to_owned()).or_insert(0) += 1;
        }
    }
    assert_eq!((opened.len(), done.len()), (incidents, incidents));
    assert!(opened.values().chain(done.values()).all(|times| *times == 1), "{opened:?} {done:?}");
    let verified = Command::new(assert_cmd::cargo::cargo_bin("demi-lineage"))
        .args(["-q", "incident", "verify", "--store"])
        .arg(&store)
        .output()
        .unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
    killed
}

/// Many violations of one kind are a few pages and a few messages, and all of them are in the store.
#[test]
fn a_storm_of_records_is_a_few_messages() {
    let many = if std::env::var_os("DEMI_LONG").is_some() { 10_000 } else { 40 };
    let dir = tempfile::tempdir().unwrap();
    let hook = Hook::start();
    let path = config(dir.path(), &hook);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("systems = [\"demo\"]", "systems = [\"another\"]")).unwrap();
    let daemon = Daemon::start(&path);
    let mut log = zstd::decode_all(LOGS).unwrap();
    for n in 1..many {
        let record = format!(
            "{{\"actor\":\"_test\",\"seq\":{n},\"kind\":\"violation\",\"fields\":{{\"fingerprints\":[\"ElectionSafety:a\"],\"affected\":[\"raft-member-3\"]}}}}\n"
        );
        log.extend(record.as_bytes());
    }
    std::fs::write(dir.path().join("logs/demo.jsonl"), log).unwrap();
    let stats = wait_for("all are opened, and looked at or parked", || {
        let stats = daemon.json("/v1/stats");
        let of = |word: &str| stats["work"][word].as_u64().unwrap_or(0);
        (of("done") + of("parked") == many
            && stats["deliveries"]["queued"].is_null()
            && stats["deliveries"]["sending"].is_null())
        .then_some(stats)
    });
    let examined = 5 + (6..=many).filter(|n| n.is_power_of_two()).count() as u64;
    assert_eq!(stats["work"]["done"], examined, "{stats}");
    let sent = stats["deliveries"]["sent"].as_u64().unwrap();
    assert!((1..=8).contains(&sent), "{stats}");
}

/// From the list to a closed bug in a real browser, on a phone and on a wide screen, in light and dark, with script and without.
#[test]
fn a_bug_is_read_and_closed_in_a_browser() {
    let Some(python) = browser() else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(path("logs.jsonl.zst"), LOGS).unwrap();
    std::fs::write(path("scenario.toml"), SCENARIO).unwrap();
    let demi = || Command::new(assert_cmd::cargo::cargo_bin("demi-lineage"));
    let (store, logs, scenario) = (path("store"), path("logs.jsonl.zst"), path("scenario.toml"));
    for words in [
        vec![
            "open",
            &logs,
            "--system",
            "demo",
            "--scenario",
            &scenario,
            "--budget",
            "2000states",
            "--title",
            "two leaders",
        ],
        vec!["work", "--once"],
    ] {
        let run = demi().args(["-q", "incident"]).args(words).args(["--store", &store]).output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    }
    let mut child = demi()
        .args(["-q", "incident", "serve", "--listen", "127.0.0.1:0", "--store", &store])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/incident_pages/drive.py");
    let driven = Command::new(python).arg(script).arg(url.trim()).output();
    child.kill().unwrap();
    child.wait().unwrap();
    let driven = driven.unwrap();
    assert!(driven.status.success(), "{}", String::from_utf8_lossy(&driven.stderr));
    let seen: Value = serde_json::from_slice(&driven.stdout).unwrap();
    println!("{seen}");
    assert_eq!(seen.as_array().unwrap().len(), 8);
}
