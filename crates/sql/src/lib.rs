//! SQL over an execution, by Polars, with the causal questions as tables.
//!
//! Tables: `events`, `messages`, `actors`, `completeness`, and `quarantine` where a store is asked. In FROM and JOIN stand as well `past('EVENT')`, `future('EVENT')`,
//! `concurrent('EVENT')`, `between('A', 'B')` and `cut('EVENT or TIME', ..)`, which have the columns of `events`;
//! `path('A', 'B')`, one row an edge of a shortest causal chain; and `channel('FROM', 'TO')`, which has the columns of `messages`.

mod call;
mod few;
mod made;
mod output;
mod reads;
mod referred;
mod tables;

use std::path::Path;

use demi_common::sealed::SealedFile;
use demi_lineage::LineageError;
use demi_lineage::query::{EventSet, Query};
use polars::prelude::{DataFrame, IntoLazy, LazyFrame, PolarsError};
use polars::sql::SQLContext;

pub use call::Files;
pub use output::{OutputFormat, write};

use self::call::{Call, rewrite};
use self::made::Source;

/// Any error of Polars is about the question: the files are ours.
pub(crate) fn refused(error: PolarsError) -> LineageError {
    let text = error.to_string();
    LineageError::Question(text.lines().next().unwrap_or_default().to_owned())
}

fn io(path: &Path, source: std::io::Error) -> LineageError {
    LineageError::Io { path: path.to_owned(), source }
}

/// What a SELECT sees besides the execution.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// Whether it may read files.
    pub files: Files,
    /// The files of the store's quarantine; without a store there is no such table.
    pub quarantine: Option<Vec<SealedFile>>,
}

/// The answer to a SELECT.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The rows.
    pub frame: DataFrame,
    /// What should be known of them.
    pub notes: Vec<String>,
}

/// Answers one SELECT over the tables above, and over what is around the execution.
///
/// # Errors
/// When the text is no SQL that Polars knows, names what is not there, or a file cannot be read.
pub fn select(query: &Query, text: &str, around: &Around) -> Result<Answer, LineageError> {
    let (text, calls) = rewrite(text, around.files)?;
    let source = Source::open(query)?;
    let mut context = SQLContext::new();
    context.register("events", tables::events(query, &source.tables, &source.reads)?);
    // It may have to be made, which is worth it only if it is asked for.
    if text.to_ascii_lowercase().contains("messages") {
        context.register("messages", source.messages()?);
    }
    context.register("actors", tables::actors(query)?.lazy());
    context.register("completeness", tables::completeness(query)?.lazy());
    if let Some(files) = &around.quarantine {
        context.register("quarantine", tables::quarantine(&source.reads, files)?);
    }
    let mut notes = Vec::new();
    for (name, call) in calls {
        context.register(&name, table(query, &source, &call, &mut notes)?);
    }
    let question = context.execute(&text).map_err(refused)?;
    source.reads.verify(&question)?;
    let frame = question.collect().map_err(refused)?;
    Ok(Answer { frame, notes })
}

/// The table that a call stands for.
fn table(
    query: &Query,
    source: &Source,
    call: &Call,
    notes: &mut Vec<String>,
) -> Result<LazyFrame, LineageError> {
    let index = query.index();
    let event = |i: usize| index.event(&call.arguments[i]);
    let set = match call.function.as_str() {
        "past" => query.past_set(event(0)?)?,
        "future" => query.future_set(event(0)?)?,
        "concurrent" => query.concurrent_set(event(0)?)?,
        "between" => query.future_set(event(0)?)?.and(&query.past_set(event(1)?)?),
        "cut" => cut(query, &call.arguments, notes)?,
        "path" => {
            let hops = query.path(event(0)?, event(1)?)?.unwrap_or_default();
            return Ok(tables::path(&hops)?.lazy());
        }
        "channel" => {
            let (from, to) = (&call.arguments[0], &call.arguments[1]);
            index.actor(from)?;
            index.actor(to)?;
            return Ok(tables::channel(source.messages()?, from, to));
        }
        other => return Err(LineageError::Question(format!("no table function '{other}'"))),
    };
    tables::events_in(query, &source.tables, &source.reads, &set)
}

/// The smallest consistent cut with these events, or the cut at a time.
fn cut(query: &Query, arguments: &[String], notes: &mut Vec<String>) -> Result<EventSet, LineageError> {
    if let [time] = arguments
        && let Some(cut) = query.cut_until(time)?
    {
        notes.extend(cut.note());
        return Ok(cut.set);
    }
    let mut set = EventSet::default();
    for text in arguments {
        set = set.or(&query.past_set(query.index().event(text)?)?);
    }
    Ok(set)
}
