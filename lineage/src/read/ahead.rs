//! Making the items of an iterator in a thread of its own, a few ahead of who takes them.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

/// Items that wait to be taken.
const WAITING: usize = 2;

/// The items of an iterator, in its order. A panic of the iterator is one here.
pub(crate) struct Ahead<T> {
    items: Receiver<T>,
    thread: Option<JoinHandle<()>>,
}

/// Begins to make the items. Once nobody takes them any more no further one is begun.
pub(crate) fn ahead<T: Send + 'static>(items: impl Iterator<Item = T> + Send + 'static) -> Ahead<T> {
    let (to, from) = sync_channel(WAITING);
    let thread = std::thread::spawn(move || {
        for item in items {
            if to.send(item).is_err() {
                return;
            }
        }
    });
    Ahead { items: from, thread: Some(thread) }
}

impl<T> Iterator for Ahead<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        if let Ok(item) = self.items.recv() {
            return Some(item);
        }
        // It has ended, or it was cut short by a panic, which must not look like an end.
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
            std::panic::resume_unwind(panic);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_in_their_order_and_a_panic_is_no_end() {
        assert_eq!(ahead(0..1000).collect::<Vec<_>>(), (0..1000).collect::<Vec<_>>());
        let mut broken = ahead((0..5).map(|n| if n < 3 { n } else { std::panic::panic_any("no more") }));
        assert_eq!(broken.by_ref().take(3).collect::<Vec<_>>(), [0, 1, 2]);
        let end = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || broken.next()));
        assert!(end.is_err());
    }

    #[test]
    fn what_nobody_takes_is_not_made() {
        let (told, made) = sync_channel(100);
        let mut some = ahead((0..100).map(move |n| told.send(n).map(|()| n)));
        assert_eq!(some.next(), Some(Ok(0)));
        drop(some);
        assert!(made.iter().count() < 6, "the thread goes on");
    }
}
