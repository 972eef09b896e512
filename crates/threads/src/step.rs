//! The door between the objects that a test uses and the execution that runs: each operation comes through here.

use std::thread::panicking;

use crate::op::{Kind, NOWHERE, Op, Place, ResourceId, ResourceKind, Tag, TaskId};
use crate::world::{Next, WORLD, World};

/// The object and its kind.
pub(crate) type Object<'a> = (&'a Tag, ResourceKind);

enum Way {
    Scheduled,
    Switches,
    /// Shuttle decides whether this task goes on.
    Hosted(TaskId),
    /// The execution is over, or a panic is on its way up: the operation happens without a point, if it can.
    Quiet(ResourceId),
    /// It can not.
    Never,
    /// No execution runs on this thread.
    Outside,
}

/// Announces an operation, lets others go first where the schedule says so, and makes it happen. `None` outside of an execution: then the caller
/// does what the standard library would do.
#[inline]
pub(crate) fn step<R>(
    kind: Kind,
    object: Option<Object<'_>>,
    at: Place,
    effect: impl FnOnce(&mut World, ResourceId) -> R,
) -> Option<R> {
    step_with(kind, object, at, |_, _| 0, effect)
}

/// The same for operations with a number.
pub(crate) fn step_with<R>(
    kind: Kind,
    object: Option<Object<'_>>,
    at: Place,
    aux: impl FnOnce(&mut World, ResourceId) -> u32,
    effect: impl FnOnce(&mut World, ResourceId) -> R,
) -> Option<R> {
    let way = WORLD.with(|world| {
        let world = &mut *world.borrow_mut();
        if !world.active {
            return Way::Outside;
        }
        let on = object.map_or(NOWHERE, |(tag, kind)| world.resource(tag, kind));
        let aux = aux(world, on);
        let op = Op { kind, at, on, aux };
        let current = usize::from(world.current);
        world.calm();
        if world.stopped || world.tasks[current].finished || panicking() {
            world.tasks[current].pending = op;
            if !world.enabled(world.current) {
                // Where shuttle runs the test, nobody goes on with a search.
                if world.is_guest() {
                    return Way::Outside;
                }
                return Way::Never;
            }
            return Way::Quiet(on);
        }
        match world.announce(op) {
            Next::Go => Way::Scheduled,
            Next::Switch if world.is_guest() => Way::Hosted(world.current),
            Next::Switch => Way::Switches,
        }
    });
    match way {
        Way::Outside => return None,
        Way::Quiet(on) => {
            return WORLD.with(|world| {
                let world = &mut *world.borrow_mut();
                world.happens();
                Some(effect(world, on))
            });
        }
        Way::Never => crate::run::abandon(),
        Way::Switches => switch(),
        Way::Hosted(me) => hosted(me),
        Way::Scheduled => {}
    }
    WORLD.with(|world| {
        let world = &mut *world.borrow_mut();
        let op = world.happens();
        Some(effect(world, op.on))
    })
}

/// Says for reports what the operation came to that this task has just made.
pub(crate) fn came_to(what: &'static str) {
    WORLD.with(|world| {
        let world = &mut *world.borrow_mut();
        if world.active {
            world.came_to(what);
        }
    });
}

/// Gives way to the task that the world has chosen, until it is this one's turn again.
fn switch() {
    shuttle::thread::sleep(std::time::Duration::ZERO);
}

/// Gives way to whom shuttle chooses, until this task is chosen and can go on.
fn hosted(me: TaskId) {
    loop {
        WORLD.with(|world| world.borrow_mut().looks_for_an_end());
        crate::run::fails_on_shuttle();
        switch();
        let goes_on = WORLD.with(|world| {
            let world = &mut *world.borrow_mut();
            world.current = me;
            world.enabled(me)
        });
        if goes_on {
            return;
        }
    }
}
