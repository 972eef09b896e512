//! Shortest causal chains: breadth-first search backward over messages, one place in each log and layer.

use serde::Serialize;

use super::Index;
use super::header::BLOCK;
use super::info::{Info, Role};
use crate::error::LineageError;
use crate::matching::Reason;

/// The reason for an edge of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HopReason {
    /// It stands earlier in the same log.
    Log,
    /// A message, joined by its id.
    MessageId,
    /// A message, joined by its place on an in-order channel.
    ChannelOrder,
    /// A timer of the actor's own.
    Timer,
    /// A message, joined by its content.
    Inferred,
    /// What a vector clock tells and no message.
    Clock,
    /// A span and its parent in another log.
    Parent,
    /// A span and one in another log to which it links.
    Link,
    /// Operations of two threads.
    Operation,
}

/// An edge of a causal chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hop {
    /// The earlier event.
    pub from: String,
    /// The later event.
    pub to: String,
    /// Why it is later.
    pub reason: HopReason,
    /// Whether no other match is possible.
    pub certain: bool,
    /// Events of the log that the hop passes, the later one included; 1 for a message.
    pub events: u32,
}

impl Hop {
    /// Whether it goes along a log.
    #[must_use]
    pub fn is_log(&self) -> bool {
        self.reason == HopReason::Log
    }
}

impl HopReason {
    /// The word used in output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            HopReason::Log => "log",
            HopReason::MessageId => "message_id",
            HopReason::ChannelOrder => "channel_order",
            HopReason::Timer => "timer",
            HopReason::Inferred => "inferred",
            HopReason::Clock => "clock",
            HopReason::Parent => "parent",
            HopReason::Link => "link",
            HopReason::Operation => "operation",
        }
    }
}

/// An edge of a chain by numbers; no cause is the order of a log.
type Step = (u32, u32, Option<(HopReason, bool)>);

fn word(reason: Reason) -> HopReason {
    match reason {
        Reason::Clock => HopReason::Clock,
        Reason::Parent => HopReason::Parent,
        Reason::Link => HopReason::Link,
        Reason::Operation => HopReason::Operation,
        Reason::MessageId => HopReason::MessageId,
        Reason::ChannelOrder => HopReason::ChannelOrder,
        Reason::Timer => HopReason::Timer,
        Reason::Inferred | Reason::None => HopReason::Inferred,
    }
}

/// The growth of an actor's prefix: to the event that sends, by the event that it causes.
#[derive(Clone, Copy)]
struct Raise {
    cause: u32,
    effect: u32,
    reason: HopReason,
    certain: bool,
}

/// A search for the chain with the fewest messages.
struct Search<'a> {
    index: &'a Index,
    certain: bool,
    /// Nothing before this place matters.
    from: u32,
    /// By actor: what is covered, and how it came to be, the oldest first.
    raises: Vec<Vec<Raise>>,
    end: Vec<u32>,
    /// Events outside their log's order, and what they cause.
    alone: Vec<Raise>,
}

impl Index {
    /// A causal chain from `a` to `b` with the fewest messages; nothing where `a` is not before `b`.
    ///
    /// # Errors
    /// When a file of the index cannot be read.
    pub fn path(&self, a: u32, b: u32, certain: bool) -> Result<Option<Vec<Hop>>, LineageError> {
        if a == b {
            return Ok(Some(Vec::new()));
        }
        let mut search = Search {
            index: self,
            certain,
            from: self.order(a)?,
            raises: vec![Vec::new(); self.header.actors.len()],
            end: self.header.actors.iter().map(|x| x.first).collect(),
            alone: Vec::new(),
        };
        let Some(steps) = search.find(a, b)? else { return Ok(None) };
        let hop = |(from, to, reason): Step| {
            let log = (HopReason::Log, true);
            let events = if reason.is_none() { to - from } else { 1 };
            let (reason, certain) = reason.unwrap_or(log);
            let name = |e| Ok::<_, LineageError>(self.name(e)?.to_string());
            Ok(Hop { from: name(from)?, to: name(to)?, reason, certain, events })
        };
        steps.into_iter().map(hop).collect::<Result<Vec<_>, LineageError>>().map(Some)
    }
}

impl Search<'_> {
    fn find(&mut self, a: u32, b: u32) -> Result<Option<Vec<Step>>, LineageError> {
        let (about_a, about_b) = (self.index.info(a)?, self.index.info(b)?);
        let actor = self.index.actor_of(a);
        // What is to be searched: ranges of logs by actor, and single events outside their log's order.
        let mut ranges: Vec<(usize, u32, u32)> = Vec::new();
        let mut singles: Vec<u32> = Vec::new();
        if about_b.is_alone() {
            singles.push(b);
        } else {
            let home = self.index.actor_of(b);
            ranges.push((home, self.end[home], b + 1));
            self.end[home] = b + 1;
        }
        let here = |s: &Search<'_>| match about_a.is_alone() {
            true => s.alone.iter().any(|r| r.cause == a),
            false => s.end[actor] > a,
        };
        while !here(self) {
            let mut found = Vec::new();
            for event in singles.drain(..) {
                self.causes(event, self.index.info(event)?, &mut found)?;
            }
            for (log, low, high) in ranges.drain(..) {
                self.scan(log, low, high, &mut found)?;
            }
            if found.is_empty() {
                return Ok(None);
            }
            // Of the causes in one log the last covers the others.
            found.sort_unstable_by_key(|r| std::cmp::Reverse((r.cause, r.effect)));
            for raise in found {
                let log = self.index.actor_of(raise.cause);
                if self.index.info(raise.cause)?.is_alone() {
                    if !self.alone.iter().any(|r| r.cause == raise.cause) {
                        self.alone.push(raise);
                        singles.push(raise.cause);
                    }
                } else if raise.cause >= self.end[log] {
                    ranges.push((log, self.end[log], raise.cause + 1));
                    self.end[log] = raise.cause + 1;
                    self.raises[log].push(raise);
                }
            }
        }
        Ok(Some(self.steps(a, b, about_a.is_alone())))
    }

    fn causes(&self, event: u32, info: Info, found: &mut Vec<Raise>) -> Result<(), LineageError> {
        self.index.each_cause(event, info, |cause| {
            if (cause.certain() || !self.certain) && self.index.order(cause.event())? >= self.from {
                let (reason, certain) = (word(cause.reason()), cause.certain());
                found.push(Raise { cause: cause.event(), effect: event, reason, certain });
            }
            Ok(())
        })
    }

    /// The causes of the events in a part of a log, the latest first, down to the place that matters.
    fn scan(&self, log: usize, low: u32, high: u32, found: &mut Vec<Raise>) -> Result<(), LineageError> {
        let low = low.max(self.index.header.actors[log].first);
        let mut end = high;
        while end > low {
            let number = (end - 1) / BLOCK;
            let block = self.index.infos().block(number)?;
            let first = number * BLOCK;
            for event in (low.max(first)..end).rev() {
                let info = Info(block[(event - first) as usize]);
                if info.is_alone() || !(info.is_linked() || info.role() == Role::Delivery) {
                    continue;
                }
                if self.index.order(event)? < self.from {
                    return Ok(());
                }
                self.causes(event, info, found)?;
            }
            end = low.max(first);
        }
        Ok(())
    }

    /// The chain, from what was found.
    fn steps(&self, a: u32, b: u32, alone: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut at = a;
        let mut stands_alone = alone;
        // Every step goes to a prefix that was covered in an earlier layer.
        while at != b {
            let log = self.index.actor_of(at);
            // The log of `b` is covered first, up to `b`.
            if !stands_alone
                && !self.index.info(b).is_ok_and(Info::is_alone)
                && log == self.index.actor_of(b)
                && at < b
            {
                steps.push((at, b, None));
                return steps;
            }
            let raise = match stands_alone {
                true => self.alone.iter().find(|r| r.cause == at),
                false => self.raises[log].iter().find(|r| r.cause >= at),
            };
            let Some(&raise) = raise else { return steps };
            if raise.cause != at {
                steps.push((at, raise.cause, None));
            }
            steps.push((raise.cause, raise.effect, Some((raise.reason, raise.certain))));
            at = raise.effect;
            stands_alone = self.index.info(at).is_ok_and(Info::is_alone);
        }
        steps
    }
}
