//! Any bytes as a ledger of attempts: it is opened or refused, what is noted then is found again, and what was read
//! before is still there.
#![no_main]

use demi_minimize::ledger::{Attempt, Ledger};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&[u8], bool, u128, u64)| {
    let (bytes, whole, key, executed) = input;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger");
    // Half of the inputs get past the first bytes.
    let mut content = if whole { b"demi-ledger/1\n\0\0".to_vec() } else { Vec::new() };
    content.extend_from_slice(bytes);
    std::fs::write(&path, &content).expect("a file");
    let Ok(ledger) = Ledger::open(&path, b"model") else {
        assert_eq!(std::fs::read(&path).expect("the file"), content, "what is refused is left alone");
        return;
    };
    let before = ledger.known();
    let attempt = Attempt { violates: executed % 2 == 1, executed, digest: key };
    let new = ledger.attempt(key).is_none();
    ledger.note_attempt(key, attempt);
    drop(ledger);
    let ledger = Ledger::open(&path, b"model").expect("what was written");
    assert_eq!(ledger.known(), (before.0 + usize::from(new), before.1));
    assert!(!new || ledger.attempt(key) == Some(attempt));
});
