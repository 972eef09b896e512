//! Lines of any bytes, at any limit and buffer size, are those of a plain split.
#![no_main]

use std::io::BufReader;

use demi_formats::lines::{LineReader, Next};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, u8, u8, &[u8])| {
    let (limit, keep, capacity, data) = (usize::from(input.0) + 1, usize::from(input.1), input.2, input.3);
    let stream = BufReader::with_capacity(usize::from(capacity) + 1, data);
    let mut reader = LineReader::new(stream, limit, keep);
    let mut expected = data.split(|b| *b == b'\n');
    let (mut offset, mut out) = (0, Vec::new());
    loop {
        out.clear();
        match reader.next_line(&mut out) {
            Next::Line(line) => {
                let whole = expected.next().expect("no more lines than there are");
                assert_eq!((line.offset, line.length), (offset, whole.len() as u64));
                assert_eq!(line.overlong.is_some(), whole.len() > limit);
                assert!(whole.starts_with(&out) && out.len() <= limit.max(keep));
                offset += line.length + 1;
            }
            Next::End => break,
            Next::Failed { error, .. } => panic!("{error}"),
        }
    }
    assert!(expected.next().is_none_or(<[u8]>::is_empty) && expected.next().is_none());
});
