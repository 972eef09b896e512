//! Any bytes as the body of a spool frame; and every batch comes back as it was.
#![no_main]

use demi_daemon::codec::{decode, encode};
use demi_daemon::{Batch, Content, Origin};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, u64, Vec<u8>)| {
    let (stream, offset, bytes) = input;
    if let Ok(decoded) = decode(bytes.clone()) {
        let _ = decoded.content.count();
    }
    let batch = Batch {
        origin: Origin { source: "s".into(), system: "y".into() },
        stream: stream.into(),
        content: Content::Lines { offset, line: 1, bytes: bytes.clone().into() },
        positions: Vec::new(),
    };
    let back = decode(encode(&batch)).expect("what was encoded");
    assert_eq!(back, batch);
});
