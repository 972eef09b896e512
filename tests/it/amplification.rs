//! Requests and files that are small and would become large: what they cost the daemon, which is a process of its own.
//!
//! `DEMI_AMPLIFY=N` makes N of them, of up to 15 MiB each; the default is a few small ones, of each kind.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use crate::support::kill;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use kill::daemon::Daemon;
use kill::random::Random;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_client::LogsServiceClient;
use tonic::codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Code, Request, Status};

/// Memory that a request may cost, besides four times its unpacked bytes.
const MEMORY: u64 = 128 << 20;
/// How many times that a development build may take, in the few requests that are always made: it shows that what a request costs has
/// a bound at all. Whether the bound itself is kept is measured with `DEMI_AMPLIFY`.
const SLACK: u64 = 4;

/// How bytes come to the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// OTLP in protobuf over HTTP.
    Proto,
    /// The same over gRPC.
    Grpc,
    /// OTLP in JSON.
    Json,
    /// Lines over HTTP.
    Http,
    /// Lines over HTTP that a mapping reads.
    Mapped,
    Tcp,
    File,
}

const WAYS: [Way; 7] = [Way::Proto, Way::Grpc, Way::Json, Way::Http, Way::Mapped, Way::Tcp, Way::File];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Plain,
    Gzip,
    /// Many members.
    Gzips,
    Zstd,
    /// Many frames.
    Zstds,
}

impl Packing {
    fn pack(self, bytes: &[u8]) -> Vec<u8> {
        let gzip = |part: &[u8]| {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            gzip.write_all(part).unwrap();
            gzip.finish().unwrap()
        };
        let zstd = |part: &[u8]| zstd::encode_all(part, 9).unwrap();
        // So many that the pieces are small, and some are empty.
        let pieces = || bytes.chunks(4096).flat_map(|part| [part, &part[..0]]);
        match self {
            Packing::Plain => bytes.to_vec(),
            Packing::Gzip => gzip(bytes),
            Packing::Gzips => pieces().flat_map(gzip).collect(),
            Packing::Zstd => zstd(bytes),
            Packing::Zstds => pieces().flat_map(zstd).collect(),
        }
    }

    fn name(self) -> Option<&'static str> {
        match self {
            Packing::Plain => None,
            Packing::Gzip | Packing::Gzips => Some("gzip"),
            Packing::Zstd | Packing::Zstds => Some("zstd"),
        }
    }
}

/// A field of protobuf with bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length > 127 {
        out.push(length as u8 & 127 | 128);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(bytes);
    out
}

fn attribute(name: &str, value: &[u8]) -> Vec<u8> {
    [field(1, name.as_bytes()), field(2, &field(1, value))].concat()
}

/// A span that is an event.
fn span(id: u64) -> Vec<u8> {
    let time = [&[0x39][..], &1_700_000_000_000_000_000_u64.to_le_bytes()].concat();
    [field(1, &[1; 16]), field(2, &(id + 1).to_be_bytes()), time].concat()
}

/// A request of traces or logs of about that many bytes.
fn proto(random: &mut Random, size: usize) -> (String, Vec<u8>) {
    let some = |part: &[u8]| part.repeat(size / part.len() + 1);
    let scoped = |elements: Vec<u8>| field(1, &field(2, &elements));
    match random.below(11) {
        0 => ("empty elements".into(), scoped(some(&[0x12, 0]))),
        1 => ("empty resources".into(), some(&[0x0a, 0])),
        2 => ("empty scopes".into(), field(1, &some(&[0x12, 0]))),
        3 => ("elements of two kinds".into(), scoped(some(&[0x12, 0, 0x12, 3, 0x2a, 1, b'x']))),
        4 => {
            let what = [0x4a, 0x5a, 0x6a, 0x32][random.below(4) as usize];
            (format!("one element with many fields {what:x}"), scoped(field(2, &some(&[what, 0]))))
        }
        5 => {
            let narrow = [span(1), [0x4a, 0].repeat(60_000)].concat();
            (
                "many elements with many attributes".into(),
                scoped(field(2, &narrow).repeat(size / narrow.len() + 1)),
            )
        }
        6 => {
            let mut deep = field(3, &[1]);
            for _ in 0..2000 {
                deep = field(5, &field(1, &deep));
            }
            let element = [span(1), field(9, &[field(1, b"k"), field(2, &deep)].concat())].concat();
            ("deep".into(), scoped(field(2, &element).repeat(size / element.len() + 1)))
        }
        7 => {
            let resource = field(1, &field(1, &attribute("service.name", &vec![b'x'; size / 4])));
            let spans: Vec<u8> = (0..size as u64 / 80).flat_map(|id| field(2, &span(id))).collect();
            ("a large resource of many elements".into(), field(1, &[resource, field(2, &spans)].concat()))
        }
        8 => {
            let links = field(13, &[field(1, &[2; 16]), field(2, &[3; 8])].concat()).repeat(size / 60);
            let consumer =
                [span(1), vec![0x30, 5], field(9, &attribute("a", &vec![b'x'; size / 4])), links].concat();
            ("a batch of many messages".into(), scoped(field(2, &consumer)))
        }
        9 => {
            let element = [span(1), field(9, &attribute("a", &vec![1; 200_000]))].concat();
            ("control characters".into(), scoped(field(2, &element).repeat(size / element.len() + 1)))
        }
        _ => {
            let spans: Vec<u8> = (0..size as u64 / 41).flat_map(|id| field(2, &span(id))).collect();
            ("small elements".into(), scoped(spans))
        }
    }
}

/// The same in JSON.
fn json(random: &mut Random, size: usize) -> (String, Vec<u8>) {
    let list = |element: &str| vec![element; size / (element.len() + 1) + 1].join(",");
    let scoped =
        |elements: &str| format!("{{\"resourceSpans\":[{{\"scopeSpans\":[{{\"spans\":[{elements}]}}]}}]}}");
    let id = "\"traceId\":\"0af7651916cd43dd8448eb211c80319c\",\"spanId\":\"00000000000000ff\",\"startTimeUnixNano\":\"7\"";
    let (name, text) = match random.below(8) {
        0 => ("empty elements", scoped(&list("{}"))),
        1 => ("empty resources", format!("{{\"resourceSpans\":[{}]}}", list("{}"))),
        2 => ("elements of two kinds", scoped(&list("{},{\"name\":1},[]"))),
        3 => {
            ("one element with many attributes", scoped(&format!("{{{id},\"attributes\":[{}]}}", list("{}"))))
        }
        4 => {
            let wide = format!(
                "{{{id},\"attributes\":[{}]}}",
                vec!["{\"key\":\"a\",\"value\":{}}"; 30_000].join(",")
            );
            ("many elements with many attributes", scoped(&list(&wide)))
        }
        5 => {
            let deep = format!("{{{id},\"name\":{}1{}}}", "[".repeat(100), "]".repeat(100));
            ("deep", scoped(&list(&deep)))
        }
        6 => {
            let resource = format!(
                "{{\"attributes\":[{{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"{}\"}}}}]}}",
                "x".repeat(size / 4)
            );
            let spans = vec![format!("{{{id}}}"); size / 240].join(",");
            // It stands behind what it is said of.
            (
                "a large resource of many elements",
                format!(
                    "{{\"resourceSpans\":[{{\"scopeSpans\":[{{\"spans\":[{spans}]}}],\"resource\":{resource}}}]}}"
                ),
            )
        }
        _ => ("one long text", format!("{{\"resourceSpans\":[],\"x\":\"{}\"}}", "\\u0001".repeat(size / 6))),
    };
    (name.into(), text.into_bytes())
}

/// Lines.
fn lines(random: &mut Random, size: usize) -> (String, Vec<u8>) {
    let record = |rest: &str| format!("{{\"actor\":\"a\",\"seq\":1,\"kind\":\"local\"{rest}}}\n");
    let inside = |open: &str, part: &str, close: &str| {
        let many = vec![part; 900_000 / (part.len() + 1)].join(",");
        record(&format!(",\"fields\":{open}{many}{close}"))
    };
    let (name, line) = match random.below(9) {
        0 => ("lines of one letter", "a\n".to_owned()),
        1 => ("lines of two kinds", "a\n{}\n".to_owned()),
        2 => ("refused lines between records", format!("{}{}", record(""), "x\n".repeat(15))),
        3 => ("empty lines", "\n".to_owned()),
        4 => ("a wide record", inside("[", "{}", "]")),
        5 => ("a record of many numbers", inside("[", "0", "]")),
        6 => ("a record of many names", inside("{", "\"a\":{}", "}")),
        7 => ("a deep record", record(&format!(",\"fields\":{}1{}", "[".repeat(100), "]".repeat(100)))),
        _ => ("a long line", "x".repeat(900_000) + "\n"),
    };
    (name.into(), line.repeat(size / line.len() + 1).into_bytes())
}

/// Bytes as they are, in place of messages.
#[derive(Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Raw;
    type Decoder = Raw;
    fn encoder(&mut self) -> Raw {
        Raw
    }
    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;
    fn encode(&mut self, item: Vec<u8>, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        bytes::BufMut::put_slice(to, &item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;
    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let length = bytes::Buf::remaining(from);
        Ok(Some(bytes::Buf::copy_to_bytes(from, length).to_vec()))
    }
}

fn post(at: SocketAddr, path: &str, kind: &str, packing: Packing, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    let encoding = packing.name().map_or(String::new(), |name| format!("content-encoding: {name}\r\n"));
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: {kind}\r\n{encoding}content-length: {length}\r\n\r\n"
    );
    // It may be refused before all of it was sent.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
    // The body of an answer need not be text.
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
}

fn grpc(at: SocketAddr, packing: Packing, body: Vec<u8>) -> String {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let channel =
            tonic::transport::Channel::from_shared(format!("http://{at}")).unwrap().connect().await.unwrap();
        let mut client = tonic::client::Grpc::new(channel);
        client = match packing.name() {
            Some("gzip") => client.send_compressed(CompressionEncoding::Gzip),
            Some(_) => client.send_compressed(CompressionEncoding::Zstd),
            None => client,
        };
        client.ready().await.unwrap();
        let path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export".parse().unwrap();
        match client.unary(Request::new(body), path, Raw).await {
            Ok(_) => "taken".to_owned(),
            Err(status) => format!("{:?}", status.code()),
        }
    })
}

fn tcp(at: SocketAddr, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    let lines = body.iter().filter(|byte| **byte == b'\n').count();
    let reader = stream.try_clone().unwrap();
    let answers = thread::spawn(move || {
        let mut last = String::new();
        for line in std::io::BufRead::lines(std::io::BufReader::new(reader)) {
            let Ok(line) = line else { break };
            last = line;
            if last.contains("error") || last == format!("{{\"acknowledged\":{lines}}}") {
                break;
            }
        }
        last
    });
    let _ = stream.write_all(body);
    answers.join().unwrap()
}

/// What the process has used: the most memory so far, in bytes, besides what of its program is in memory, and time on cores.
fn used(process: u32) -> (u64, Duration) {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let bytes = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().split(' ').next().unwrap().parse::<u64>().unwrap() << 10
    };
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: u64 = [11, 12].iter().map(|n| fields[*n].parse::<u64>().unwrap()).sum();
    (bytes("VmHWM:").saturating_sub(bytes("RssFile:")), Duration::from_millis(ticks * 10))
}

fn settle(daemon: &Daemon) {
    let state = || {
        let text = daemon.get("/metrics");
        let kept = ["demi_durable_lsn ", "demi_committed_lsn ", "demi_received_bytes_total"];
        text.lines()
            .filter(|line| kept.iter().any(|name| line.starts_with(name)))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let end = Instant::now() + Duration::from_secs(300);
    let (mut before, mut since) = (state(), Instant::now());
    loop {
        thread::sleep(Duration::from_millis(100));
        let now = state();
        if now != before {
            (before, since) = (now, Instant::now());
            continue;
        }
        let number = |name: &str| before.iter().find_map(|line| line.strip_prefix(name).map(str::to_owned));
        let done = number("demi_durable_lsn ") == number("demi_committed_lsn ");
        if done && since.elapsed() > Duration::from_millis(700) {
            return;
        }
        assert!(Instant::now() < end, "it is never done: {before:?}\n{}", daemon.log());
    }
}

fn start(dir: &Path, limits: &str) -> Daemon {
    let d = dir.display();
    fs::create_dir_all(dir.join("in")).unwrap();
    let listen = "system = \"s\"\nlisten = \"127.0.0.1:0\"";
    let config = format!(
        "[store]\ndir = \"{d}/store\"\nseal_millis = 200\n[spool]\ndir = \"{d}/spool\"\n[limits]\n{limits}\n\
         [admin]\nlisten = \"127.0.0.1:0\"\n[daemon]\nlog = \"warn\"\n\
         [sources.otlp]\ntype = \"otlp\"\n{listen}\n[sources.http]\ntype = \"http\"\n{listen}\n\
         [sources.mapped]\ntype = \"http\"\nmapping = \"tracing\"\n{listen}\n[sources.tcp]\ntype = \"tcp\"\n{listen}\n\
         [sources.files]\ntype = \"files\"\nsystem = \"s\"\npaths = [\"{d}/in/*.log*\"]\npoll_millis = 50\nscan_millis = 100\n"
    );
    let mut daemon = Daemon::with_config(dir, &config);
    daemon.start();
    daemon
}

#[test]
fn what_becomes_of_few_bytes_is_bounded() {
    let asked: Option<usize> = std::env::var("DEMI_AMPLIFY").ok().and_then(|n| n.parse().ok());
    let count = asked.unwrap_or(2 * WAYS.len());
    let mut random = Random::new(7);
    let mut most = 0;
    let mut beyond = Vec::new();
    for number in 0..count {
        // A process of its own for each: what it was given before is no excuse.
        let dir = tempfile::tempdir().unwrap();
        let mut daemon = start(dir.path(), "");
        let way = WAYS[number % WAYS.len()];
        let size = if asked.is_some() { 1 + random.below(15 << 20) as usize } else { 1 << 20 };
        let (what, body) = match way {
            Way::Proto | Way::Grpc => proto(&mut random, size),
            Way::Json => json(&mut random, size),
            _ => lines(&mut random, size),
        };
        let packing = match way {
            Way::Tcp => Packing::Plain,
            Way::Grpc => [Packing::Plain, Packing::Gzip, Packing::Zstd][random.below(3) as usize],
            _ => [Packing::Plain, Packing::Gzip, Packing::Gzips, Packing::Zstd, Packing::Zstds]
                [random.below(5) as usize],
        };
        let packed = packing.pack(&body);
        let address = |name: &str| daemon.addresses().get(name).unwrap();
        let before = used(daemon.id());
        let answer = match way {
            Way::Proto if number % 2 == 0 => {
                post(address("otlp"), "/v1/traces", "application/x-protobuf", packing, &packed)
            }
            Way::Proto => post(address("otlp"), "/v1/logs", "application/x-protobuf", packing, &packed),
            Way::Json => post(address("otlp"), "/v1/traces", "application/json", packing, &packed),
            Way::Grpc => grpc(address("otlp"), packing, body.clone()),
            Way::Http => post(address("http"), "/v1/events", "application/x-ndjson", packing, &packed),
            Way::Mapped => post(address("mapped"), "/v1/events", "application/x-ndjson", packing, &packed),
            Way::Tcp => tcp(address("tcp"), &body),
            Way::File => {
                let end = packing.name().map_or("", |name| if name == "gzip" { ".gz" } else { ".zst" });
                let hidden = dir.path().join("made");
                fs::write(&hidden, &packed).unwrap();
                fs::rename(&hidden, dir.path().join(format!("in/a.log{end}"))).unwrap();
                thread::sleep(Duration::from_millis(500));
                "a file".to_owned()
            }
        };
        settle(&daemon);
        let (peak, time) = used(daemon.id());
        let time = time.saturating_sub(before.1);
        let slack = if asked.is_some() { 1 } else { SLACK };
        let allowed = slack * (MEMORY + 4 * body.len() as u64);
        let told = format!(
            "{number}: {way:?} {packing:?}, {what}: {} bytes, {} packed, {answer}: {} MB of {}, {time:?} of cores",
            body.len(),
            packed.len(),
            peak >> 20,
            allowed >> 20
        );
        if asked.is_some() {
            println!("{told}");
        }
        most = most.max(peak * 100 / allowed);
        let cores = Duration::from_secs_f64(1.0 + body.len() as f64 / f64::from(1 << 20));
        let is_slow = (asked.is_some() || !cfg!(debug_assertions)) && time > cores;
        if answer.is_empty() || peak > allowed || is_slow {
            beyond.push(told);
        }
        daemon.stop();
    }
    println!("most: {most} % of what is allowed");
    assert!(beyond.is_empty(), "{}", beyond.join("\n"));
}

/// A batch of which nothing is stored is done when it was looked through: nobody is told that the store is behind.
#[test]
fn batches_of_empty_lines_are_done() {
    let dir = tempfile::tempdir().unwrap();
    let mut daemon = start(dir.path(), "");
    let at = daemon.addresses().get("http").unwrap();
    let answer = post(at, "/v1/events", "application/x-ndjson", Packing::Plain, b"\n\n\n");
    assert!(answer.contains("200"), "{answer}");
    daemon.wait_for_metric("demi_durable_lsn", 1);
    daemon.wait_for_metric("demi_committed_lsn", 1);
    daemon.kill();
    daemon.start();
    daemon.wait_for_metric("demi_committed_lsn", 1);
    let at = daemon.addresses().get("http").unwrap();
    let line = b"{\"actor\":\"a\",\"seq\":1,\"kind\":\"local\"}\n";
    assert!(post(at, "/v1/events", "application/x-ndjson", Packing::Plain, line).contains("200"));
    daemon.wait_for_metric("demi_committed_lsn", 2);
    assert_eq!(daemon.metric("demi_events_written_total{system=\"s\"}"), 1);
    daemon.stop();
}

/// Actors of which each sends one record, of sources of all kinds of names: what the daemon keeps of them is packed, also with a monitor
/// that looks at each. Four million with `DEMI_LONG`, in a gigabyte; fewer otherwise, in the share of a gigabyte that is theirs.
#[test]
fn actors_without_end_take_little_memory() {
    let long = std::env::var_os("DEMI_LONG").is_some();
    let actors: u64 = if long { 4_000_000 } else { 60_000 };
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path().display();
    fs::create_dir_all(dir.path().join("in")).unwrap();
    fs::write(
        dir.path().join("i.toml"),
        "schema = \"demi-invariants/1\"\n[[invariant]]\nname = \"n\"\nholds = \"x <= 50\"\n",
    )
    .unwrap();
    let config = format!(
        "[store]\ndir = \"{d}/store\"\nreserve_bytes = 0\n[spool]\ndir = \"{d}/spool\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
         [daemon]\nlog = \"warn\"\n[sources.files]\ntype = \"files\"\nsystem = \"s\"\npaths = [\"{d}/in/*.log\"]\n\
         poll_millis = 50\nscan_millis = 100\n[monitors.m]\nsystem = \"s\"\ninvariants = \"{d}/i.toml\"\ncpu_share = 1.0\n"
    );
    let mut daemon = Daemon::with_config(dir.path(), &config);
    daemon.start();
    let mut written = 0;
    while written < actors {
        let next = (written + 250_000).min(actors);
        let mut text = String::new();
        for actor in written..next {
            // Names of many kinds: numbers in a row, numbers without order, and text before and behind them.
            let noise = actor.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8;
            let name = match actor % 3 {
                0 => format!("pod-{actor}"),
                1 => format!("{noise:014x}"),
                _ => format!("10.0.{}.{}:{noise}/worker", actor >> 8 & 255, actor & 255),
            };
            text += &format!(
                "{{\"actor\":\"{name}\",\"seq\":1,\"kind\":\"state\",\"state\":{{\"x\":{}}}}}\n",
                actor % 40
            );
        }
        let hidden = dir.path().join("made");
        fs::write(&hidden, text).unwrap();
        fs::rename(&hidden, dir.path().join(format!("in/{written}.log"))).unwrap();
        written = next;
    }
    let done = || {
        let text = daemon.get("/metrics");
        let of =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        of("demi_events_written_total{system=\"s\"}") == Some(actors)
    };
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(900), "it is not taken in:\n{}", daemon.log());
        thread::sleep(Duration::from_millis(200));
    }
    settle(&daemon);
    let (peak, time) = used(daemon.id());
    println!("{actors} actors: {} MB, {time:?} of cores, {:?}", peak >> 20, begin.elapsed());
    // A monitor knows 100,000 actors, at 2 KB each, and forgets the others.
    let allowed = if long { 1 << 30 } else { (256 << 20) + actors * 2048 };
    assert!(peak <= allowed, "{} MB", peak >> 20);
    // Each is known again: nothing of them is taken in a second time, and another record is.
    daemon.stop();
    daemon.start();
    let again = "{\"actor\":\"pod-3\",\"seq\":1,\"kind\":\"state\",\"state\":{\"x\":3}}\n{\"actor\":\"pod-3\",\"seq\":2,\"kind\":\"state\",\"state\":{\"x\":4}}\n";
    fs::write(dir.path().join("again"), again).unwrap();
    fs::rename(dir.path().join("again"), dir.path().join("in/again.log")).unwrap();
    daemon.wait_until("what is new is taken in", || {
        let text = daemon.get("/metrics");
        text.contains("demi_events_written_total{system=\"s\"} 1\n")
            && text.contains("demi_events_duplicate_total{system=\"s\"} 1\n")
    });
    let (peak, _) = used(daemon.id());
    assert!(peak <= allowed, "{} MB after a restart", peak >> 20);
    daemon.stop();
}

#[test]
fn all_requests_together_have_one_budget() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = start(dir.path(), "body_bytes = 1000000\nrequests_bytes = 2000000");
    let address = |name: &str| daemon.addresses().get(name).unwrap();
    // Two that are on their way, and take all of it.
    let hold = || {
        let mut stream = TcpStream::connect(address("http")).unwrap();
        write!(stream, "POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-length: 999999\r\n\r\n")
            .unwrap();
        stream.write_all(&vec![b'x'; 990_000]).unwrap();
        stream
    };
    let mut held = [hold(), hold()];
    let line = "{\"actor\":\"a\",\"seq\":1,\"kind\":\"local\"}\n".repeat(2000);
    let ask = |name, path, kind| post(address(name), path, kind, Packing::Plain, line.as_bytes());
    daemon.wait_until("a request is refused", || {
        for stream in &mut held {
            // It was refused itself, because another one came before all of it was there.
            stream.set_nonblocking(true).unwrap();
            if stream.read(&mut [0; 1]).is_ok() {
                *stream = hold();
            }
        }
        thread::sleep(Duration::from_millis(200));
        ask("http", "/v1/events", "text/plain").contains(" 429 ")
    });
    assert!(ask("mapped", "/v1/events", "text/plain").contains(" 429 "));
    assert!(ask("otlp", "/v1/logs", "application/json").contains(" 429 "));
    let status = tokio::runtime::Runtime::new().unwrap().block_on(async {
        let at = format!("http://{}", address("otlp"));
        let channel = tonic::transport::Channel::from_shared(at).unwrap().connect().await.unwrap();
        let resource = opentelemetry_proto::tonic::logs::v1::ResourceLogs {
            schema_url: "x".repeat(200_000),
            ..Default::default()
        };
        let request = ExportLogsServiceRequest { resource_logs: vec![resource] };
        LogsServiceClient::new(channel).export(request).await.unwrap_err()
    });
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    assert!(status.details().windows(9).any(|part| part == b"RetryInfo"));
    assert!(daemon.metric("demi_refused_total{source=\"otlp\",reason=\"busy\"} ") >= 2);
    // What is given up is there for others.
    drop(held);
    daemon.wait_until("a request is taken", || ask("http", "/v1/events", "text/plain").contains(" 200 "));
}
