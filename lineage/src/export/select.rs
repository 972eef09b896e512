//! Which events a slice has.

use super::error::ExportError;
use super::skeleton::Skeleton;

/// The selected events: those that meet every condition given. Events are named `ACTOR/SEQ` or
/// `ACTOR/INCARNATION/SEQ`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only this event and what happens before it.
    pub past: Option<String>,
    /// Only this event and what happens after it.
    pub from: Option<String>,
    /// Only this event and what happens before it; with `from`, what lies between the two.
    pub to: Option<String>,
    /// Only events of these actors.
    pub actors: Vec<String>,
    /// Only what is in the causal past of the violation.
    pub kept: bool,
    /// Only some of what meets all the other conditions.
    pub window: Option<Window>,
}

/// A stretch of the linear extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Window {
    /// The last so many events.
    Last(usize),
    /// So many events around one: half of them before it. Near an end of the execution there are more on the other side.
    Around {
        /// The event, which the other conditions may leave out.
        event: String,
        /// How many events.
        events: usize,
    },
}

impl Window {
    /// Leaves out of a mask what is not in the window.
    fn narrow(&self, skeleton: &Skeleton, mask: &mut [bool]) -> Result<(), ExportError> {
        let wanted: Vec<usize> = (0..mask.len()).filter(|&e| mask[e]).collect();
        let (first, events) = match self {
            Window::Last(events) => (wanted.len().saturating_sub(*events), *events),
            Window::Around { event, events } => {
                let at = skeleton.named(event)? as usize;
                let before = wanted.partition_point(|&e| e < at);
                let latest = wanted.len().saturating_sub(*events);
                (before.saturating_sub(events / 2).min(latest), *events)
            }
        };
        let past = first.saturating_add(events).min(wanted.len());
        wanted[..first].iter().chain(&wanted[past..]).for_each(|&e| mask[e] = false);
        Ok(())
    }
}

impl Selection {
    /// By event: whether it is wanted. `reach` says of an event what happens before it, or after it where that is asked, itself included.
    ///
    /// # Errors
    /// When an event or actor does not exist, `from` does not happen before `to`, or nothing is left, and what `reach` says.
    pub fn mask(
        &self,
        skeleton: &Skeleton,
        reach: &dyn Fn(u32, bool) -> Result<Vec<bool>, ExportError>,
    ) -> Result<Vec<bool>, ExportError> {
        let mut mask = vec![true; skeleton.len()];
        let keep = |mask: &mut Vec<bool>, other: &[bool]| {
            mask.iter_mut().zip(other).for_each(|(m, o)| *m &= o);
        };
        if self.kept {
            keep(&mut mask, &skeleton.kept);
        }
        for name in self.past.iter().chain(&self.to) {
            keep(&mut mask, &reach(skeleton.named(name)?, false)?);
        }
        if let Some(name) = &self.from {
            let future = reach(skeleton.named(name)?, true)?;
            if let Some(to) = &self.to
                && !future[skeleton.named(to)? as usize]
            {
                return Err(ExportError::NotBefore { from: name.clone(), to: to.clone() });
            }
            keep(&mut mask, &future);
        }
        if !self.actors.is_empty() {
            let mut wanted = vec![false; skeleton.actors.len()];
            for name in &self.actors {
                let actor = skeleton.find_actor(name).ok_or_else(|| ExportError::NoActor {
                    name: name.clone(),
                    actors: skeleton.list_actors(),
                })?;
                wanted[actor as usize] = true;
            }
            mask.iter_mut().zip(&skeleton.actor).for_each(|(m, a)| *m &= wanted[*a as usize]);
        }
        if let Some(window) = &self.window {
            window.narrow(skeleton, &mut mask)?;
        }
        match mask.iter().any(|m| *m) {
            true => Ok(mask),
            false => Err(ExportError::Nothing(skeleton.len())),
        }
    }
}
