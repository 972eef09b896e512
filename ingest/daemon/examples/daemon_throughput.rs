//! How many events a second the daemon takes from files and TCP into the store, and how much memory that needs.
//!
//! `daemon_throughput DIR EVENTS`: writes EVENTS made-up records to files in DIR (half of them) and sends the other
//! half over two TCP connections to a daemon in a process of its own, from the moment it is ready until all are
//! committed. With `actors` behind it each record is of an actor of its own, and tells a state; with `monitor` behind that they are
//! watched. Prints one JSON object. The input stays in DIR (`input.jsonl`) for others to be compared with.

#![expect(clippy::print_stdout, reason = "this is a program that prints a result")]

#[path = "../../store/benches/support/mod.rs"]
mod support;

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use demi_daemon::Config;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["serve", config] => serve(Path::new(config)),
        [dir, events] => measure(Path::new(dir), events.parse()?, None),
        [dir, events, "actors"] => measure(Path::new(dir), events.parse()?, Some(false)),
        [dir, events, "actors", "monitor"] => measure(Path::new(dir), events.parse()?, Some(true)),
        _ => Err("daemon_throughput DIR EVENTS [actors [monitor]]".into()),
    }
}

fn serve(path: &Path) -> Result<()> {
    let config = Config::read(path)?;
    demi_daemon::start_log(&config.daemon)?;
    demi_daemon::run(&config, path, |started| {
        for (name, address) in &started.addresses {
            println!("{name} {address}");
        }
        println!("ready");
    })?;
    Ok(())
}

/// `actors`: whether each record is of an actor of its own, and whether they are watched.
fn measure(dir: &Path, events: u64, actors: Option<bool>) -> Result<()> {
    let logs = dir.join("logs");
    fs::create_dir_all(&logs)?;
    let input = dir.join("input.jsonl");
    // Made anew each time: one of an earlier run may hold another number of events.
    let mut out = std::io::BufWriter::with_capacity(1 << 20, File::create(&input)?);
    match actors {
        None => support::generate(events, &mut out)?,
        Some(_) => {
            for n in 0..events {
                let x = n % 40;
                writeln!(
                    out,
                    "{{\"actor\":\"actor-{n}\",\"seq\":1,\"kind\":\"state\",\"time\":\"2026-01-01T00:00:00.{:06}Z\",\"state\":{{\"x\":{x}}}}}",
                    n % 1_000_000
                )?;
            }
        }
    }
    out.flush()?;
    drop(out);
    // Actors take turns line by line; even ones go to two files, odd ones to two connections.
    let mut parts: Vec<Vec<u8>> = vec![Vec::new(); 4];
    for (n, line) in BufReader::with_capacity(1 << 20, File::open(&input)?).split(b'\n').enumerate() {
        let part = &mut parts[n % 4];
        part.extend_from_slice(&line?);
        part.push(b'\n');
    }
    let bytes: usize = parts.iter().map(Vec::len).sum();
    fs::write(logs.join("a.log"), &parts[0])?;
    fs::write(logs.join("b.log"), &parts[2])?;
    let (one, two) = (std::mem::take(&mut parts[1]), std::mem::take(&mut parts[3]));
    drop(parts);
    let config = dir.join("demi.toml");
    let d = dir.display();
    let mut monitor = String::new();
    if actors == Some(true) {
        let invariants = "schema = \"demi-invariants/1\"\n[[invariant]]\nid = \"i\"\nholds = \"x <= 50\"\n";
        fs::write(dir.join("invariants.toml"), invariants)?;
        monitor = format!(
            "[monitors.m]\nsystem = \"bench\"\ninvariants = \"{d}/invariants.toml\"\ncpu_share = 1.0\n"
        );
    }
    fs::write(
        &config,
        monitor
            + &format!(
                "[store]\ndir = \"{d}/store\"\n[spool]\ndir = \"{d}/spool\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
             [daemon]\nlog = \"warn\"\n\
             [sources.logs]\ntype = \"files\"\nsystem = \"bench\"\npaths = [\"{d}/logs/*.log\"]\n\
             [sources.tcp]\ntype = \"tcp\"\nsystem = \"bench\"\nlisten = \"127.0.0.1:0\"\n"
            ),
    )?;
    let begin = Instant::now();
    let mut child =
        Command::new(std::env::current_exe()?).arg("serve").arg(&config).stdout(Stdio::piped()).spawn()?;
    let result = drive(&mut child, begin, events, bytes, [one, two]);
    let _ = child.kill();
    let _ = child.wait();
    result
}

fn drive(child: &mut Child, begin: Instant, events: u64, bytes: usize, sent: [Vec<u8>; 2]) -> Result<()> {
    let (mut tcp, mut admin) = (None, None);
    for line in BufReader::new(child.stdout.take().ok_or("no output")?).lines() {
        let line = line?;
        match line.split_once(' ') {
            Some(("tcp", address)) => tcp = Some(address.parse::<SocketAddr>()?),
            Some(("admin", address)) => admin = Some(address.parse::<SocketAddr>()?),
            _ => break,
        }
    }
    let (tcp, admin) = (tcp.ok_or("no address")?, admin.ok_or("no address")?);
    let ready = begin.elapsed();
    let senders: Vec<_> = sent.into_iter().map(|part| thread::spawn(move || send(tcp, &part))).collect();
    while written(admin)? < events {
        thread::sleep(Duration::from_millis(50));
    }
    let seconds = (begin.elapsed() - ready).as_secs_f64();
    for sender in senders {
        sender.join().map_err(|_| "a sender failed")??;
    }
    let status = fs::read_to_string(format!("/proc/{}/status", child.id()))?;
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("").trim().to_owned();
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
    let ticks: u64 = stat.split(' ').skip(13).take(2).filter_map(|t| t.parse::<u64>().ok()).sum();
    println!(
        "{{\"events\":{events},\"bytes\":{bytes},\"seconds\":{seconds:.2},\"events_per_second\":{:.0},\
         \"cpu_seconds\":{:.2},\"peak_memory\":\"{peak}\"}}",
        events as f64 / seconds,
        ticks as f64 / 100.0,
    );
    Ok(())
}

/// Sends everything and waits until it is acknowledged.
fn send(address: SocketAddr, part: &[u8]) -> std::result::Result<(), String> {
    let lines = part.iter().filter(|b| **b == b'\n').count();
    let stream = TcpStream::connect(address).map_err(|e| e.to_string())?;
    let answers = BufReader::new(stream.try_clone().map_err(|e| e.to_string())?);
    thread::scope(|scope| {
        scope.spawn(|| (&stream).write_all(part));
        let last = format!("{{\"acknowledged\":{lines}}}");
        for answer in answers.lines() {
            let answer = answer.map_err(|e| e.to_string())?;
            if answer == last {
                return Ok(());
            }
            if answer.contains("error") {
                return Err(answer);
            }
        }
        Err("the connection ended".to_owned())
    })
}

/// Events committed so far, by the daemon's own count.
fn written(admin: SocketAddr) -> Result<u64> {
    let mut stream = TcpStream::connect(admin)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let found = text.lines().find_map(|l| l.strip_prefix("demi_events_written_total{system=\"bench\"} "));
    Ok(found.and_then(|n| n.parse().ok()).unwrap_or(0))
}
