//! Times as they stand in logs.

use arrow_array::Array;
use arrow_array::timezone::Tz;

use super::Query;
use super::ranges::EventSet;
use crate::error::LineageError;
use crate::execution::Tables;
use crate::read::columns;

/// A point in time, in nanoseconds since 1970; nothing where the text is none.
#[must_use]
pub fn instant(text: &str) -> Option<i64> {
    let utc: Tz = "+00:00".parse().ok()?;
    arrow_cast::parse::string_to_datetime(&utc, text).ok()?.timestamp_nanos_opt()
}

impl Query {
    /// The largest consistent cut with no event that is later than that time by its own clock.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn cut_until(&self, limit: i64) -> Result<EventSet, LineageError> {
        self.without(&self.first_after(limit)?)
    }

    /// By actor, its first event that is later than that time by its own clock.
    fn first_after(&self, limit: i64) -> Result<Vec<u32>, LineageError> {
        let tables = Tables::open(&self.folder)?;
        let mut found: Vec<Option<u32>> = vec![None; self.index.header().actors.len()];
        let rows = self.rows();
        for &part in tables.parts() {
            let numbering = rows.numbering(part);
            for batch in tables.stored(part, &["time"], None)? {
                let (places, batch) = batch?;
                let times = columns::text(&batch, "time")?;
                for (row, place) in places.into_iter().enumerate() {
                    let later = times.is_valid(row) && instant(times.value(row)).is_some_and(|t| t > limit);
                    if let Some(event) = numbering.of(place).filter(|_| later) {
                        let first = &mut found[self.index.actor_of(event)];
                        *first = Some(first.map_or(event, |known| known.min(event)));
                    }
                }
            }
        }
        Ok(found.into_iter().flatten().collect())
    }
}
