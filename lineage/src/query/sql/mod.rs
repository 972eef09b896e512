//! SQL over an execution, by Polars, with the causal questions as tables.
//!
//! Tables: `events`, `messages`, `actors`, `completeness`, and `quarantine` where a store is asked. In FROM and JOIN stand as well `past('EVENT')`, `future('EVENT')`,
//! `concurrent('EVENT')`, `between('A', 'B')` and `cut('EVENT or TIME', ..)`, which have the columns of `events`;
//! `path('A', 'B')`, one row an edge of a shortest causal chain; and `channel('FROM', 'TO')`, which has the columns of `messages`.

mod call;
mod made;
mod output;
mod referred;
mod tables;

use demi_common::sealed::SealedFile;
use polars::prelude::{DataFrame, IntoLazy, LazyFrame, PolarsError};
use polars::sql::SQLContext;

pub use call::Files;
pub use output::{OutputFormat, write};

use self::call::{Call, rewrite};
use self::made::Source;
use super::Query;
use super::ranges::EventSet;
use super::time::instant;
use crate::error::LineageError;

/// Any error of Polars is about the question: the files are ours.
pub(super) fn refused(error: PolarsError) -> LineageError {
    let text = error.to_string();
    LineageError::Question(text.lines().next().unwrap_or_default().to_owned())
}

/// What a SELECT sees besides the execution.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// Whether it may read files.
    pub files: Files,
    /// The files of the store's quarantine; without a store there is no such table.
    pub quarantine: Option<Vec<SealedFile>>,
}

impl Query {
    /// Answers one SELECT over the tables above.
    ///
    /// # Errors
    /// When the text is no SQL that Polars knows, names what is not there, or a file cannot be read.
    pub fn sql(&self, text: &str) -> Result<DataFrame, LineageError> {
        self.sql_with(text, &Around::default())
    }

    /// Answers one SELECT, which sees what is around the execution too.
    ///
    /// # Errors
    /// As [`Query::sql`].
    pub fn sql_with(&self, text: &str, around: &Around) -> Result<DataFrame, LineageError> {
        let (text, calls) = rewrite(text, around.files)?;
        let source = Source::open(self)?;
        let mut context = SQLContext::new();
        context.register("events", tables::events(self, &source.tables)?);
        // It may have to be made, which is worth it only if it is asked for.
        if text.to_ascii_lowercase().contains("messages") {
            context.register("messages", source.messages(self)?);
        }
        context.register("actors", tables::actors(self)?.lazy());
        context.register("completeness", tables::completeness(self)?.lazy());
        if let Some(files) = &around.quarantine {
            context.register("quarantine", tables::quarantine(files)?);
        }
        for (name, call) in calls {
            context.register(&name, self.table(&source, &call)?);
        }
        context.execute(&text).and_then(LazyFrame::collect).map_err(refused)
    }

    /// The table that a call stands for.
    fn table(&self, source: &Source, call: &Call) -> Result<LazyFrame, LineageError> {
        let event = |i: usize| self.index.event(&call.arguments[i]);
        let set = match call.function.as_str() {
            "past" => self.past_set(event(0)?)?,
            "future" => self.future_set(event(0)?)?,
            "concurrent" => self.concurrent_set(event(0)?)?,
            "between" => self.future_set(event(0)?)?.and(&self.past_set(event(1)?)?),
            "cut" => self.cut_set(source, &call.arguments)?,
            "path" => {
                let hops = self.index.path(event(0)?, event(1)?, self.certain)?.unwrap_or_default();
                return Ok(tables::path(&hops)?.lazy());
            }
            "channel" => {
                let (from, to) = (&call.arguments[0], &call.arguments[1]);
                self.index.actor(from)?;
                self.index.actor(to)?;
                return Ok(tables::channel(source.messages(self)?, from, to));
            }
            other => return Err(LineageError::Question(format!("no table function '{other}'"))),
        };
        tables::events_in(self, &source.tables, &set)
    }

    /// The smallest consistent cut with these events; or, for a time, the largest one with nothing later than it.
    fn cut_set(&self, source: &Source, arguments: &[String]) -> Result<EventSet, LineageError> {
        if let [time] = arguments
            && let Some(limit) = instant(time)
        {
            return self.without(&tables::first_after(self, &source.tables, limit)?);
        }
        let mut set = EventSet::default();
        for text in arguments {
            set = set.or(&self.past_set(self.index.event(text)?)?);
        }
        Ok(set)
    }
}
