//! Any bytes over TCP, in pieces of any size: whole lines are handed over as they came, each once, and counted.
#![no_main]

use demi_daemon::sources::tcp::{Framing, Piece};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, bool, Vec<Vec<u8>>)| {
    let (limit, token, pieces) = input;
    let limit = usize::from(limit) + 1;
    let mut framing = Framing::new(limit, token);
    let all: Vec<u8> = pieces.concat();
    let mut out: Vec<u8> = Vec::new();
    let mut closed = false;
    'all: for piece in &pieces {
        framing.push(piece);
        loop {
            match framing.next() {
                Ok(Some(Piece::Token(shown))) => {
                    assert!(out.is_empty());
                    out.extend_from_slice(&shown);
                }
                Ok(Some(Piece::Lines(lines))) => {
                    assert_eq!(lines.last(), Some(&b'\n'));
                    out.extend_from_slice(&lines);
                }
                Ok(None) => break,
                Err(_) => {
                    closed = true;
                    break 'all;
                }
            }
        }
    }
    assert!(all.starts_with(&out));
    if !closed {
        // What is held back is the unfinished line.
        assert!(!all[out.len()..].contains(&b'\n') && framing.pending() == all.len() - out.len());
    }
});
