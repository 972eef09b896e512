//! The hash of happens-before: 128 bits, so that two graphs which differ have different numbers for all that a search can see.

use std::hash::{BuildHasherDefault, Hasher};

const K1: u128 = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;
const K2: u128 = 0xD6E8_FEB8_6659_FD93_A3B1_9535_4A39_B70D;

/// Mixes two numbers; the order counts.
#[inline]
pub(crate) fn mix(a: u128, b: u128) -> u128 {
    let x = (a.wrapping_add(K1) ^ b.rotate_left(61)).wrapping_mul(K2);
    let x = (x ^ (x >> 67)).wrapping_mul(K1);
    x ^ (x >> 59)
}

/// A number of a text that is the same in every run and on every machine.
pub(crate) fn of_text(text: &str) -> u128 {
    text.bytes().fold(K1, |hash, byte| mix(hash, u128::from(byte)))
}

/// Takes a hash as it is.
#[derive(Default)]
pub(crate) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }
}

/// A map whose keys are hashes already.
pub(crate) type HashKeyed<V> = std::collections::HashMap<u128, V, BuildHasherDefault<AsItIs>>;
/// A set of hashes.
pub(crate) type HashSet = std::collections::HashSet<u128, BuildHasherDefault<AsItIs>>;
