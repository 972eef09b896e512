//! Ballista in processes of its own: a scheduler and two executors on this machine.

use std::fs::{File, Permissions};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use demi_plans::{Dialect, Engine, EngineKind, Files, PlanError, Process, Rows, Saved, Small, Step};
use tempfile::TempDir;

use crate::common::python;

/// Names the folder of `ballista-scheduler`, `ballista-executor` and `ballista-cli`.
const BINARIES: &str = "DEMI_BALLISTA";

/// Whether this machine has Ballista. Says so where it has not.
pub fn is_there() -> bool {
    let there = std::env::var_os(BINARIES).is_some();
    if !there {
        println!("skipped: no Ballista (set {BINARIES} to the folder of its three programs)");
    }
    there
}

fn binary(name: &str) -> PathBuf {
    Path::new(&std::env::var_os(BINARIES).unwrap()).join(name).canonicalize().unwrap()
}

/// A port that nobody has now.
fn free() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// Waits until something is so.
fn until(what: &str, mut is: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What a scheduler says of itself.
fn get(port: u16, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// Waits until a scheduler has a job that runs.
pub fn until_busy(port: u16) {
    until("no job runs", || get(port, "/api/jobs").is_ok_and(|jobs| jobs.contains("\"Running\"")));
}

/// A process that ends with its owner.
pub struct Killed(Child);

impl Killed {
    /// Kills it.
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A scheduler and its executors.
pub struct Cluster {
    /// The port of the scheduler.
    pub port: u16,
    /// The scheduler.
    pub scheduler: Killed,
    /// The executors.
    pub executors: Vec<Killed>,
    folder: TempDir,
}

impl Cluster {
    /// Starts a scheduler and two executors. An executor that says nothing for five seconds is lost.
    pub fn start() -> Cluster {
        let folder = tempfile::tempdir().unwrap();
        let port = free();
        let scheduler = scheduler(folder.path(), port);
        until("no scheduler", || get(port, "/healthz").is_ok_and(|text| text.contains(" 200 ")));
        let executors = (0..2).map(|number| executor(folder.path(), port, number)).collect();
        until("no executors", || get(port, "/readyz").is_ok_and(|text| text.contains(" 200 ")));
        Cluster { port, scheduler, executors, folder }
    }

    /// Starts another scheduler in place of one that was killed.
    pub fn restart(&mut self) {
        self.scheduler = scheduler(self.folder.path(), self.port);
    }

    /// A driver of this cluster.
    pub fn process(&self) -> Result<Process, PlanError> {
        // Tests run beside each other, in one environment. What a killed executor holds for ever is asked for again.
        let script = self.folder.path().join("python");
        let (cli, python) = (binary("ballista-cli"), python());
        let text = format!(
            "#!/bin/sh\nDEMI_BALLISTA_TIMEOUT=20 DEMI_BALLISTA_CLI='{}' exec '{}' \"$@\"\n",
            cli.display(),
            python.display()
        );
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
        Process::start(EngineKind::Ballista, Some(&format!("127.0.0.1:{}", self.port)), &script)
    }

    /// An engine that owns this cluster.
    pub fn engine(self) -> Result<Owned, PlanError> {
        Ok(Owned { process: self.process()?, _cluster: self })
    }
}

fn spawn(folder: &Path, name: &str, log: &str, args: &[String]) -> Killed {
    let log = File::create(folder.join(format!("{log}.txt"))).unwrap();
    let mut command = Command::new(binary(name));
    command.current_dir(folder).args(args).stdout(log.try_clone().unwrap()).stderr(log);
    Killed(command.spawn().unwrap())
}

fn scheduler(folder: &Path, port: u16) -> Killed {
    let args = format!(
        "--bind-host 127.0.0.1 --external-host 127.0.0.1 --bind-port {port} --min-ready-executors 2 \
         --executor-timeout-seconds 5 --expire-dead-executor-interval-seconds 1"
    );
    let args: Vec<String> = args.split_whitespace().map(str::to_owned).collect();
    spawn(folder, "ballista-scheduler", "scheduler", &args)
}

fn executor(folder: &Path, scheduler: u16, number: usize) -> Killed {
    let work = folder.join(format!("executor-{number}"));
    std::fs::create_dir(&work).unwrap();
    let args = format!(
        "--scheduler-host 127.0.0.1 --scheduler-port {scheduler} --bind-host 127.0.0.1 --external-host 127.0.0.1 \
         --bind-port {} --bind-grpc-port {} --bind-health-port {} --vcores 4 --executor-heartbeat-interval-seconds 1",
        free(),
        free(),
        free()
    );
    let mut args: Vec<String> = args.split_whitespace().map(str::to_owned).collect();
    args.extend(["--work-dir".to_owned(), work.display().to_string()]);
    spawn(folder, "ballista-executor", &format!("executor-{number}"), &args)
}

/// An engine whose cluster ends with it.
pub struct Owned {
    process: Process,
    _cluster: Cluster,
}

impl Engine for Owned {
    fn name(&self) -> &'static str {
        self.process.name()
    }

    fn dialect(&self) -> Dialect {
        self.process.dialect()
    }

    fn open(&mut self, tables: &[Files]) -> Result<(), PlanError> {
        self.process.open(tables)
    }

    fn put(&mut self, tables: &[Small]) -> Result<(), PlanError> {
        self.process.put(tables)
    }

    fn query(&mut self, step: Step, keys: &[i64]) -> Result<Rows, PlanError> {
        self.process.query(step, keys)
    }

    fn save(&mut self, step: Step, path: &Path) -> Result<Saved, PlanError> {
        self.process.save(step, path)
    }
}
