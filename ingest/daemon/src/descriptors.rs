//! How many files may be open: the system's limit, and who gets what of it.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors of listeners, connections, the spool and the store, which followed files never take; a quarter of a small limit.
const RESERVED: u64 = 512;
/// What a source of files may have open in any case.
const LEAST: u64 = 16;
/// What it has open at most: more are read in turn.
const MOST: u64 = 65_536;

/// Raises the soft limit of open files as far as it may be; gives back what it is then.
pub(super) fn raise() -> u64 {
    let now = getrlimit(Resource::Nofile);
    let soft = now.current.unwrap_or(u64::MAX);
    let hard = now.maximum.unwrap_or(u64::MAX);
    if soft < hard
        && setrlimit(Resource::Nofile, Rlimit { current: now.maximum, maximum: now.maximum }).is_ok()
    {
        tracing::info!(before = soft, now = hard, "raised the limit of open files");
        return hard;
    }
    soft
}

/// How many files each of so many sources may have open under a limit.
pub(super) fn share(limit: u64, sources: usize) -> usize {
    let left = limit - RESERVED.min(limit / 4);
    let each = (left / sources.max(1) as u64).clamp(LEAST, MOST);
    usize::try_from(each).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_keep_theirs() {
        assert_eq!(share(4096, 1), 4096 - 512);
        assert_eq!(share(1024, 4), 192);
        assert_eq!(share(256, 1), 192);
        assert_eq!(share(64, 100), 16);
        assert_eq!(share(u64::MAX, 1), 65_536);
    }

    #[test]
    fn a_limit_is_raised_once() {
        let limit = raise();
        assert!(limit >= 64 && raise() == limit);
    }
}
