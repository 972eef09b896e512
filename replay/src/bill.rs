//! Steps that processes make for a model. They cost far more than handlers in memory, so a model tells of each, and whoever has a budget pays for
//! those that are new to it.
//!
//! What a process answered is remembered by the model, and which thread asks first is up to chance. So a bill does not count what
//! processes did, but what they had to do if nobody else had asked: that depends on nothing but the work itself.

use std::cell::RefCell;
use std::sync::Arc;

use rustc_hash::FxHashSet;

/// What a model tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// What the steps come to: whoever has it need not make them again.
    pub key: u128,
    /// How many steps it takes.
    pub steps: u64,
}

thread_local! {
    static TOLD: RefCell<Option<Vec<Item>>> = const { RefCell::new(None) };
}

/// Tells that processes make so many steps to come to `key`. Models call it whether they remember the answer or not.
pub fn tell(key: u128, steps: u64) {
    TOLD.with_borrow_mut(|told| {
        if let Some(told) = told {
            told.push(Item { key, steps });
        }
    });
}

/// Does some work on this thread, and gives with its result what was told in it.
pub fn during<R>(work: impl FnOnce() -> R) -> (R, Vec<Item>) {
    /// Puts back what stood there, also where the work panics.
    struct Restore(Option<Vec<Item>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            TOLD.set(self.0.take());
        }
    }
    let restore = Restore(TOLD.replace(Some(Vec::new())));
    let result = work();
    let told = TOLD.take().unwrap_or_default();
    drop(restore);
    (result, told)
}

/// The account of one line of work.
#[derive(Clone, Debug, Default)]
pub struct Bill {
    /// What was paid before the line of work began.
    earlier: Arc<FxHashSet<u128>>,
    paid: FxHashSet<u128>,
}

impl Bill {
    /// The account of a line of work that begins with what was paid before.
    #[must_use]
    pub fn after(earlier: &Arc<FxHashSet<u128>>) -> Bill {
        Bill { earlier: Arc::clone(earlier), paid: FxHashSet::default() }
    }

    /// Takes in what was told, and gives how many steps are to be paid.
    pub fn pay(&mut self, told: &[Item]) -> u64 {
        let mut steps: u64 = 0;
        for item in told {
            if !self.earlier.contains(&item.key) && self.paid.insert(item.key) {
                steps = steps.saturating_add(item.steps);
            }
        }
        steps
    }

    /// Everything that was paid so far.
    #[must_use]
    pub fn paid(&self) -> Arc<FxHashSet<u128>> {
        if self.paid.is_empty() {
            return Arc::clone(&self.earlier);
        }
        Arc::new(self.earlier.iter().chain(&self.paid).copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_new_is_paid() {
        tell(1, 1);
        let ((), told) = during(|| {
            tell(1, 1);
            let ((), inner) = during(|| tell(2, 7));
            assert_eq!(inner, [Item { key: 2, steps: 7 }]);
            tell(3, 2);
            tell(1, 1);
        });
        let failed = std::panic::catch_unwind(|| during(|| panic!("in the middle")));
        assert!(failed.is_err() && TOLD.with_borrow(Option::is_none), "nobody listens any more");
        assert_eq!(told.len(), 3, "nothing of before, and nothing of what is within");
        let mut bill = Bill::default();
        assert_eq!((bill.pay(&told), bill.pay(&told)), (3, 0));
        let mut other = Bill::after(&bill.paid());
        assert_eq!(other.pay(&[Item { key: 3, steps: 2 }, Item { key: 4, steps: 1 }]), 1);
    }
}
