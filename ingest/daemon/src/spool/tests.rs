//! The spool against a disk that fails and forgets.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::*;
use demi_store::fs::OpenFile;

/// A disk in memory. What was not synced may be lost, in part, at a crash; writes and syncs fail when told to.
#[derive(Clone, Debug, Default)]
struct Memory(Arc<Mutex<Inner>>);

#[derive(Clone, Debug, Default)]
struct Inner {
    files: BTreeMap<String, File>,
    /// Names as they are after a crash.
    durable_names: BTreeMap<String, ()>,
    fail_append: Option<usize>,
    fail_sync: bool,
    fail_cut: bool,
    fail_create: bool,
}

#[derive(Clone, Debug, Default)]
struct File {
    bytes: Vec<u8>,
    synced: Vec<u8>,
}

#[derive(Debug)]
struct Handle(Memory, String);

fn broken() -> io::Error {
    io::Error::other("told to fail")
}

impl Memory {
    fn inner<R>(&self, f: impl FnOnce(&mut Inner) -> R) -> R {
        f(&mut self.0.lock().unwrap())
    }

    /// The disk after a power cut: of what was not synced, `keep` bytes a file are there, bit `flip` of them changed.
    fn crash(&self, keep: usize, flip: Option<usize>) -> Memory {
        let mut inner = self.inner(|i| i.clone());
        let durable = inner.durable_names.clone();
        inner.files.retain(|name, _| durable.contains_key(name));
        for file in inner.files.values_mut() {
            let from = file.synced.len();
            if file.bytes.starts_with(&file.synced) {
                let to = from.saturating_add(keep).min(file.bytes.len());
                file.bytes.truncate(to);
                if let Some(bit) = flip
                    && to > from
                {
                    let at = from + bit / 8 % (to - from);
                    file.bytes[at] ^= 1 << (bit % 8);
                }
            } else {
                file.bytes = file.synced.clone();
            }
            file.synced = file.bytes.clone();
        }
        inner.fail_append = None;
        (inner.fail_sync, inner.fail_cut, inner.fail_create) = (false, false, false);
        Memory(Arc::new(Mutex::new(inner)))
    }
}

impl Disk for Memory {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.inner(|i| i.files.keys().cloned().collect()))
    }
    fn create(&self, name: &str) -> io::Result<Box<dyn OpenFile>> {
        self.inner(|i| {
            if i.fail_create || i.files.contains_key(name) {
                return Err(broken());
            }
            i.files.insert(name.to_owned(), File::default());
            Ok(())
        })?;
        Ok(Box::new(Handle(self.clone(), name.to_owned())))
    }
    fn len(&self, name: &str) -> io::Result<u64> {
        self.inner(|i| i.files.get(name).map(|f| f.bytes.len() as u64).ok_or_else(broken))
    }
    fn read_at(&self, name: &str, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.inner(|i| {
            let bytes = &i.files.get(name).ok_or_else(broken)?.bytes;
            let rest = bytes.get(offset as usize..).unwrap_or_default();
            let n = rest.len().min(into.len());
            into[..n].copy_from_slice(&rest[..n]);
            Ok(n)
        })
    }
    fn truncate(&self, name: &str, len: u64) -> io::Result<()> {
        self.inner(|i| {
            let file = i.files.get_mut(name).ok_or_else(broken)?;
            file.bytes.truncate(len as usize);
            file.synced = file.bytes.clone();
            Ok(())
        })
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner(|i| {
            i.durable_names.remove(name);
            i.files.remove(name).map(drop).ok_or_else(broken)
        })
    }
    fn sync_names(&self) -> io::Result<()> {
        self.inner(|i| {
            i.durable_names = i.files.keys().map(|n| (n.clone(), ())).collect();
        });
        Ok(())
    }
    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.inner(|i| {
            i.files.insert(name.to_owned(), File { bytes: bytes.to_vec(), synced: bytes.to_vec() });
            i.durable_names.insert(name.to_owned(), ());
        });
        Ok(())
    }
}

impl OpenFile for Handle {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.inner(|i| {
            let part = i.fail_append.map_or(bytes.len(), |n| n.min(bytes.len()));
            let failed = i.fail_append.take().is_some();
            i.files.get_mut(&self.1).ok_or_else(broken)?.bytes.extend_from_slice(&bytes[..part]);
            if failed { Err(broken()) } else { Ok(()) }
        })
    }
    fn sync(&mut self) -> io::Result<()> {
        self.0.inner(|i| {
            if std::mem::take(&mut i.fail_sync) {
                return Err(broken());
            }
            let file = i.files.get_mut(&self.1).ok_or_else(broken)?;
            file.synced = file.bytes.clone();
            Ok(())
        })
    }
    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.0.inner(|i| {
            if i.fail_cut {
                return Err(broken());
            }
            i.files.get_mut(&self.1).ok_or_else(broken)?.bytes.truncate(len as usize);
            Ok(())
        })
    }
}

fn body(n: u64, len: usize) -> Body {
    let mut bytes = n.to_le_bytes().to_vec();
    bytes.resize(8 + len, n as u8);
    Body::new(bytes).unwrap()
}

fn frames<D: Disk>(spool: &Spool<D>, after: u64) -> Vec<Frame> {
    let mut reader = spool.reader(after);
    std::iter::from_fn(|| reader.next_frame().unwrap()).collect()
}

const SMALL: Options = Options { segment_bytes: 300, max_bytes: 2000 };

#[test]
fn a_torn_end_at_every_byte_gives_back_all_whole_frames() {
    let disk = Memory::default();
    let (mut spool, _) = Spool::open(disk.clone(), Options::default()).unwrap();
    let lengths = [0usize, 3, 40, 1];
    let mut ends = vec![32u64];
    for (n, len) in lengths.iter().enumerate() {
        spool.write(&[body(n as u64, *len)]).unwrap();
        ends.push(spool.bytes());
    }
    let name = disk.list().unwrap().into_iter().find(|n| n.starts_with("segment")).unwrap();
    let whole = disk.inner(|i| i.files[&name].bytes.clone());
    for cut in 0..=whole.len() {
        for garbage in [0usize, 5, 40] {
            let torn = disk.crash(usize::MAX, None);
            torn.inner(|i| {
                let file = i.files.get_mut(&name).unwrap();
                file.bytes.truncate(cut);
                file.bytes.extend(std::iter::repeat_n(b'D', garbage));
            });
            let expected = ends.iter().filter(|end| **end <= cut as u64).count().saturating_sub(1);
            let (mut spool, found) = Spool::open(torn, Options::default()).unwrap();
            let got = frames(&spool, 0);
            assert_eq!(got.len(), expected, "cut at {cut}, {garbage} bytes of garbage: {found:?}");
            assert!(got.iter().enumerate().all(|(n, f)| f.body == body(n as u64, lengths[n]).bytes()));
            assert_eq!(found.frames as usize, expected);
            let lsn = spool.write(&[body(9, 9)]).unwrap().first_lsn;
            assert_eq!(lsn as usize, expected + 1);
            assert_eq!(frames(&spool, expected as u64).len(), 1);
        }
    }
}

#[test]
fn a_flipped_bit_in_an_acknowledged_frame_is_named() {
    let disk = Memory::default();
    let (mut spool, _) = Spool::open(disk.clone(), Options::default()).unwrap();
    for n in 0..5 {
        spool.write(&[body(n, 20)]).unwrap();
    }
    let name = disk.list().unwrap().into_iter().find(|n| n.starts_with("segment")).unwrap();
    // Second frame: each frame is 32 + 8 + 20 bytes after a header of 32.
    disk.inner(|i| i.files.get_mut(&name).unwrap().bytes[32 + 60 + 45] ^= 4);
    let (spool, found) = Spool::open(disk, Options::default()).unwrap();
    assert_eq!(found.damage.iter().map(|d| d.lost).collect::<Vec<_>>(), [Some((2, 2))]);
    assert_eq!(frames(&spool, 0).iter().map(|f| f.lsn).collect::<Vec<_>>(), [1, 3, 4, 5]);
}

#[test]
fn a_full_spool_refuses_until_something_is_released() {
    let (mut spool, _) = Spool::open(Memory::default(), SMALL).unwrap();
    let mut n = 0;
    let refused = loop {
        match spool.write(&[body(n, 60)]) {
            Ok(_) => n += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, SpoolError::Full { limit: 2000, .. }), "{refused}");
    assert_eq!(frames(&spool, 0).len() as u64, n);
    let releaser = spool.releaser();
    assert!(!releaser.would_release(2) && releaser.would_release(3));
    releaser.release(n / 2).unwrap();
    spool.write(&[body(n, 60)]).unwrap();
    assert_eq!(frames(&spool, n / 2).len() as u64, n + 1 - n / 2);
    releaser.release(u64::MAX).unwrap();
    assert!(spool.bytes() < 600);
}

#[test]
fn numbers_go_on_when_all_segments_were_released_or_lost() {
    let disk = Memory::default();
    let (mut spool, _) = Spool::open(disk.clone(), SMALL).unwrap();
    for n in 0..20 {
        spool.write(&[body(n, 10)]).unwrap();
        spool.releaser().release(u64::MAX).unwrap();
    }
    let (mut spool, found) = Spool::open(disk, SMALL).unwrap();
    assert_eq!((found.last_lsn, spool.last_lsn()), (20, 20));
    spool.skip_to(50);
    assert_eq!(spool.write(&[body(0, 1)]).unwrap().first_lsn, 51);
    assert_eq!(frames(&spool, 50).len(), 1);
}

#[derive(Clone, Debug)]
enum Step {
    Write(Vec<usize>),
    FailAppend(usize),
    FailSync,
    FailCut(bool),
    FailCreate(bool),
    Release,
    Crash(usize, Option<usize>),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => prop::collection::vec(0usize..90, 1..4).prop_map(Step::Write),
        2 => (0usize..120).prop_map(Step::FailAppend),
        2 => Just(Step::FailSync),
        1 => any::<bool>().prop_map(Step::FailCut),
        1 => any::<bool>().prop_map(Step::FailCreate),
        2 => Just(Step::Release),
        3 => (0usize..200, prop::option::of(0usize..1600)).prop_map(|(k, f)| Step::Crash(k, f)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]
    /// Whatever fails: each acknowledged frame is read back, once, in order and as it was; what was refused is not
    /// there while the process lives, and what a crash leaves of it is whole.
    #[test]
    fn acknowledged_is_on_disk(steps in prop::collection::vec(step(), 1..60)) {
        let mut disk = Memory::default();
        let (mut spool, _) = Spool::open(disk.clone(), SMALL).unwrap();
        let mut acked: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        let mut released = 0;
        let mut attempts: Vec<Vec<u8>> = Vec::new();
        let mut n = 0;
        for step in steps {
            match step {
                Step::Write(lengths) => {
                    let bodies: Vec<Body> = lengths.iter().map(|len| { n += 1; body(n, *len) }).collect();
                    attempts.extend(bodies.iter().map(|b| b.bytes().to_vec()));
                    if let Ok(written) = spool.write(&bodies) {
                        let lsns = written.first_lsn..=written.last_lsn;
                        prop_assert_eq!(lsns.clone().count(), bodies.len());
                        for (lsn, b) in lsns.zip(&bodies) {
                            prop_assert!(acked.insert(lsn, b.bytes().to_vec()).is_none(), "{} twice", lsn);
                        }
                    }
                    let last = acked.last_key_value().map_or(spool.last_lsn(), |(lsn, _)| *lsn);
                    prop_assert_eq!(spool.last_lsn(), last);
                }
                Step::FailAppend(after) => disk.inner(|i| i.fail_append = Some(after)),
                Step::FailSync => disk.inner(|i| i.fail_sync = true),
                Step::FailCut(yes) => disk.inner(|i| i.fail_cut = yes),
                Step::FailCreate(yes) => disk.inner(|i| i.fail_create = yes),
                Step::Release => {
                    released = spool.last_lsn() / 2;
                    spool.releaser().release(released).unwrap();
                }
                Step::Crash(keep, flip) => {
                    disk = disk.crash(keep, flip);
                    let (reopened, found) = Spool::open(disk.clone(), SMALL).unwrap();
                    spool = reopened;
                    prop_assert!(found.damage.is_empty(), "{:?}", found.damage);
                    // What was on its way may have arrived; it is acknowledged from now on.
                    let got = frames(&spool, spool.last_lsn().min(acked.last_key_value().map_or(0, |(l, _)| *l)));
                    for frame in got {
                        prop_assert!(attempts.contains(&frame.body));
                        acked.insert(frame.lsn, frame.body);
                    }
                }
            }
            let got: BTreeMap<u64, Vec<u8>> =
                frames(&spool, released).into_iter().map(|f| (f.lsn, f.body)).collect();
            let expected: BTreeMap<_, _> = acked.range(released + 1..).map(|(l, b)| (*l, b.clone())).collect();
            prop_assert_eq!(got, expected);
        }
    }
}

/// Small segments, and room for many.
const ROOMY: Options = Options { segment_bytes: 300, max_bytes: 1 << 20 };

/// What happens to the files of a spool that nobody writes.
#[derive(Clone, Debug)]
enum Harm {
    Flip(usize, usize),
    Cut(usize),
    Zero(usize, usize),
    Remove,
}

impl Harm {
    fn of(&self, disk: &Memory, name: &str) {
        disk.inner(|i| {
            let Some(file) = i.files.get_mut(name) else { return };
            let len = file.bytes.len().max(1);
            match self {
                Harm::Flip(at, bit) => {
                    if let Some(byte) = file.bytes.get_mut(at % len) {
                        *byte ^= 1 << bit;
                    }
                }
                Harm::Cut(at) => file.bytes.truncate(at % len),
                Harm::Zero(at, count) => {
                    file.bytes.iter_mut().skip(at % len).take(*count).for_each(|b| *b = 0)
                }
                Harm::Remove => drop(i.files.remove(name)),
            }
        });
    }
}

fn harm() -> impl Strategy<Value = Harm> {
    prop_oneof![
        8 => (any::<usize>(), 0..8_usize).prop_map(|(at, bit)| Harm::Flip(at, bit)),
        3 => any::<usize>().prop_map(Harm::Cut),
        3 => (any::<usize>(), 1..100_usize).prop_map(|(at, count)| Harm::Zero(at, count)),
        1 => Just(Harm::Remove),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]
    /// Whatever happens to one file of a spool whose process was killed: each acknowledged frame is read back, or said to be lost by its
    /// number, with what is left of it in a file. So it is after a power cut of a spool that was at rest.
    #[test]
    fn what_is_damaged_is_known(
        groups in prop::collection::vec(prop::collection::vec(0usize..90, 1..4), 1..12),
        harm in harm(), which in any::<usize>(), last: bool, power_cut: bool,
    ) {
        let disk = Memory::default();
        let (mut spool, _) = Spool::open(disk.clone(), ROOMY).unwrap();
        let mut acked: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        for lengths in groups {
            let bodies: Vec<Body> = lengths.iter().map(|len| body(*len as u64, *len)).collect();
            let Ok(written) = spool.write(&bodies) else { break };
            acked.extend((written.first_lsn..).zip(bodies.iter().map(|b| b.bytes().to_vec())));
        }
        let disk = if power_cut {
            spool.rest();
            disk.crash(0, None)
        } else {
            disk
        };
        let mut names = disk.list().unwrap();
        names.sort();
        let segments: Vec<String> = names.iter().filter(|n| n.starts_with("segment")).cloned().collect();
        // A segment in front that is gone may have been removed because it is in the store.
        let last = last || matches!(harm, Harm::Remove);
        let name = if last { segments.last().unwrap() } else { &names[which % names.len()] };
        harm.of(&disk, name);
        let looked = identity(&disk).unwrap().map(|id| inspect(&disk, id).unwrap());
        let (mut spool, found) = Spool::open(disk.clone(), ROOMY).unwrap();
        let got: BTreeMap<u64, Vec<u8>> = frames(&spool, 0).into_iter().map(|f| (f.lsn, f.body)).collect();
        for (lsn, bytes) in &got {
            prop_assert_eq!(Some(bytes), acked.get(lsn), "{} is another", lsn);
        }
        let lost: std::collections::BTreeSet<u64> =
            found.damage.iter().filter_map(|d| d.lost).flat_map(|(first, last)| first..=last).collect();
        let missing: std::collections::BTreeSet<u64> =
            acked.keys().filter(|lsn| !got.contains_key(lsn)).copied().collect();
        prop_assert_eq!(found.lost_frames() as usize, lost.len());
        // Nothing is in the store: what is in front of the first frame is lost too.
        let lost: std::collections::BTreeSet<u64> = lost.into_iter().chain(1..=found.begins_after).collect();
        prop_assert_eq!(&lost, &missing, "{:?} of {}: {:?}", harm, name, found.damage);
        // Who looks only is told the same.
        prop_assert_eq!(looked.map(|f| f.damage), Some(found.damage.clone()));
        // Of a segment that was cut to nothing there is nothing left.
        let kept = disk.list().unwrap().iter().filter(|name| name.starts_with("unreadable-")).count();
        let left = disk.len(name).is_ok_and(|len| len > 32) || segments.len() == 1;
        prop_assert!(kept == 0 || !missing.is_empty());
        prop_assert!(kept > 0 || missing.is_empty() || !left);
        // Numbers go on behind what was acknowledged, and what was lost stays known.
        let next = spool.write(&[body(1, 1)]).unwrap().first_lsn;
        prop_assert_eq!(next, acked.keys().last().unwrap_or(&0) + 1);
        drop(spool);
        let (_, again) = Spool::open(disk, ROOMY).unwrap();
        prop_assert_eq!(again.aside.len(), kept);
    }
}
