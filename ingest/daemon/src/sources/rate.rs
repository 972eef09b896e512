//! Slowing a source down to a rate.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// So many bytes a second on average, with a second's worth at once. Shared by all connections of a source.
#[derive(Debug)]
pub struct Rate {
    bytes_per_sec: Option<u64>,
    /// When what was taken so far is paid for.
    paid: Mutex<Option<Instant>>,
}

impl Rate {
    /// A rate; `None` is as fast as it goes.
    #[must_use]
    pub fn new(bytes_per_sec: Option<u64>) -> Self {
        Rate { bytes_per_sec: bytes_per_sec.filter(|n| *n > 0), paid: Mutex::new(None) }
    }

    /// Waits until `bytes` more may be taken.
    pub async fn take(&self, bytes: usize) {
        if let Some(wait) = self.wait(bytes, Instant::now()) {
            tokio::time::sleep(wait).await;
        }
    }

    fn wait(&self, bytes: usize, now: Instant) -> Option<Duration> {
        let cost = Duration::from_secs_f64(bytes as f64 / self.bytes_per_sec? as f64);
        let mut paid = self.paid.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let from = paid.map_or(now, |p| p.max(now));
        *paid = Some(from + cost);
        let wait = from.saturating_duration_since(now).saturating_sub(Duration::from_secs(1));
        (!wait.is_zero()).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_free_then_it_is_slowed_down() {
        let rate = Rate::new(Some(100));
        let now = Instant::now();
        assert_eq!(rate.wait(100, now), None);
        assert_eq!(rate.wait(200, now), None);
        assert_eq!(rate.wait(1, now), Some(Duration::from_secs(2)));
        assert_eq!(rate.wait(1, now + Duration::from_secs(10)), None);
        assert_eq!(Rate::new(Some(0)).wait(1 << 40, now), None);
    }
}
