#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use super::*;

/// A file of so many bytes with digests beside it.
fn sealed(folder: &Path, size: usize) -> (PathBuf, Vec<u8>) {
    let bytes: Vec<u8> = (0..size).map(|at| (at * 31 % 251) as u8).collect();
    let path = folder.join("a.bin");
    let mut out = SealedWriter::new(File::create(&path).unwrap());
    bytes.chunks(100_000).for_each(|piece| out.write_all(piece).unwrap());
    out.finish(&path).unwrap();
    (path, bytes)
}

#[test]
fn what_is_read_anywhere_is_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    for size in [0, 10, STRETCH, 2 * STRETCH + 77] {
        let (path, bytes) = sealed(folder.path(), size);
        let file = SealedFile::beside(&path).unwrap();
        file.verify().unwrap();
        let opened = file.open().unwrap();
        assert_eq!(opened.len(), size as u64);
        for (start, length) in [
            (0, 4),
            (STRETCH - 3, 6),
            (STRETCH, STRETCH),
            (5, 2 * STRETCH),
            (size, 0),
            (size - size.min(9), 9),
        ] {
            let read = opened.read(start as u64, length);
            match bytes.get(start..start + length) {
                Some(expected) => assert_eq!(&read.unwrap()[..], expected),
                None => assert!(read.is_err(), "{start} {length}"),
            }
        }
        let mut rest = Vec::new();
        opened.from(3.min(size as u64)).read_to_end(&mut rest).unwrap();
        assert_eq!(rest, bytes[3.min(size)..]);
    }
}

#[test]
fn each_change_is_refused_where_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (path, bytes) = sealed(folder.path(), 2 * STRETCH + 77);
    for at in [0, STRETCH - 1, STRETCH, 2 * STRETCH + 76] {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        std::fs::write(&path, changed).unwrap();
        let file = SealedFile::beside(&path).unwrap();
        assert_eq!(file.verify().unwrap_err().to_string(), DAMAGED);
        let opened = file.open().unwrap();
        for start in [0, STRETCH, 2 * STRETCH] {
            assert_eq!(
                opened.read(start as u64, 10).is_err(),
                start / STRETCH == at / STRETCH,
                "{at} {start}"
            );
        }
    }
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(SealedFile::beside(&path).unwrap().verify().unwrap_err().to_string(), DAMAGED);
    std::fs::write(&path, &bytes[..STRETCH]).unwrap();
    assert_eq!(SealedFile::beside(&path).unwrap_err().to_string(), DAMAGED);
    std::fs::write(&path, &bytes).unwrap();
    std::fs::write(folder.path().join("a.sum"), b"x").unwrap();
    assert!(SealedFile::beside(&path).is_err());
    // Without digests it is taken as it is.
    std::fs::remove_file(folder.path().join("a.sum")).unwrap();
    SealedFile::beside(&path).unwrap().verify().unwrap();
}

#[test]
fn a_reader_that_panics_is_an_error_and_the_end() {
    let rows = (0..5).map(|n| if n < 2 { Ok::<_, ParquetError>(n) } else { std::panic::panic_any("page") });
    let mut rows = Contained::from(rows);
    assert_eq!((rows.next().unwrap().unwrap(), rows.next().unwrap().unwrap()), (0, 1));
    assert!(rows.next().unwrap().unwrap_err().to_string().contains("it cannot be read: page"));
    assert!(rows.next().is_none());
}
