//! A slice of an execution with what its events say.

use std::path::Path;

use demi_schemas::Kind;

use super::causes::{Causes, EdgeReason};
use super::content::Content;
use super::error::ExportError;
use super::select::Selection;
use super::skeleton::{Builder, Joint, NONE, Skeleton};
use super::{Format, WriteOptions, load};
use crate::query::Query;

/// A slice of an execution: the whole order, the events that are wanted of it, and what those say.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Name of the recorded system.
    pub system: String,
    /// The order of the whole execution.
    pub skeleton: Skeleton,
    /// The events of the slice, in the order of the linear extension.
    pub events: Vec<u32>,
    /// What they say, in the same order.
    pub contents: Vec<Content>,
}

/// By event of an order that no index has, as that of a run: whether it happens before `from` (or after it), or is it.
fn walked(skeleton: &Skeleton, from: u32, forward: bool) -> Vec<bool> {
    let mut reached = vec![false; skeleton.len()];
    let mut work = vec![from];
    while let Some(e) = work.pop() {
        if std::mem::replace(&mut reached[e as usize], true) {
            continue;
        }
        if forward {
            work.extend(skeleton.next(e));
            work.extend(skeleton.effects(e).map(|edge| edge.event));
        } else {
            work.extend(skeleton.previous(e));
            work.extend(skeleton.causes(e).map(|edge| edge.event));
        }
    }
    reached
}

impl Trace {
    /// Reads a slice of the execution in `exec`.
    ///
    /// # Errors
    /// When a table is missing or not what a build writes, or the selection names what is not there.
    pub fn load(exec: &Path, selection: &Selection) -> Result<Trace, ExportError> {
        let summary = crate::execution::load_summary(exec)?;
        let query = Query::open(exec, false)?;
        let (skeleton, ranks) = load::ordered(&query)?;
        let mask = selection.mask(&skeleton, &|e, forward| Ok(ranks.reach(&query, e, forward)?))?;
        let events: Vec<u32> = (0..skeleton.len() as u32).filter(|&e| mask[e as usize]).collect();
        let mut contents = vec![Content::default(); events.len()];
        load::contents(
            exec,
            |e| mask.get(e as usize) == Some(&true),
            |e, content| -> Result<(), ExportError> {
                if let Ok(at) = events.binary_search(&e) {
                    contents[at] = content;
                }
                Ok(())
            },
        )?;
        Ok(Trace { system: summary.system, skeleton, events, contents })
    }

    /// The slice of a trace that is whole.
    ///
    /// # Errors
    /// When the selection names what is not there.
    pub fn select(mut self, selection: &Selection) -> Result<Trace, ExportError> {
        let mask = selection.mask(&self.skeleton, &|e, forward| Ok(walked(&self.skeleton, e, forward)))?;
        let mut at = 0;
        let events = std::mem::take(&mut self.events);
        self.contents.retain(|_| {
            at += 1;
            mask[events[at - 1] as usize]
        });
        self.events = events.into_iter().filter(|&e| mask[e as usize]).collect();
        Ok(self)
    }

    /// The slice as an execution of its own: events are numbered anew. What happens before what is kept, also through events
    /// that the slice leaves out: such order is an edge of its own.
    #[must_use]
    pub fn compact(self) -> Trace {
        let old = &self.skeleton;
        let mut builder = Builder::default();
        for &e in &self.events {
            let i = e as usize;
            let at = builder.push(&old.id(e), old.kind[i], old.kept[i], old.place[i] == NONE);
            builder.open(at, old.joint[i]);
        }
        for (stamp, causes) in Causes::new(&self) {
            for cause in causes {
                let ends = [cause.at, stamp.at].map(|at| self.events[at as usize] as usize);
                let one_log =
                    old.actor[ends[0]] == old.actor[ends[1]] && ends.iter().all(|&e| old.place[e] != NONE);
                match cause.why {
                    EdgeReason::Edge(joint) => builder.join(cause.at, stamp.at, joint, cause.certain),
                    EdgeReason::Indirect if !one_log => {
                        builder.join(cause.at, stamp.at, Joint::Indirect, cause.certain);
                    }
                    // The order of a log is that of its events.
                    EdgeReason::Log | EdgeReason::Indirect => {}
                }
            }
        }
        let events = (0..self.events.len() as u32).collect();
        Trace { system: self.system, skeleton: builder.finish(), events, contents: self.contents }
    }

    /// What should be known of the slice in that format.
    #[must_use]
    pub fn notes(&self, format: Format, options: WriteOptions) -> Vec<String> {
        let mut notes = Vec::new();
        let loose = self.events.iter().filter(|&&e| self.skeleton.place[e as usize] == NONE).count();
        if format == Format::Shiviz && loose > 1 && !options.split_loose {
            notes.push(format!(
                "{loose} sends by the environment or by threads are in no log's order; ShiViz shows them one after the other (--split gives each a host)"
            ));
        }
        let most = match format {
            Format::Dot => 500,
            Format::Mermaid => 300,
            Format::Shiviz => 10_000,
            Format::Perfetto | Format::Graphml | Format::Json | Format::MergedLog => usize::MAX,
        };
        if self.events.len() > most {
            notes.push(format!("its viewers are slow or fail beyond about {most} events; --past, --from and --to cut out less"));
        }
        notes
    }

    /// A short line that says what an event of the slice is, by its position in [`Trace::events`].
    #[must_use]
    pub fn label(&self, at: usize) -> String {
        let (e, content) = (self.events[at] as usize, &self.contents[at]);
        let kind = self.skeleton.kind[e];
        let type_ = content.type_.as_deref().unwrap_or("");
        let end = |way: &str, name: &Option<Box<str>>| match name {
            Some(name) => format!(" {way} {name}"),
            None => String::new(),
        };
        let text = match kind {
            Kind::Send => format!("send {type_}{}", end("to", &content.to)),
            Kind::Receive => format!("receive {type_}{}", end("from", &content.from)),
            Kind::TimerSet => format!("set timer {type_}"),
            Kind::TimerCancel => format!("cancel timer {type_}"),
            Kind::TimerFire => format!("timer {type_} fires"),
            Kind::Action => format!("action {type_}"),
            other => format!("{} {type_}", other.as_str().replace('_', " ")),
        };
        text.trim_end().to_owned()
    }
}
