//! Log files that are written, rotated, cut, packed and deleted.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::random::Random;

struct Log {
    dir: PathBuf,
    name: String,
    seq: u64,
    /// The rest of a line whose beginning was written.
    rest: Option<String>,
    line: Line,
}

/// The line of an actor's n-th record.
pub type Line = fn(&str, u64) -> String;

impl Log {
    fn path(&self) -> PathBuf {
        self.dir.join(format!("{}.log", self.name))
    }

    fn append(&self, text: &str) {
        let mut file = OpenOptions::new().create(true).append(true).open(self.path()).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn write(&mut self, lines: u64) {
        self.complete();
        let text: String = (self.seq + 1..=self.seq + lines).map(|n| (self.line)(&self.name, n)).collect();
        self.append(&text);
        self.seq += lines;
    }

    fn complete(&mut self) {
        if let Some(rest) = self.rest.take() {
            self.append(&rest);
        }
    }

    /// Moves a.log.2 to a.log.3 and so on, to make room for a.log.1.
    fn shift(&self) {
        let numbered = |n: u32| self.dir.join(format!("{}.log.{n}", self.name));
        let mut last = 1;
        while numbered(last).exists() {
            last += 1;
        }
        for n in (1..last).rev() {
            fs::rename(numbered(n), numbered(n + 1)).unwrap();
        }
    }
}

pub struct Files {
    logs: Vec<Arc<Mutex<Log>>>,
    stop: Arc<AtomicBool>,
    writer: JoinHandle<()>,
}

impl Files {
    /// Logs of the actors `NAME-0` and so on.
    pub fn new(dir: PathBuf, name: &str, count: usize, line: Line) -> Self {
        let logs: Vec<Arc<Mutex<Log>>> = (0..count)
            .map(|n| Log { dir: dir.clone(), name: format!("{name}-{n}"), seq: 0, rest: None, line })
            .map(|log| Arc::new(Mutex::new(log)))
            .collect();
        let stop = Arc::new(AtomicBool::new(false));
        let (mine, stopped) = (logs.clone(), stop.clone());
        let writer = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                for log in &mine {
                    let mut log = log.lock().unwrap();
                    if log.rest.is_none() {
                        log.write(3);
                    }
                }
                thread::sleep(Duration::from_millis(15));
            }
        });
        Files { logs, stop, writer }
    }

    pub fn rename(&self, n: usize) {
        let mut log = self.logs[n].lock().unwrap();
        log.complete();
        log.shift();
        let _ = fs::rename(log.path(), log.dir.join(format!("{}.log.1", log.name)));
    }

    pub fn copy_truncate(&self, n: usize) {
        let mut log = self.logs[n].lock().unwrap();
        log.complete();
        log.shift();
        if fs::copy(log.path(), log.dir.join(format!("{}.log.1", log.name))).is_ok() {
            OpenOptions::new().write(true).open(log.path()).unwrap().set_len(0).unwrap();
            // Sometimes there is as much again before anybody looks.
            log.write(5);
        }
    }

    /// Packs the newest rotated file that is not packed.
    pub fn pack(&self, n: usize, zstd: bool) {
        let log = self.logs[n].lock().unwrap();
        let path = log.dir.join(format!("{}.log.1", log.name));
        let Ok(bytes) = fs::read(&path) else { return };
        let (end, packed) = match zstd {
            true => ("zst", zstd::encode_all(bytes.as_slice(), 1).unwrap()),
            false => {
                let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                gzip.write_all(&bytes).unwrap();
                ("gz", gzip.finish().unwrap())
            }
        };
        let mut number = 0;
        let free = loop {
            let free = log.dir.join(format!("{}.log-{number}.{end}", log.name));
            if !free.exists() {
                break free;
            }
            number += 1;
        };
        // In place, as packers do: the reader sees it grow.
        let half = packed.len() / 2;
        let mut file = fs::File::create(&free).unwrap();
        file.write_all(&packed[..half]).unwrap();
        thread::sleep(Duration::from_millis(30));
        file.write_all(&packed[half..]).unwrap();
        file.set_modified(fs::metadata(&path).unwrap().modified().unwrap()).unwrap();
        fs::remove_file(path).unwrap();
    }

    /// Deletes rotated files of which every byte is durable.
    pub fn delete_what_is_durable(&self, durable: &BTreeMap<u64, u64>) {
        for log in &self.logs {
            let log = log.lock().unwrap();
            let plain = |path: &Path| path.to_string_lossy().contains(".log.");
            for entry in fs::read_dir(&log.dir).unwrap() {
                let path = entry.unwrap().path();
                let meta = fs::metadata(&path).unwrap();
                if plain(&path)
                    && path.file_name().unwrap().to_string_lossy().starts_with(&log.name)
                    && durable.get(&meta.ino()) == Some(&meta.len())
                {
                    fs::remove_file(path).unwrap();
                }
            }
        }
    }

    /// Writes a part of a line; a later fault, or the end, completes it.
    pub fn leave_partial(&self, n: usize, random: &mut Random) {
        let mut log = self.logs[n].lock().unwrap();
        if log.rest.is_some() {
            log.complete();
            return;
        }
        log.seq += 1;
        let line = (log.line)(&log.name, log.seq);
        let at = 1 + random.below(line.len() as u64 - 1) as usize;
        log.append(&line[..at]);
        log.rest = Some(line[at..].to_owned());
    }

    /// Ends the writing; says how many records each file's actor wrote.
    pub fn finish(self) -> BTreeMap<String, u64> {
        self.stop.store(true, Ordering::Relaxed);
        self.writer.join().unwrap();
        self.logs
            .iter()
            .map(|log| {
                let mut log = log.lock().unwrap();
                log.write(1);
                (log.name.clone(), log.seq)
            })
            .collect()
    }
}
