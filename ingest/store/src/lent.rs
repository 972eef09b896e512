//! Something that a thread of its own works on, and that is taken back when it is needed.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::StoreError;

type Work<T> = Box<dyn FnOnce(&mut T) -> Result<(), StoreError> + Send>;

/// A value that is here, or lent to the thread that works on it.
///
/// One piece of work is done at a time: whoever brings the next waits for the one before. An error of the work is told to
/// the next who asks for the value.
pub struct Lent<T> {
    here: Option<T>,
    to: SyncSender<(T, Work<T>)>,
    back: Receiver<(T, Result<(), StoreError>)>,
}

impl<T: Send + 'static> Lent<T> {
    /// Starts the thread, which ends when this is dropped.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn new(value: T, name: &str) -> Result<Self, StoreError> {
        let (to, from) = sync_channel::<(T, Work<T>)>(1);
        let (give, back) = sync_channel(1);
        let run = move || {
            for (mut value, work) in from {
                let result = work(&mut value);
                if give.send((value, result)).is_err() {
                    return;
                }
            }
        };
        let started = thread::Builder::new().name(name.to_owned()).spawn(run);
        started.map_err(|source| StoreError::Io {
            path: name.into(),
            action: "start this thread",
            source,
        })?;
        Ok(Lent { here: Some(value), to, back })
    }

    /// The value, when the work on it is done.
    ///
    /// # Errors
    /// That of the work.
    pub fn get(&mut self) -> Result<&mut T, StoreError> {
        if self.here.is_none() {
            let (value, result) = self.back.recv().map_err(|_| StoreError::WriterLost)?;
            self.here = Some(value);
            result?;
        }
        self.here.as_mut().ok_or(StoreError::WriterLost)
    }

    /// Has the work done on the thread, after waiting for the work before.
    ///
    /// # Errors
    /// That of the work before.
    pub fn work(
        &mut self,
        work: impl FnOnce(&mut T) -> Result<(), StoreError> + Send + 'static,
    ) -> Result<(), StoreError> {
        self.get()?;
        let value = self.here.take().ok_or(StoreError::WriterLost)?;
        self.to.send((value, Box::new(work))).map_err(|_| StoreError::WriterLost)
    }

    /// The value for good, when the work on it is done.
    ///
    /// # Errors
    /// That of the work.
    pub fn into_inner(mut self) -> Result<T, StoreError> {
        self.get()?;
        self.here.take().ok_or(StoreError::WriterLost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_in_order_and_errors_are_told_once() {
        let mut list = Lent::new(Vec::new(), "list").unwrap();
        for n in 0..100 {
            list.work(move |list| {
                list.push(n);
                Ok(())
            })
            .unwrap();
        }
        assert_eq!(*list.get().unwrap(), (0..100).collect::<Vec<_>>());
        list.work(|_| Err(StoreError::ReaderLost)).unwrap();
        assert!(matches!(list.get(), Err(StoreError::ReaderLost)));
        assert_eq!(list.get().unwrap().len(), 100);
        list.work(|_| Err(StoreError::ReaderLost)).unwrap();
        assert!(list.work(|_| Ok(())).is_err());
        assert_eq!(list.into_inner().unwrap().len(), 100);
    }
}
