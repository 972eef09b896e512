//! How many events of each sort there are up to any event.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::Index;
use super::header::BLOCK;
use super::info::{Info, Role};
use super::pages::Pages;
use crate::error::LineageError;
use crate::matching::Reason;

/// Numbers of events by sort in a part of the logs. Events that stand alone are not counted, timers are no messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Events.
    events: u64,
    /// Deliveries of what was sent alone.
    from_alone: u64,
    /// Messages sent whose delivery is known.
    sent: u64,
    /// Messages delivered whose send is known and did not stand alone.
    delivered: u64,
    /// Messages sent that nobody was seen to receive.
    never: u64,
    /// Of these, the ones that were overtaken for good.
    lost: u64,
    /// Messages sent whose delivery stands alone.
    to_alone: u64,
}

impl Tally {
    /// Events.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// Deliveries of what was sent alone.
    pub(crate) fn deliveries_from_alone(&self) -> u64 {
        self.from_alone
    }

    /// Messages sent whose delivery is known.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Messages delivered whose send is known and did not stand alone.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Messages sent that nobody was seen to receive.
    pub(crate) fn never(&self) -> u64 {
        self.never
    }

    /// Of these, the ones that were overtaken for good.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Messages sent whose delivery stands alone.
    pub(crate) fn sends_to_alone(&self) -> u64 {
        self.to_alone
    }
}

/// Numbers of a stored tally.
const FIELDS: usize = 7;

impl Tally {
    /// Counts one event; `to_alone` says that its delivery stands alone.
    pub(crate) fn add(&mut self, info: Info, matched: bool, to_alone: bool) {
        if info.is_alone() {
            return;
        }
        self.events += 1;
        let timer = matched && info.reason() == Reason::Timer;
        match info.role() {
            Role::Send if matched => {
                self.sent += u64::from(!timer);
                self.to_alone += u64::from(to_alone);
            }
            Role::Send => {
                let (never, lost) = info.never_received();
                self.never += u64::from(never);
                self.lost += u64::from(lost);
            }
            Role::Delivery if matched && info.is_sent_alone() => self.from_alone += 1,
            Role::Delivery if matched => self.delivered += u64::from(!timer),
            _ => {}
        }
    }

    fn fields(&self) -> [u64; FIELDS] {
        [self.events, self.from_alone, self.sent, self.delivered, self.never, self.lost, self.to_alone]
    }

    /// Its numbers, as they are stored.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.fields().iter().flat_map(|&n| (n as u32).to_le_bytes()).collect()
    }

    fn of(fields: [u64; FIELDS]) -> Tally {
        let [events, from_alone, sent, delivered, never, lost, to_alone] = fields;
        Tally { events, from_alone, sent, delivered, never, lost, to_alone }
    }

    /// What this has and `before` has not.
    pub(crate) fn since(&self, before: &Tally) -> Tally {
        let (a, b) = (self.fields(), before.fields());
        Tally::of(std::array::from_fn(|i| a[i].saturating_sub(b[i])))
    }

    /// The sum.
    pub(crate) fn plus(&self, other: &Tally) -> Tally {
        let (a, b) = (self.fields(), other.fields());
        Tally::of(std::array::from_fn(|i| a[i] + b[i]))
    }
}

/// Events from one tally within a block to the next.
const STEP: usize = 64;
/// Blocks whose tallies are kept at most: 15 MB.
const KEPT: usize = 4096;

/// Tallies of all events before each block.
pub(crate) struct Counts {
    pages: Pages<u32>,
    /// Of blocks that were asked about: tallies of all events before each step.
    steps: RefCell<FxHashMap<u32, Rc<[Tally]>>>,
}

impl Counts {
    /// Opens the file for that many events.
    pub(crate) fn open(path: &Path, events: u32, sealed: bool) -> Result<Counts, LineageError> {
        let pages = Pages::open(path, events.div_ceil(BLOCK) * FIELDS as u32, sealed)?;
        Ok(Counts { pages, steps: RefCell::default() })
    }

    fn before_block(&self, block: u32) -> Result<Tally, LineageError> {
        let mut fields = [0; FIELDS];
        for (i, field) in fields.iter_mut().enumerate() {
            *field = u64::from(self.pages.get(block * FIELDS as u32 + i as u32)?);
        }
        Ok(Tally::of(fields))
    }
}

impl Index {
    /// The tally of all events before `end`.
    fn tally_before(&self, end: u32) -> Result<Tally, LineageError> {
        if end == 0 {
            return Ok(Tally::default());
        }
        let (number, within) = ((end - 1) / BLOCK, ((end - 1) % BLOCK) as usize + 1);
        let infos = self.infos().block(number)?;
        let mates = self.mates().block(number)?;
        let outside = self.header.environment.map(|a| self.events_of(a as usize));
        let count = |tally: &mut Tally, events: std::ops::Range<usize>| {
            let events = infos.iter().zip(mates.iter()).take(events.end).skip(events.start);
            for (&info, &mate) in events {
                let info = Info(info);
                let to_alone =
                    info.role() == Role::Send && outside.as_ref().is_some_and(|o| o.contains(&mate));
                tally.add(info, mate != crate::read::NONE, to_alone);
            }
        };
        let known = self.counts().steps.borrow().get(&number).cloned();
        let steps: Rc<[Tally]> = match known {
            Some(steps) => steps,
            None => {
                let mut tally = self.counts().before_block(number)?;
                let step = |first: usize| {
                    let before = tally;
                    count(&mut tally, first..first + STEP);
                    before
                };
                let steps: Rc<[Tally]> = (0..infos.len()).step_by(STEP).map(step).collect();
                let mut kept = self.counts().steps.borrow_mut();
                if kept.len() >= KEPT {
                    kept.clear();
                }
                kept.insert(number, steps.clone());
                steps
            }
        };
        let step = (within - 1) / STEP;
        let mut tally = steps.get(step).copied().unwrap_or_default();
        count(&mut tally, step * STEP..within);
        Ok(tally)
    }

    /// The tally of a part of the logs, one range of events.
    pub(crate) fn tally(&self, range: std::ops::Range<u32>) -> Result<Tally, LineageError> {
        if range.is_empty() {
            return Ok(Tally::default());
        }
        Ok(self.tally_before(range.end)?.since(&self.tally_before(range.start)?))
    }
}
