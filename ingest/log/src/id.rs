//! Names of messages.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The name of one message (or timer), unique among all processes: put it into the message, and give it to
/// [`receive!`](crate::receive) where the message arrives.
///
/// As text it is `PROCESS-NUMBER` in hexadecimal digits; [`FromStr`] reads it back on the other side of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MsgId {
    process: u64,
    number: u64,
}

/// Random for each process: the keys that the standard library draws for hash maps.
fn process() -> u64 {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    *PROCESS.get_or_init(|| {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        hasher.finish()
    })
}

impl MsgId {
    /// The next name.
    #[must_use]
    pub fn next() -> MsgId {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        MsgId { process: process(), number: NUMBER.fetch_add(1, Ordering::Relaxed) }
    }
}

impl fmt::Display for MsgId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [b'-'; 33];
        for (i, slot) in text[..16].iter_mut().enumerate() {
            *slot = DIGITS[(self.process >> (60 - 4 * i)) as usize & 15];
        }
        let digits = (16 - self.number.leading_zeros() as usize / 4).max(1);
        for (i, slot) in text[17..17 + digits].iter_mut().enumerate() {
            *slot = DIGITS[(self.number >> (4 * (digits - 1 - i))) as usize & 15];
        }
        f.write_str(std::str::from_utf8(&text[..17 + digits]).unwrap_or_default())
    }
}

/// The text is no name of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message id is two hexadecimal numbers joined by '-'")]
pub struct IdError;

impl FromStr for MsgId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let (process, number) = text.split_once('-').ok_or(IdError)?;
        let read = |part: &str| {
            let digits = (1..=16).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_hexdigit());
            digits.then(|| u64::from_str_radix(part, 16).ok()).flatten().ok_or(IdError)
        };
        Ok(MsgId { process: read(process)?, number: read(number)? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn text_is_read_back(process in any::<u64>(), number in any::<u64>(), shift in 0_u32..64) {
            let id = MsgId { process, number: number >> shift };
            prop_assert_eq!(id.to_string(), format!("{:016x}-{:x}", process, number >> shift));
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }

        #[test]
        fn other_text_is_refused(text in "[0-9a-f+-]{0,40}") {
            if let Ok(id) = text.parse::<MsgId>() {
                prop_assert_eq!(id.to_string().parse(), Ok(id));
            }
        }
    }

    #[test]
    fn no_two_are_alike() {
        assert_ne!(MsgId::next(), MsgId::next());
        assert_eq!("-1".parse::<MsgId>(), Err(IdError));
        assert_eq!("+1-1".parse::<MsgId>(), Err(IdError));
    }
}
