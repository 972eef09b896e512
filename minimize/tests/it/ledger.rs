//! The ledger reads any file: what it cannot use it refuses and leaves alone, and what it notes is found again.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use demi_minimize::ledger::{Attempt, Ledger};
use proptest::prelude::*;

const MAGIC: &[u8; 16] = b"demi-ledger/1\n\0\0";

/// Parts of a file: bytes without meaning, and heads of records with lengths that may reach beyond the end.
fn part() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        (any::<u32>(), 0..4u8, any::<u128>()).prop_map(|(length, sort, key)| {
            let mut head = (length % 60).to_le_bytes().to_vec();
            head.push(sort);
            head.extend_from_slice(&key.to_le_bytes());
            head
        }),
        Just(vec![0xff; 21]),
    ]
}

proptest! {
    #[test]
    fn any_bytes(
        parts in proptest::collection::vec(part(), 0..6),
        whole: bool,
        key: u128,
        executed: u64,
    ) {
        let number = key as u64 ^ executed;
        let path = std::env::temp_dir().join(format!("demi-ledger-any-{}-{number}", std::process::id()));
        let mut content = if whole { MAGIC.to_vec() } else { Vec::new() };
        content.extend(parts.concat());
        std::fs::write(&path, &content).unwrap();
        match Ledger::open(&path, b"model") {
            Err(_) => prop_assert_eq!(std::fs::read(&path).unwrap(), content),
            Ok(ledger) => {
                let before = ledger.known();
                let attempt = Attempt { violates: executed % 2 == 1, executed, digest: key };
                let new = ledger.attempt(key).is_none();
                ledger.note_attempt(key, attempt);
                drop(ledger);
                let ledger = Ledger::open(&path, b"model").unwrap();
                prop_assert_eq!(ledger.known(), (before.0 + usize::from(new), before.1));
                prop_assert!(!new || ledger.attempt(key) == Some(attempt));
            }
        }
        std::fs::remove_file(&path).unwrap();
    }
}
