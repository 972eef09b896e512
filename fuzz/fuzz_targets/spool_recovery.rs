//! Any bytes as the segments of a spool: it opens, reads what is whole, and takes new frames after it.
#![no_main]

use demi_daemon::spool::{Body, Folder, Options, Spool, SpoolError};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, Vec<u8>, Vec<u8>, Vec<(u8, u16, u8)>)| {
    let (cut, noise, second, flips) = input;
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path();
    let options = Options { segment_bytes: 200, max_bytes: 1 << 20 };
    let (mut spool, _) = Spool::open(Folder::at(path), options).expect("a new spool");
    for n in 0..4u8 {
        spool.write(&[Body::new(vec![n; 20 + usize::from(n)]).expect("short")]).expect("room");
    }
    spool.rest();
    drop(spool);
    // Noise over the end of the last segment, and a segment of noise behind it.
    let mut names: Vec<_> = std::fs::read_dir(path)
        .expect("readable")
        .map(|e| e.expect("readable").path())
        .filter(|p| p.extension().is_some_and(|e| e == "spool"))
        .collect();
    names.sort();
    let last = names.last().expect("a segment");
    let mut bytes = std::fs::read(last).expect("readable");
    bytes.truncate(bytes.len().saturating_sub(usize::from(cut)));
    bytes.extend_from_slice(&noise);
    std::fs::write(last, bytes).expect("writable");
    std::fs::write(path.join("segment-00000000000000ff.spool"), second).expect("writable");
    // Bits anywhere: in segments, marks, the identity.
    let mut all: Vec<_> = std::fs::read_dir(path).expect("readable").map(|e| e.expect("readable").path()).collect();
    all.sort();
    for (file, at, bits) in flips {
        let file = &all[usize::from(file) % all.len()];
        let mut bytes = std::fs::read(file).expect("readable");
        let len = bytes.len().max(1);
        if let Some(byte) = bytes.get_mut(usize::from(at) % len) {
            *byte ^= bits;
        }
        std::fs::write(file, bytes).expect("writable");
    }
    let (mut spool, found) = match Spool::open(Folder::at(path), options) {
        Ok(opened) => opened,
        // Neither the identity nor a segment says which spool it is.
        Err(SpoolError::NoSpool { .. }) => return,
        Err(error) => panic!("opens whatever is there: {error}"),
    };
    let mut reader = spool.reader(0);
    let mut count = 0;
    while let Some(frame) = reader.next_frame().expect("what was found whole can be read") {
        assert!(frame.lsn <= found.last_lsn);
        count += 1;
    }
    assert_eq!(count, found.frames);
    let written = spool.write(&[Body::new(b"new".to_vec()).expect("short")]).expect("room");
    assert_eq!(written.first_lsn, found.last_lsn + 1);
    assert_eq!(reader.next_frame().expect("readable").expect("there").body, b"new");
});
