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

/// Writes the incumbent beside the folder of the result.
pub struct Incumbent {
    path: PathBuf,
    new: Arc<Mutex<Option<Schedule>>>,
    told: Mutex<usize>,
    over: Arc<AtomicBool>,
    writer: Option<JoinHandle<()>>,
}

impl Incumbent {
    /// For a result that goes into the folder `out`: the file is `out` with `.best.jsonl` added.
    pub fn beside(out: &Path) -> Incumbent {
        let path = out.with_added_extension("best.jsonl");
        let (new, over) = (Arc::new(Mutex::new(None)), Arc::new(AtomicBool::new(false)));
        let (to, what, end) = (path.clone(), Arc::clone(&new), Arc::clone(&over));
        let writer = std::thread::Builder::new().name("incumbent".to_owned()).spawn(move || {
            while !end.load(Ordering::Relaxed) {
                std::thread::sleep(PAUSE);
                write(&to, &what);
            }
        });
        Incumbent { path, new, told: Mutex::new(usize::MAX), over, writer: writer.ok() }
    }

    /// Where it is written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes a new incumbent of so many steps.
    pub fn take(&self, steps: usize, schedule: &dyn Fn() -> Schedule) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if steps <= SHORT || steps < *told - *told / 20 {
            *told = steps;
            *self.new.lock().unwrap_or_else(PoisonError::into_inner) = Some(schedule());
        }
    }

    /// Writes what is not written yet, once, when asked from another thread.
    pub fn last(&self) -> impl Fn() + Send + 'static {
        let (path, new) = (self.path.clone(), Arc::clone(&self.new));
        move || write(&path, &new)
    }

    /// Ends the writing and removes the file: the result is there.
    pub fn done(mut self) {
        self.end();
        self.new.lock().unwrap_or_else(PoisonError::into_inner).take();
        let _ = std::fs::remove_file(&self.path);
    }

    fn end(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

impl Drop for Incumbent {
    /// Where the work failed the best so far stays.
    fn drop(&mut self) {
        self.end();
        write(&self.path, &self.new);
    }
}

/// Writes what is new, if anything is. Where that fails the search goes on: the result will say so when it is written.
fn write(path: &Path, new: &Mutex<Option<Schedule>>) {
    let schedule = new.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(schedule) = schedule {
        if let Some(folder) = path.parent() {
            let _ = std::fs::create_dir_all(folder);
        }
        let _ = durable::write(path, schedule.to_text().as_bytes());
    }
}
