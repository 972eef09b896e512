//! Further edges, any number an event: messages to several receivers, and what only vector clocks, parents, links or operations of threads tell.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use super::seal::Seal;
use crate::error::LineageError;
use crate::matching::{Evidence, Reason};

/// The event it is looked up by, the event at the other end, and why (see [`code`]).
pub(crate) type Link = (u32, u32, u32);

/// Links, sorted by the event that they are looked up by.
type LinkList = Vec<Link>;

/// Bytes of a link in the file, which has each twice.
const SIZE: usize = 12;

/// The bit of an edge that could be otherwise.
const UNCERTAIN: u32 = 1 << 8;

/// How a reason is stored.
pub(crate) fn code(how: Evidence) -> u32 {
    let reason = match how.reason {
        Reason::Clock => 1,
        Reason::Parent => 2,
        Reason::Link => 3,
        Reason::Inferred => 4,
        Reason::Operation => 5,
        _ => 0,
    };
    if how.certain { reason } else { reason | UNCERTAIN }
}

fn how(code: u32) -> Evidence {
    let reason = match code & !UNCERTAIN {
        1 => Reason::Clock,
        2 => Reason::Parent,
        3 => Reason::Link,
        4 => Reason::Inferred,
        5 => Reason::Operation,
        _ => Reason::MessageId,
    };
    Evidence { reason, certain: code & UNCERTAIN == 0 }
}

/// The pairs, read whole when first asked for.
pub(crate) struct Links {
    path: PathBuf,
    count: u32,
    sealed: bool,
    pairs: OnceCell<(LinkList, LinkList)>,
}

impl Links {
    /// The file of `count` pairs; one that is `sealed` has a file of digests beside it.
    pub(crate) fn open(path: &Path, count: u32, sealed: bool) -> Links {
        Links { path: path.to_owned(), count, sealed, pairs: OnceCell::new() }
    }

    fn pairs(&self) -> Result<&(LinkList, LinkList), LineageError> {
        if let Some(pairs) = self.pairs.get() {
            return Ok(pairs);
        }
        let bytes = demi_common::regular::read(&self.path).map_err(LineageError::io(&self.path))?;
        if bytes.len() as u64 != u64::from(self.count) * (2 * SIZE) as u64 {
            let reason = format!(
                "{} bytes, where {} were to be",
                bytes.len(),
                u64::from(self.count) * (2 * SIZE) as u64
            );
            return Err(LineageError::Index { path: self.path.clone(), reason });
        }
        if self.sealed {
            Seal::open(&self.path, bytes.len() as u64)?.check(&self.path, 0, &bytes)?;
        }
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let all: LinkList = (0..bytes.len() / SIZE)
            .map(|i| i * SIZE)
            .map(|at| (number(at), number(at + 4), number(at + 8)))
            .collect();
        let (by_effect, by_cause) = all.split_at(self.count as usize);
        Ok(self.pairs.get_or_init(|| (by_effect.to_vec(), by_cause.to_vec())))
    }

    /// All pairs of a cause and its effect, sorted by cause.
    pub(crate) fn all(&self) -> Result<impl Iterator<Item = (u32, u32, Evidence)> + '_, LineageError> {
        Ok(self.pairs()?.1.iter().map(|&(cause, effect, code)| (cause, effect, how(code))))
    }

    /// The causes of an event, by further edges.
    pub(crate) fn causes(
        &self,
        event: u32,
    ) -> Result<impl Iterator<Item = (u32, Evidence)> + '_, LineageError> {
        Ok(of(&self.pairs()?.0, event))
    }

    /// The effects of an event, by further edges.
    pub(crate) fn effects(
        &self,
        event: u32,
    ) -> Result<impl Iterator<Item = (u32, Evidence)> + '_, LineageError> {
        Ok(of(&self.pairs()?.1, event))
    }
}

/// What stands beside `key` in pairs sorted by it.
pub(crate) fn of(pairs: &[Link], key: u32) -> impl Iterator<Item = (u32, Evidence)> + '_ {
    let from = pairs.partition_point(|p| p.0 < key);
    pairs[from..].iter().take_while(move |p| p.0 == key).map(|p| (p.1, how(p.2)))
}
