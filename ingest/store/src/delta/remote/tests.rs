use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use demi_formats::read::source::Sources;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, PutMultipartOptions,
    PutOptions, PutResult, Result,
};

use super::*;
use crate::delta::{SmallFiles, merge, vacuum};
use crate::{LoadOptions, RemoteObjects, Store, load, status};

/// Object storage that fails: it does nothing, or what was asked for without an answer, or says that it was done before, or ends in the middle of a
/// file. Which comes next follows from a seed.
#[derive(Debug)]
struct Faulty {
    inner: InMemory,
    state: AtomicU64,
    /// Of a thousand requests, how many fail.
    share: AtomicU64,
    /// What happened, by kind.
    happened: [AtomicU64; 4],
    /// Whether a name that is taken is given out again.
    careless: bool,
}

impl Faulty {
    fn new(seed: u64, share: u64) -> Arc<Faulty> {
        Arc::new(Faulty {
            inner: InMemory::new(),
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).into(),
            share: share.into(),
            happened: Default::default(),
            careless: false,
        })
    }

    fn draw(&self, below: u64) -> u64 {
        // SplitMix64.
        let mut z = self.state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }

    /// The fault of a request, of so many kinds.
    fn fault(&self, kinds: u64) -> Option<u64> {
        if self.draw(1000) >= self.share.load(Ordering::Relaxed) {
            return None;
        }
        let kind = self.draw(kinds);
        self.happened[kind as usize].fetch_add(1, Ordering::Relaxed);
        Some(kind)
    }
}

fn lost() -> Error {
    Error::Generic { store: "faulty", source: "503 SlowDown, or a connection that was reset".into() }
}

impl std::fmt::Display for Faulty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("faulty")
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        location: &Location,
        payload: PutPayload,
        mut opts: PutOptions,
    ) -> Result<PutResult> {
        if self.careless {
            opts.mode = PutMode::Overwrite;
        }
        match self.fault(3) {
            None => self.inner.put_opts(location, payload, opts).await,
            Some(0) => Err(lost()),
            Some(1) => {
                self.inner.put_opts(location, payload, opts).await?;
                Err(lost())
            }
            // The client asked again by itself, and is answered about its own first request.
            Some(_) => {
                self.inner.put_opts(location, payload.clone(), opts.clone()).await?;
                self.inner.put_opts(location, payload, opts).await
            }
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Location,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        match self.fault(1) {
            None => self.inner.put_multipart_opts(location, opts).await,
            Some(_) => Err(lost()),
        }
    }

    async fn get_opts(&self, location: &Location, options: GetOptions) -> Result<GetResult> {
        match self.fault(4) {
            None => self.inner.get_opts(location, options).await,
            Some(3) => {
                let whole = self.inner.get_opts(location, options).await?;
                let (meta, range, attributes) =
                    (whole.meta.clone(), whole.range.clone(), whole.attributes.clone());
                let bytes = whole.bytes().await?;
                let half = bytes.slice(..bytes.len() / 2);
                let payload = GetResultPayload::Stream(stream::iter([Ok(half), Err(lost())]).boxed());
                Ok(GetResult { payload, meta, range, attributes })
            }
            Some(_) => Err(lost()),
        }
    }

    async fn get_ranges(&self, location: &Location, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Location>>,
    ) -> BoxStream<'static, Result<Location>> {
        match self.fault(1) {
            None => self.inner.delete_stream(locations),
            Some(_) => stream::iter([Err(lost())]).boxed(),
        }
    }

    fn list(&self, prefix: Option<&Location>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.fault(1) {
            None => self.inner.list(prefix),
            Some(_) => stream::iter([Err(lost())]).boxed(),
        }
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Location>,
        offset: &Location,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.fault(1) {
            None => self.inner.list_with_offset(prefix, offset),
            Some(_) => stream::iter([Err(lost())]).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Location>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Location, to: &Location, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// A mirror of this object storage, on a machine of its own.
fn machine(dir: &Path, name: &str, objects: &Arc<Faulty>) -> PathBuf {
    let mirror = dir.join(name);
    fs::create_dir_all(&mirror).unwrap();
    let mirror = fs::canonicalize(mirror).unwrap();
    fs::write(mirror.join(MARKER), "{\"url\":\"memory://bucket/some/store\"}").unwrap();
    let remote =
        Remote::new(&mirror, "memory://bucket/some/store", objects.clone(), "some/store".into()).unwrap();
    REACHED.lock().unwrap().insert(mirror.clone(), Arc::new(remote));
    mirror
}

/// Logs of this system: one of so many records, of one actor.
fn log(dir: &Path, system: &str, actor: u64, records: u64) -> PathBuf {
    let path = dir.join(format!("{system}-{actor}.jsonl"));
    let line = |seq: u64| format!("{{\"actor\":\"{system}/{actor}\",\"seq\":{seq},\"kind\":\"local\"}}\n");
    fs::write(&path, (1..=records).map(line).collect::<String>()).unwrap();
    path
}

fn load_one(mirror: &Path, system: &str, log: &Path) -> std::result::Result<(), StoreError> {
    let mut store = Store::create(mirror)?;
    let sources = Sources::plan(&[log.display().to_string()]).unwrap();
    let mut options = LoadOptions::new(system);
    options.commit_rows = 10;
    load(&mut store, sources, &options, |_| ()).map(|_| ())
}

/// Events, missing ones and duplicates by system and actor.
type Counts = BTreeMap<(String, String), (u64, u64, u64)>;

/// What a machine sees that was never there before.
fn events(mirror: &Path) -> std::result::Result<Counts, StoreError> {
    let store = Store::open(mirror)?;
    let mut found = BTreeMap::new();
    for system in store.systems()? {
        for row in status(&store, Some(&system))? {
            let counts = row.counts;
            let numbers = (counts.events, counts.missing, counts.duplicates);
            found.insert((system.clone(), counts.actor), numbers);
        }
    }
    Ok(found)
}

/// Does something until it succeeds, as whoever commits does.
fn again<T>(mut work: impl FnMut() -> std::result::Result<T, StoreError>) -> T {
    let mut last = None;
    for _ in 0..200 {
        match work() {
            Ok(done) => return done,
            Err(error) => last = Some(error),
        }
    }
    panic!("{last:?}");
}

fn faults(seeds: Range<u64>) {
    let mut happened = [0; 4];
    for seed in seeds {
        let dir = tempfile::tempdir().unwrap();
        let objects = Faulty::new(seed, 80);
        let expected: BTreeMap<(String, String), u64> = [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
            .into_iter()
            .map(|(system, actor)| ((system.to_owned(), format!("{system}/{actor}")), 11 + seed % 17 + actor))
            .collect();
        std::thread::scope(|scope| {
            // Two machines, each of which writes one system.
            for system in ["a", "b"] {
                let (dir, expected, objects) = (dir.path(), &expected, &objects);
                scope.spawn(move || {
                    let mirror = machine(dir, system, objects);
                    for actor in 1..=2 {
                        let records = expected[&(system.to_owned(), format!("{system}/{actor}"))];
                        let log = log(dir, system, actor, records);
                        again(|| load_one(&mirror, system, &log));
                    }
                    again(|| {
                        let mut writer = Store::open(&mirror)?.events_writer()?;
                        merge(&mut writer, SmallFiles { bytes: 1 << 20, count: 3 })
                    });
                });
            }
        });
        for (sum, count) in happened.iter_mut().zip(&objects.happened) {
            *sum += count.load(Ordering::Relaxed);
        }
        let found = again(|| events(&machine(dir.path(), "reader", &objects)));
        let found: BTreeMap<_, _> =
            found.into_iter().map(|(key, (events, missing, _))| (key, (events, missing))).collect();
        let wanted = expected.into_iter().map(|(key, records)| (key, (records, 0))).collect();
        assert_eq!(found, wanted, "seed {seed}");
        REACHED.lock().unwrap().retain(|mirror, _| !mirror.starts_with(dir.path()));
    }
    assert!(happened.iter().all(|count| *count > 0), "{happened:?}");
}

#[test]
fn nothing_is_lost_or_doubled_whatever_fails() {
    faults(0..10);
}

/// `cargo test -p demi-store --release -- --ignored a_thousand`
#[test]
#[ignore = "takes minutes"]
fn a_thousand_runs_lose_and_double_nothing() {
    faults(0..1000);
}

#[test]
fn what_one_machine_writes_another_reads_and_adds_to() {
    let dir = tempfile::tempdir().unwrap();
    let objects = Faulty::new(1, 0);
    let (one, two) = (machine(dir.path(), "one", &objects), machine(dir.path(), "two", &objects));
    assert!(matches!(Store::open(&one), Err(StoreError::NoStore { .. })));
    load_one(&one, "s", &log(dir.path(), "s", 1, 25)).unwrap();
    load_one(&two, "s", &log(dir.path(), "s", 2, 7)).unwrap();
    // What was loaded on one machine is known on the other.
    load_one(&two, "s", &log(dir.path(), "s", 1, 30)).unwrap();
    for mirror in [&one, &two, &machine(dir.path(), "three", &objects)] {
        let found: Vec<u64> = events(mirror).unwrap().into_values().map(|(events, ..)| events).collect();
        assert_eq!(found, [30, 7], "{}", mirror.display());
    }
    // Everything is also there, and nothing else.
    let names = |mirror: &Path| {
        let mut names = Vec::new();
        let mut folders = vec![mirror.join("events")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    names.push(path.strip_prefix(mirror).unwrap().display().to_string());
                }
            }
        }
        names.sort();
        names
    };
    let remote = Remote::of(&one).unwrap().unwrap();
    let listed = remote
        .runtime
        .block_on(objects.inner.list(Some(&"some/store/events".into())).try_collect::<Vec<_>>())
        .unwrap();
    let mut listed: Vec<String> = listed
        .iter()
        .map(|meta| meta.location.to_string().trim_start_matches("some/store/").to_owned())
        .collect();
    listed.sort();
    assert_eq!(names(&one), listed);
    // What is merged and removed is removed there.
    let mut writer = Store::open(&one).unwrap().events_writer().unwrap();
    merge(&mut writer, SmallFiles { bytes: 1 << 20, count: 2 }).unwrap();
    vacuum(&mut writer, Duration::ZERO).unwrap();
    let left = remote
        .runtime
        .block_on(objects.inner.list(Some(&"some/store/events".into())).try_collect::<Vec<_>>())
        .unwrap();
    assert!(left.iter().filter(|meta| meta.location.as_ref().ends_with(".parquet")).count() < 4, "{left:?}");
    assert_eq!(events(&two).unwrap().into_values().map(|(events, ..)| events).collect::<Vec<_>>(), [30, 7]);
    // A mirror of another store than it was, or of one that was restored, is no mirror.
    let other = Faulty::new(2, 0);
    load_one(&machine(dir.path(), "four", &other), "s", &log(dir.path(), "s", 9, 3)).unwrap();
    machine(dir.path(), "two", &other);
    let error = Store::open(&two).unwrap_err().to_string();
    assert!(error.contains("remove the mirror") && error.contains("two"), "{error}");
}

#[test]
fn storage_that_gives_a_name_twice_is_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let careless = Arc::new(Faulty { careless: true, ..Arc::into_inner(Faulty::new(3, 0)).unwrap() });
    let mirror = machine(dir.path(), "one", &careless);
    let error = Store::create(&mirror).unwrap_err().to_string();
    assert!(error.contains("lose each other's events"), "{error}");
    let remote = Remote::of(&mirror).unwrap().unwrap();
    assert_eq!(remote.runtime.block_on(careless.inner.list(None).count()), 0);
}

#[test]
fn a_name_beside_the_tables_is_taken_by_one_whatever_answers_are_lost() {
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..3 {
        let objects = Faulty::new(seed, 200);
        let of = |name: &str| {
            let mirror = machine(dir.path(), &format!("{name}-{seed}"), &objects);
            RemoteObjects::of(&mirror, "kept").unwrap().unwrap()
        };
        let (one, two) = (of("one"), of("two"));
        for n in 0..8 {
            let name = format!("journal/{n}");
            let take = |who: &RemoteObjects, text: &[u8]| {
                // Whoever is not answered asks what is there.
                (0..50).find_map(|_| who.create(&name, text).ok()).unwrap()
            };
            let (first, second) = (take(&one, b"one"), take(&two, b"two"));
            assert!(first && !second, "{seed}, {n}: {first} {second}");
            let read = two.read_each(&[name.clone(), "journal/none".to_owned()]).unwrap();
            assert_eq!(read, [Some(b"one".to_vec()), None]);
        }
        assert_eq!(two.list("journal").unwrap().len(), 8);
        assert_eq!(two.list("none").unwrap().len(), 0);
        two.replace("journal/3", b"three").unwrap();
        assert_eq!(one.read_each(&["journal/3".to_owned()]).unwrap(), [Some(b"three".to_vec())]);
        one.remove_each(&["journal/3".to_owned(), "journal/none".to_owned()]).unwrap();
        assert_eq!(two.read_each(&["journal/3".to_owned()]).unwrap(), [None]);

        // A folder of one machine is on another what it is there.
        let files = [("data/x/a.txt", "some"), ("data/x/b/c ü.txt", "more"), ("data/y", "other")];
        for (name, text) in files {
            let path = one.folder().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::write(one.folder().join("data/x/.demi-new-1"), "in the making").unwrap();
        one.publish("data/x").unwrap();
        one.publish("data/y").unwrap();
        let names: Vec<String> = two.list("data").unwrap().into_keys().collect();
        assert_eq!(names, ["x/a.txt", "x/b/c ü.txt", "y"]);
        for name in ["data/x", "data/y", "data/none"] {
            two.bring(name).unwrap();
        }
        for (name, text) in files {
            assert_eq!(fs::read_to_string(two.folder().join(name)).unwrap(), text);
        }
        assert!(!two.folder().join("data/none").exists());
        // What changed is brought anew, and what did not is written once.
        fs::write(one.folder().join("data/x/a.txt"), "longer").unwrap();
        one.publish("data/x").unwrap();
        two.bring("data/x").unwrap();
        assert_eq!(fs::read_to_string(two.folder().join("data/x/a.txt")).unwrap(), "longer");
    }
    // A folder by itself has none.
    assert!(RemoteObjects::of(&dir.path().join("folder"), "kept").unwrap().is_none());
    // One that gives a name twice gives none.
    let careless = Arc::new(Faulty { careless: true, ..Arc::into_inner(Faulty::new(3, 0)).unwrap() });
    let mirror = machine(dir.path(), "careless", &careless);
    let error = RemoteObjects::of(&mirror, "kept").unwrap().unwrap().create("a", b"a").unwrap_err();
    assert!(error.to_string().contains("lose each other's events"), "{error}");
}

#[test]
fn a_place_is_a_folder_or_an_address() {
    for path in ["store", "/a/b", "a:b", "./s3:/x"] {
        assert_eq!(folder_of(Path::new(path)).unwrap(), Path::new(path));
    }
    assert_eq!(folder_of(Path::new("file:///a/b%20c")).unwrap(), Path::new("/a/b c"));
    for (url, says) in [
        ("http://x/y", "stores are folders"),
        ("s3:///y", "bucket"),
        ("s3://key:secret@bucket/y", "credentials come from the environment"),
        ("s3://bucket/y?sig=secret", "credentials come from the environment"),
    ] {
        let error = folder_of(Path::new(url)).unwrap_err().to_string();
        let left_out = !cfg!(feature = "clouds") && error.contains("clouds");
        assert!(error.contains(says) || (left_out && url.starts_with("s3")), "{url}: {error}");
    }
}
