//! The best schedule so far, on disk while the search goes on: it can be read, and it is there whatever happens to the program.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use demi_common::durable;
use demi_schemas::Schedule;

/// How often what is new is written.
const PAUSE: Duration = Duration::from_millis(100);
/// Steps up to which each improvement is written; of longer schedules, which improve in thousands of small steps, only those that
/// are a twentieth shorter.
const SHORT: usize = 2_000;

/// A schedule that is not written yet, and where it goes.
#[derive(Debug)]
struct Waiting {
    path: PathBuf,
    new: Mutex<Option<Schedule>>,
}

/// Writes the incumbent beside the folder of the result, and the recording reduced by local passes.
pub struct Incumbent {
    best: Arc<Waiting>,
    reduced: Arc<Waiting>,
    told: Mutex<usize>,
    over: Arc<AtomicBool>,
    writer: Option<JoinHandle<()>>,
}

impl Incumbent {
    /// For a result that goes into the folder `out`: the files are `out` with `.best.jsonl` and `.reduced.jsonl` added.
    pub fn beside(out: &Path) -> Incumbent {
        let waiting = |extension: &str| {
            Arc::new(Waiting { path: out.with_added_extension(extension), new: Mutex::new(None) })
        };
        let (best, reduced) = (waiting("best.jsonl"), waiting("reduced.jsonl"));
        let over = Arc::new(AtomicBool::new(false));
        let (files, end) = ([Arc::clone(&best), Arc::clone(&reduced)], Arc::clone(&over));
        let writer = std::thread::Builder::new().name("incumbent".to_owned()).spawn(move || {
            while !end.load(Ordering::Relaxed) {
                std::thread::sleep(PAUSE);
                files.iter().for_each(|file| file.write());
            }
        });
        Incumbent { best, reduced, told: Mutex::new(usize::MAX), over, writer: writer.ok() }
    }

    /// Where it is written.
    pub fn path(&self) -> &Path {
        &self.best.path
    }

    /// Takes the recording, reduced by local passes.
    pub fn take_reduced(&self, schedule: Schedule) {
        self.reduced.put(schedule);
    }

    /// Takes a new incumbent of so many steps.
    pub fn take(&self, steps: usize, schedule: &dyn Fn() -> Schedule) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if steps <= SHORT || steps < *told - *told / 20 {
            *told = steps;
            self.best.put(schedule());
        }
    }

    /// Writes what is not written yet, once, when asked from another thread.
    pub fn last(&self) -> impl Fn() + Send + 'static {
        let files = [Arc::clone(&self.best), Arc::clone(&self.reduced)];
        move || files.iter().for_each(|file| file.write())
    }

    /// Ends the writing and removes the files: the result is there.
    pub fn done(mut self) {
        self.end();
        for file in [&self.best, &self.reduced] {
            file.taken();
            let _ = std::fs::remove_file(&file.path);
        }
    }

    fn end(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

impl Drop for Incumbent {
    /// Where the work failed what was found stays.
    fn drop(&mut self) {
        self.end();
        self.best.write();
        self.reduced.write();
    }
}

impl Waiting {
    fn put(&self, schedule: Schedule) {
        *self.new.lock().unwrap_or_else(PoisonError::into_inner) = Some(schedule);
    }

    fn taken(&self) -> Option<Schedule> {
        self.new.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Writes what is new, if anything is. Where that fails the search goes on: the result will say so when it is written.
    fn write(&self) {
        let Some(schedule) = self.taken() else { return };
        if let Some(folder) = self.path.parent() {
            let _ = std::fs::create_dir_all(folder);
        }
        let _ = durable::write(&self.path, schedule.to_text().as_bytes());
    }
}
