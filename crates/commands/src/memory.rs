//! A limit on the memory of the process, looked at while it works.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use demi_replay::weight;

/// An amount of memory in bytes, as `512MiB` or `4GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount(pub u64);

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("'{text}' is no amount of memory, such as 512MiB or 4GiB");
        let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40), ("", 0)];
        let (number, shift) = units
            .iter()
            .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)))
            .ok_or_else(bad)?;
        let number: u64 = number.trim().parse().map_err(|_| bad())?;
        number.checked_mul(1 << shift).filter(|bytes| *bytes > 0).map(Amount).ok_or_else(bad)
    }
}

/// Looks at the resident memory until it is dropped.
pub struct Limit {
    over: Arc<AtomicBool>,
    reached: Arc<AtomicBool>,
}

impl Limit {
    /// Calls `stop` once when the process has nearly as much as this resident. Where the system does not tell how much that is,
    /// never.
    pub fn new(most: Amount, stop: impl FnOnce() + Send + 'static) -> Limit {
        let (over, reached) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (end, full) = (Arc::clone(&over), Arc::clone(&reached));
        // What is under way takes more until it ends.
        let most = most.0 - most.0 / 8;
        // What could be made again may take half of it.
        weight::allow(most / 2);
        let _ = std::thread::Builder::new().name("memory".to_owned()).spawn(move || {
            while !end.load(Ordering::Relaxed) {
                if resident().is_some_and(|bytes| bytes > most) {
                    full.store(true, Ordering::Relaxed);
                    return stop();
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        Limit { over, reached }
    }

    /// Whether the limit was reached.
    pub fn reached(&self) -> bool {
        self.reached.load(Ordering::Relaxed)
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// Resident memory of this process in bytes.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read() {
        assert_eq!("4GiB".parse(), Ok(Amount(4 << 30)));
        assert_eq!("512MiB".parse(), Ok(Amount(512 << 20)));
        assert_eq!("7".parse(), Ok(Amount(7)));
        for bad in ["", "0", "4GB", "-1MiB", "99999999999TiB", "lots"] {
            assert!(bad.parse::<Amount>().is_err(), "{bad}");
        }
    }
}
