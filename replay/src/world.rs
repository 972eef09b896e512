//! A world: the states of all actors and the messages and timers that are pending.

use std::sync::Arc;

use crate::guard::Panic;
use crate::model::{Configuration, Model, Status};
use crate::names::ActorId;
use crate::pending::Pending;
use crate::queue::{At, Place, Queue};

/// A state of actors, with copy on write.
pub type Cell<M> = Arc<<M as Model>::State>;

/// The states of all actors, and what is pending in the order in which it was sent.
///
/// Cloning is cheap: states are shared until one of the copies changes them.
#[derive(Debug)]
pub struct World<M: Model> {
    pub(crate) cells: Vec<Option<Cell<M>>>,
    /// Shared until one of the copies changes it: most steps change no status.
    status: Arc<Vec<Status>>,
    pub(crate) pending: Queue,
    pub(crate) deliveries: u64,
    pub(crate) panic: Option<Arc<Panic>>,
}

impl<M: Model> Clone for World<M> {
    fn clone(&self) -> Self {
        World {
            cells: self.cells.clone(),
            status: self.status.clone(),
            pending: self.pending.clone(),
            deliveries: self.deliveries,
            panic: self.panic.clone(),
        }
    }
}

impl<M: Model> World<M> {
    pub(crate) fn empty() -> Self {
        World {
            cells: Vec::new(),
            status: Arc::default(),
            pending: Queue::default(),
            deliveries: 0,
            panic: None,
        }
    }

    /// Whether an actor takes messages.
    #[must_use]
    pub fn status(&self, actor: ActorId) -> Status {
        self.status.get(actor.index()).copied().unwrap_or(Status::Absent)
    }

    /// How many actors the world has room for, the outside included.
    #[must_use]
    pub fn actors(&self) -> usize {
        self.status.len()
    }

    /// What is pending, in the order in which it was sent.
    #[must_use]
    pub fn pending(&self) -> &[Pending] {
        &self.pending
    }

    /// Indices of what is pending at a place, oldest first, and maybe of a few other entries.
    #[must_use]
    pub fn pending_at(&self, place: Place) -> At<'_> {
        self.pending.at(place)
    }

    /// Deliveries made so far.
    #[must_use]
    pub fn deliveries(&self) -> u64 {
        self.deliveries
    }

    /// The panic of the model's code that the last step led to. Such a world goes no further: nothing in it can be
    /// delivered, and it breaks no invariant.
    #[must_use]
    pub fn panic(&self) -> Option<&Panic> {
        self.panic.as_deref()
    }

    /// Whether all actors are in the same states and statuses in two worlds, whatever is pending.
    #[must_use]
    pub fn same_states(&self, other: &World<M>) -> bool {
        self.status == other.status
            && self.cells.len() == other.cells.len()
            && self.cells.iter().zip(&other.cells).all(|(a, b)| match (a, b) {
                (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a == b,
                (None, None) => true,
                _ => false,
            })
    }

    /// Whether two worlds are in the same configuration: equal states, statuses and pending entries.
    #[must_use]
    pub fn same_configuration(&self, other: &World<M>) -> bool {
        self.pending == other.pending && self.same_states(other)
    }

    /// A world put together from the states of its cells, the statuses of its actors and what is pending.
    #[must_use]
    pub fn assemble(cells: Vec<Option<Cell<M>>>, status: Vec<Status>, pending: Vec<Pending>) -> Self {
        let mut world =
            World { cells, status: status.into(), pending: pending.into(), deliveries: 0, panic: None };
        let size = world.cells.len().max(world.status.len());
        if let Some(last) = size.checked_sub(1) {
            world.grow(ActorId(last as u16));
        }
        world
    }

    /// The same world after so many deliveries.
    #[must_use]
    pub fn after(self, deliveries: u64) -> Self {
        World { deliveries, ..self }
    }

    /// The states of the cells, shared.
    #[must_use]
    pub fn cells(&self) -> &[Option<Cell<M>>] {
        &self.cells
    }

    /// The state of a running actor's cell.
    pub(crate) fn cell(&self, actor: ActorId) -> &M::State {
        match &self.cells[actor.index()] {
            Some(cell) => cell,
            None => unreachable!("only cells of started actors are asked for"),
        }
    }

    /// Notes the status of an actor that there is room for.
    pub(crate) fn set_status(&mut self, actor: ActorId, status: Status) {
        if self.status(actor) != status {
            Arc::make_mut(&mut self.status)[actor.index()] = status;
        }
    }

    /// Makes room for an actor.
    pub(crate) fn grow(&mut self, actor: ActorId) {
        let n = actor.index() + 1;
        if self.status.len() < n {
            Arc::make_mut(&mut self.status).resize(n, Status::Absent);
        }
        if self.cells.len() < n {
            self.cells.resize_with(n, || None);
        }
    }
}

impl<M: Model> Configuration<M::State> for World<M> {
    fn status(&self, actor: ActorId) -> Status {
        World::status(self, actor)
    }

    fn cell(&self, cell: ActorId) -> Option<&M::State> {
        self.cells.get(cell.index()).and_then(Option::as_deref)
    }

    fn actors(&self) -> usize {
        World::actors(self)
    }
}

impl<M: Model> World<M> {
    /// A hash of the configuration: states, statuses and pending entries with all that tells them apart, and with `ordered` the order
    /// within each channel. What is pending besides is a multiset.
    ///
    /// `content` gives the number that stands for what a pending entry carries, such as [`Simulator::content`](crate::Simulator::content). The
    /// numbers of timers mean something to one simulator only, and so does the hash.
    #[must_use]
    pub fn configuration_hash(&self, ordered: bool, content: impl Fn(&Pending) -> u128) -> u128 {
        use std::hash::Hash;

        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        // What led here may have left its state half done.
        self.panic.is_some().hash(&mut hasher);
        for (cell, status) in self.cells.iter().zip(self.status.iter()) {
            (status, cell).hash(&mut hasher);
        }
        let (mut in_order, mut free) = (Vec::new(), Vec::new());
        for entry in self.pending.iter() {
            // Named one by one: what a new field says of an entry must not be forgotten here.
            let Pending { from, to, channel, msg: _, kind, timer, survives, via } = *entry;
            let key = (content(entry), from, (kind, timer, survives), via.map(|via| via as u8));
            match ordered && crate::network::ordered(entry) {
                true => in_order.push(((channel, to), key)),
                false => free.push(((channel, to), key)),
            }
        }
        // Between channels the order of sending has no meaning: sort by channel, stably.
        in_order.sort_by_key(|&(place, _)| place);
        free.sort_unstable();
        (in_order, free).hash(&mut hasher);
        hasher.digest128()
    }
}
