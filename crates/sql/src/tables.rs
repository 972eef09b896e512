//! The tables that SQL sees.

use std::path::Path;

use demi_common::sealed::SealedFile;
use demi_lineage::LineageError;
use demi_lineage::execution::{Part, Tables};
use demi_lineage::index::Hop;
use demi_lineage::query::{EventSet, Query};
use polars::prelude::*;

use crate::few::{FEW, Few};
use crate::reads::Reads;
use crate::referred::Referred;
use crate::{io, refused};

/// A table of an execution.
fn scan(reads: &Reads, path: &Path) -> Result<LazyFrame, LineageError> {
    let file = SealedFile::beside(path).map_err(|error| io(path, error))?;
    reads.scan(&file, ScanArgsParquet::default())
}

/// The name of an event, from its actor, incarnation and sequence number; null without an actor. It is that of `EventId`.
fn name(actor: &str, incarnation: &str, seq: &str) -> Expr {
    let told = concat_str([col(incarnation), lit("/")], "", false);
    let tells = col(incarnation).gt(lit(0)).or(col(actor).str().contains(lit("/[0-9]+$"), true));
    let incarnation = when(tells).then(told).otherwise(lit(""));
    concat_str([col(actor), lit("/"), incarnation, col(seq)], "", false)
}

fn named(frame: LazyFrame) -> LazyFrame {
    frame.with_columns([name("actor", "incarnation", "seq").alias("event")])
}

/// All parts, one after the other.
fn together(parts: Vec<LazyFrame>) -> Result<LazyFrame, LineageError> {
    match <[LazyFrame; 1]>::try_from(parts) {
        Ok([only]) => Ok(only),
        Err(many) => {
            let args = UnionArgs { maintain_order: true, ..UnionArgs::default() };
            concat(many, args).map_err(refused)
        }
    }
}

/// All events, with a column `event` for the name.
pub(crate) fn events(query: &Query, tables: &Tables, reads: &Reads) -> Result<LazyFrame, LineageError> {
    let mut frames = Vec::new();
    for &part in tables.parts() {
        match tables.references().filter(|_| part == Part::Built) {
            Some(references) => frames.extend(Referred::new(query, references, reads).all()?),
            None => frames.push(scan(reads, &tables.path(part))?),
        }
    }
    Ok(named(together(frames)?))
}

/// The events of a set.
pub(crate) fn events_in(
    query: &Query,
    tables: &Tables,
    reads: &Reads,
    set: &EventSet,
) -> Result<LazyFrame, LineageError> {
    let mut frames = Vec::new();
    for &part in tables.parts() {
        let chosen = query.rows_of(part, set.ranges());
        if chosen.iter().map(|range| u64::from(range.end - range.start)).sum::<u64>() <= FEW {
            frames.push(Few::table(query.folder().to_owned(), part, chosen)?);
            continue;
        }
        if let Some(references) = tables.references().filter(|_| part == Part::Built) {
            frames.extend(Referred::new(query, references, reads).of(&chosen)?);
            continue;
        }
        let mut marks = vec![false; query.rows_in(part) as usize];
        for range in chosen {
            marks[range.start as usize..range.end as usize].fill(true);
        }
        let marks = df!("mark of the set" => marks).map_err(refused)?.lazy();
        let all = scan(reads, &tables.path(part))?;
        let both = concat_lf_horizontal([all, marks], HConcatOptions::default()).map_err(refused)?;
        frames.push(both.filter(col("mark of the set")).drop(cols(["mark of the set"])));
    }
    Ok(named(together(frames)?))
}

/// All messages, with columns `send` and `receive` for the names of their events.
pub(crate) fn messages(reads: &Reads, built: &Path, added: Option<&Path>) -> Result<LazyFrame, LineageError> {
    let built = scan(reads, built)?;
    let all = match added {
        None => built,
        // What had no receiver when the execution was built stands among what was added.
        Some(added) => together(vec![
            built.filter(col("receive_actor").is_not_null().or(col("send_actor").is_null())),
            scan(reads, added)?,
        ])?,
    };
    Ok(all.with_columns([
        name("send_actor", "send_incarnation", "send_seq").alias("send"),
        name("receive_actor", "receive_incarnation", "receive_seq").alias("receive"),
    ]))
}

/// Messages whose ends are logs of these actors, or that were addressed so.
pub(crate) fn channel(messages: LazyFrame, from: &str, to: &str) -> LazyFrame {
    let end = |actor: &str, address: &str, name: &str| {
        col(actor).eq(lit(name)).or(col(actor).is_null().and(col(address).eq(lit(name))))
    };
    let is_message = col("status").neq(lit("order"));
    messages.filter(is_message.and(end("send_actor", "from", from)).and(end("receive_actor", "to", to)))
}

/// One row an actor: its name, events, incarnations, first and last event.
pub(crate) fn actors(query: &Query) -> Result<DataFrame, LineageError> {
    let (mut names, mut counts, mut incarnations, mut firsts, mut lasts) =
        (vec![], vec![], vec![], vec![], vec![]);
    for (a, actor) in query.index().header().actors.iter().enumerate() {
        let range = query.index().events_of(a);
        let (first, last) = (query.index().name(range.start)?, query.index().name(range.end - 1)?);
        names.push(actor.name.clone());
        counts.push(range.len() as u64);
        incarnations.push(last.incarnation - first.incarnation + 1);
        firsts.push(first.to_string());
        lasts.push(last.to_string());
    }
    df!("actor" => names, "events" => counts, "incarnations" => incarnations, "first" => firsts, "last" => lasts)
        .map_err(refused)
}

/// One row a run of sequence numbers without a gap: actor, incarnation, first and last number, and how many are missing before it.
pub(crate) fn completeness(query: &Query) -> Result<DataFrame, LineageError> {
    let (mut names, mut incarnations, mut froms, mut tos, mut gaps) =
        (vec![], vec![], vec![], vec![], vec![]);
    for run in query.runs()? {
        names.push(run.actor);
        incarnations.push(run.incarnation);
        froms.push(run.from);
        tos.push(run.to);
        gaps.push(run.missing_before);
    }
    df!("actor" => names, "incarnation" => incarnations, "from_seq" => froms, "to_seq" => tos, "missing_before" => gaps)
        .map_err(refused)
}

/// What stands in quarantine, from the store's files without the bytes, which need not be text.
pub(crate) fn quarantine(reads: &Reads, files: &[SealedFile]) -> Result<LazyFrame, LineageError> {
    let columns = ["source", "offset", "line", "raw_length", "code", "reason", "digest"];
    if files.is_empty() {
        let none: [&str; 0] = [];
        let numbers: [i64; 0] = [];
        let frame = df!("source" => none, "offset" => numbers, "line" => numbers, "raw_length" => numbers, "code" => none, "reason" => none, "digest" => numbers);
        return Ok(frame.map_err(refused)?.lazy());
    }
    let table = |file| reads.scan(file, ScanArgsParquet::default());
    let parts = files.iter().map(|file| Ok(table(file)?.select([cols(columns).as_expr()])));
    together(parts.collect::<Result<_, LineageError>>()?)
}

/// One row an edge of a causal chain.
pub(crate) fn path(hops: &[Hop]) -> Result<DataFrame, LineageError> {
    let texts = |f: &dyn Fn(&Hop) -> String| hops.iter().map(f).collect::<Vec<_>>();
    df!(
        "step" => (1..=hops.len() as u32).collect::<Vec<_>>(),
        "from_event" => texts(&|h| h.from.clone()),
        "to_event" => texts(&|h| h.to.clone()),
        "reason" => texts(&|h| h.reason.as_str().to_owned()),
        "certain" => hops.iter().map(|h| h.certain).collect::<Vec<_>>(),
        "events" => hops.iter().map(|h| h.events).collect::<Vec<_>>(),
    )
    .map_err(refused)
}
