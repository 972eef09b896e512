//! What one task has of its own.

use std::any::Any;
use std::fmt;
use std::rc::Rc;

/// What a task, or a thread outside of executions, has of each key: nothing more once its destructor ran.
#[derive(Default)]
pub(crate) struct Locals(Vec<(usize, Option<Rc<dyn Any>>)>);

impl Locals {
    /// What there is of a key: nothing yet, or what was made, unless it was dropped.
    pub(crate) fn get(&self, key: usize) -> Option<Option<Rc<dyn Any>>> {
        self.0.iter().find(|(of, _)| *of == key).map(|(_, value)| value.clone())
    }

    /// The value of a key that had none.
    pub(crate) fn set(&mut self, key: usize, value: Rc<dyn Any>) {
        self.0.push((key, Some(value)));
    }

    /// The value that came last, of those that are left.
    pub(crate) fn pop(&mut self) -> Option<Rc<dyn Any>> {
        self.0.iter_mut().rev().find_map(|(_, value)| value.take())
    }
}

impl fmt::Debug for Locals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locals").field("keys", &self.0.len()).finish()
    }
}
