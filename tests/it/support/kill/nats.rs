//! A NATS server with a stream, and a producer that sends again what the server did not confirm.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use async_nats::ConnectOptions;
use async_nats::jetstream::{self, consumer, stream};

use super::record;

/// How to connect.
pub type Options = Box<dyn Fn() -> ConnectOptions>;

/// Ends with the value.
pub struct Server {
    child: Child,
    url: String,
    options: Options,
    dir: tempfile::TempDir,
}

impl Server {
    /// A server with the stream `EVENTS` of the subjects `events.>`; `None` where there is no `nats-server`.
    pub fn start() -> Option<Self> {
        Server::start_with(&[], Box::new(ConnectOptions::new))
    }

    /// The same with more arguments, and how to connect then.
    pub fn start_with(arguments: &[&str], options: Options) -> Option<Self> {
        if Command::new("nats-server").arg("--version").output().is_err() {
            eprintln!("left out: there is no nats-server");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let ports = dir.path().join("ports");
        fs::create_dir_all(&ports).unwrap();
        let child = Command::new("nats-server")
            .args(["-a", "127.0.0.1", "-p", "-1", "-js", "-sd"])
            .arg(dir.path().join("js"))
            .arg("--ports_file_dir")
            .arg(&ports)
            .args(arguments)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let end = Instant::now() + Duration::from_secs(30);
        let url = loop {
            let text =
                fs::read_dir(&ports).unwrap().flatten().find_map(|f| fs::read_to_string(f.path()).ok());
            let found = text.and_then(|t| serde_json::from_str::<serde_json::Value>(&t).ok());
            let name = if arguments.contains(&"--tls") { "tls" } else { "nats" };
            if let Some(url) = found.and_then(|v| v["nats"][0].as_str().map(str::to_owned)) {
                let (_, address) = url.split_once("://").unwrap();
                break format!("{name}://{address}");
            }
            assert!(Instant::now() < end, "the server did not start");
            thread::sleep(Duration::from_millis(50));
        };
        let server = Server { child, url, options, dir };
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let config = stream::Config {
                name: "EVENTS".into(),
                subjects: vec!["events.>".into()],
                ..stream::Config::default()
            };
            server.context().await.create_stream(config).await.unwrap();
        });
        Some(server)
    }

    /// Kills it, and starts it again at the same place, with what it has stored, after `pause`.
    pub fn restart(&mut self, pause: Duration) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        thread::sleep(pause);
        let (_, port) = self.url.rsplit_once(':').unwrap();
        let child = Command::new("nats-server")
            .args(["-a", "127.0.0.1", "-p", port, "-js", "-sd"])
            .arg(self.dir.path().join("js"))
            .stderr(Stdio::null())
            .spawn();
        self.child = child.unwrap();
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub async fn context(&self) -> jetstream::Context {
        jetstream::new((self.options)().connect(&self.url).await.unwrap())
    }

    /// Makes the daemon's consumer, which is to deliver again soon what was not acknowledged.
    pub fn deliver_again_soon(&self) {
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let stream = self.context().await.get_stream("EVENTS").await.unwrap();
            let config = consumer::pull::Config {
                durable_name: Some("demi-lineage".into()),
                ack_policy: consumer::AckPolicy::Explicit,
                ack_wait: Duration::from_secs(2),
                ..consumer::pull::Config::default()
            };
            stream.create_consumer(config).await.unwrap();
        });
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Publishes records of the actor `nats-0`.
pub struct Producer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Producer {
    pub fn start(server: &Server) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (url, stopped) = (server.url.clone(), stop.clone());
        let thread = thread::spawn(move || {
            tokio::runtime::Runtime::new().unwrap().block_on(async {
                let context = jetstream::new(async_nats::connect(&url).await.unwrap());
                let mut seq = 0;
                while !stopped.load(Ordering::Relaxed) {
                    let text: String = (seq + 1..=seq + 3).map(|n| record("nats-0", n)).collect();
                    let sent = context.publish("events.a", text.into()).await;
                    let Ok(confirmed) = sent else { continue };
                    if confirmed.await.is_ok() {
                        seq += 3;
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                seq
            })
        });
        Producer { stop, thread }
    }

    /// Ends it; says how many records were published.
    pub fn finish(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}
