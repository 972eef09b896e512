//! Any bytes as a packed request body: unpacked within the limit, or refused.
#![no_main]

use demi_daemon::sources::body::{Packed, inflate};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (bool, u16, &[u8])| {
    let (gzip, limit, bytes) = input;
    let how = if gzip { Packed::Gzip } else { Packed::Zstd };
    if let Ok(body) = inflate(bytes, usize::from(limit), how) {
        assert!(body.len() <= usize::from(limit));
    }
});
