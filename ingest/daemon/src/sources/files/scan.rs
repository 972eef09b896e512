//! Finding files, and telling which of them are known.

use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::Config;
use super::follow::{Follower, Known, Waiting};
use super::packed;
use super::state::{HEAD, State};
use demi_formats::read::decompress::{Packing, packing};
use demi_formats::read::names;

/// How long a file that could be a copy being made is left alone after its last change.
const COPYING: Duration = Duration::from_secs(2);

/// How long it is left alone at most, though it goes on changing: then it is read as a file of its own.
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// What a file that was not open turned out to be.
enum Found {
    /// The known file of that number, which was not open.
    Again(usize),
    /// A copy of a known file, to be read from there on.
    Copy(State),
    /// Not known.
    New,
    /// Perhaps a copy that is not finished.
    Wait,
}

/// The files that match, each once, in the order of their names.
pub(super) fn expand(config: &Config) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for pattern in &config.paths {
        // Patterns were checked at the start; folders that cannot be read are passed over until they can.
        paths.extend(names::find(pattern).map(|found| found.paths).unwrap_or_default());
    }
    paths.sort();
    paths.dedup();
    let excluded: Vec<glob::Pattern> =
        config.exclude.iter().filter_map(|p| glob::Pattern::new(p).ok()).collect();
    paths.retain(|path| !excluded.iter().any(|pattern| names::matches(pattern, path)));
    paths
}

impl Follower {
    /// Looks for files, and forgets those that have been gone for long.
    pub(super) fn scan(&mut self) {
        let now = self.look();
        self.forget(now);
    }

    /// Looks for files and opens those that are new or have changed. Says when, in seconds since 1970.
    pub(super) fn look(&mut self) -> u64 {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
        for known in &mut self.known {
            known.present = false;
        }
        (self.rescan, self.left_out) = (false, false);
        let waited = std::mem::take(&mut self.waiting);
        for path in expand(&self.config) {
            let Ok(meta) = std::fs::metadata(&path) else { continue };
            if meta.is_file() {
                self.found(path, &meta, now, &waited);
            }
        }
        now
    }

    fn found(&mut self, path: PathBuf, meta: &Metadata, now: u64, waited: &Waiting) {
        let name = names::text(&path);
        // An inode is not used again while the file is open: this is the file, whatever its name is now.
        if let Some(known) = self.known.iter_mut().find(|k| k.file.is_some() && k.state.is_at(meta)) {
            known.present = true;
            known.state.seen = now;
            known.state.rename(&path);
            return;
        }
        // Read to its end and closed, and not changed since.
        if let Some(known) = self.known.iter_mut().find(|k| {
            k.file.is_none() && k.state.is_at(meta) && k.closed_at == Some((meta.len(), meta.modified().ok()))
        }) {
            known.present = true;
            known.state.seen = now;
            known.state.rename(&path);
            return;
        }
        // A link may lead there that no look at the patterns has told.
        if std::fs::canonicalize(&path)
            .is_ok_and(|real| self.context.own.iter().any(|dir| real.starts_with(dir)))
        {
            self.complain(
                &name,
                "is the daemon's own and is not read",
                "it lies in the folder of the store or the spool",
            );
            return;
        }
        if !self.make_room(&name) {
            return;
        }
        let identified = self.identify(&path, meta);
        let place = (meta.dev(), meta.ino());
        let identified = match identified {
            Ok((file, is_packed, Found::Wait)) => {
                let since = waited.get(&place).copied().unwrap_or_else(Instant::now);
                let found = if since.elapsed() < LONGEST_WAIT {
                    self.waiting.insert(place, since);
                    Found::Wait
                } else {
                    Found::New
                };
                Ok((file, is_packed, found))
            }
            other => other,
        };
        match identified {
            Ok((file, is_packed, found)) => self.open(&path, file, meta, is_packed, found, now),
            Err(error) => self.complain(&name, "cannot be read", &error.to_string()),
        }
    }

    /// Makes room for one more open file: of those that are read to their end the one that was quiet longest is closed, and opened again
    /// when it changes. Says whether there is room; what is left out is found by a later scan.
    fn make_room(&mut self, name: &str) -> bool {
        // Where positions are counted the oldest file is read first, and must be seen.
        let ordered = self.mapped.as_ref().is_some_and(|mapped| mapped.ordered);
        if self.left_out {
            // Nothing is read while files are looked for: who was left out is not the last.
            return false;
        }
        let open = self.known.iter().filter(|k| k.file.is_some()).count();
        if ordered || open < self.context.open_files {
            return true;
        }
        let quiet = self.known.iter_mut().filter(|k| k.is_done()).min_by_key(|k| k.active);
        let room = quiet.is_some();
        quiet.into_iter().for_each(Known::close);
        if !room {
            self.left_out = true;
            if self.complained.insert(String::new()) {
                let (source, most) = (&self.context.origin.source, self.context.open_files);
                tracing::warn!(%source, most, path = name, "more files than may be open at once are read in turn");
            }
        }
        room
    }

    fn open(&mut self, path: &Path, file: File, meta: &Metadata, is_packed: bool, found: Found, now: u64) {
        let number = match found {
            Found::Wait => return,
            Found::Again(number) => number,
            Found::Copy(state) => {
                tracing::info!(
                    path = names::text(path),
                    from = state.path,
                    offset = state.offset,
                    "a copy; read from where the original was left"
                );
                let mut state = State { copied: true, ..state };
                state.rename(path);
                self.add(state)
            }
            Found::New => self.add(State::new(path, meta, is_packed)),
        };
        let known = &mut self.known[number];
        let fresh = State::new(path, meta, is_packed);
        known.state = State {
            device: fresh.device,
            inode: fresh.inode,
            packed: fresh.packed,
            done_size: if is_packed == known.state.packed { known.state.done_size } else { None },
            seen: now,
            ..known.state.clone()
        };
        known.state.rename(path);
        known.present = true;
        if known.state.packed && known.state.done_size == Some(meta.len()) {
            known.closed_at = Some((meta.len(), meta.modified().ok()));
            return;
        }
        known.reopen(file);
    }

    /// What the file at `path` is, by its content.
    fn identify(&self, path: &PathBuf, meta: &Metadata) -> std::io::Result<(File, bool, Found)> {
        let mut file = File::open(path)?;
        let mut start = Vec::with_capacity(HEAD);
        (&mut file).take(HEAD as u64).read_to_end(&mut start)?;
        // Some other format is read as text: its lines go to quarantine.
        let is_packed = packing(&start).is_ok_and(|p| p != Packing::Plain);
        let changing = || meta.modified().ok().and_then(|m| m.elapsed().ok()).is_none_or(|age| age < COPYING);
        if is_packed {
            let states: Vec<&State> = self.known.iter().map(|k| &k.state).collect();
            let found = match packed::identify(path, &states, &self.context.shutdown)? {
                packed::Identity::Known(number, _) if self.is_again(number, meta) => Found::Again(number),
                packed::Identity::Known(_, state) if self.is_copy(path, &state) => Found::Copy(*state),
                packed::Identity::Known(..) => Found::New,
                packed::Identity::Unknown => Found::New,
                packed::Identity::CutOff if changing() => Found::Wait,
                packed::Identity::CutOff => Found::New,
            };
            return Ok((file, true, found));
        }
        // What was read of a packed file counts where nothing may be read twice.
        let mapped = self.mapped.is_some();
        let plain = |k: &&(usize, &Known)| (mapped || !k.1.state.packed) && k.1.state.offset > 0;
        let all: Vec<(usize, &Known)> = self.known.iter().enumerate().collect();
        let mut best: Option<(usize, &State)> = None;
        let mut could_be_part = false;
        for (number, known) in all.iter().filter(plain) {
            let state = &known.state;
            if meta.len() < state.offset {
                let shorter = start.len().min(state.head_len());
                could_be_part |= !state.is_at(meta) && shorter == state.head_len() && state.begins(&start);
                continue;
            }
            if !state.begins(&start) || !state.continues(&file)? {
                continue;
            }
            if known.file.is_none() && state.is_at(meta) {
                return Ok((file, false, Found::Again(*number)));
            }
            // Of several states of one content the one that was read furthest says most.
            if best.is_none_or(|(_, b)| b.offset < state.offset) {
                best = Some((*number, state));
            }
        }
        let found = match best {
            Some((number, _)) if self.is_again(number, meta) => Found::Again(number),
            Some((_, state)) if self.is_copy(path, state) => Found::Copy(state.clone()),
            Some(_) => Found::New,
            None if could_be_part && changing() => Found::Wait,
            None => Found::New,
        };
        Ok((file, false, found))
    }

    /// Whether the state is that of a file which is no longer anywhere else: it was moved, not copied.
    fn is_again(&self, number: usize, meta: &Metadata) -> bool {
        let known = &self.known[number];
        known.file.is_none() && (known.state.is_at(meta) || !known.state.place().exists())
    }
}
