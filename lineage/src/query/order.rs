//! Which of two events is first.

use serde::Serialize;

use super::Query;
use crate::error::LineageError;
use crate::index::{Limits, Sweep};

/// The relation of two events (L. Lamport, "Time, clocks, and the ordering of events in a distributed system", CACM
/// 21(7), 1978).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// The first happens before the second.
    Before,
    /// The second happens before the first.
    After,
    /// Neither happens before the other.
    Concurrent,
    /// They are one event.
    Equal,
}

impl Relation {
    /// The word used in output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Relation::Before => "before",
            Relation::After => "after",
            Relation::Concurrent => "concurrent",
            Relation::Equal => "equal",
        }
    }
}

impl Query {
    /// How event `a` stands to event `b`.
    ///
    /// # Errors
    /// When a file of the index cannot be read.
    pub fn order(&self, a: u32, b: u32) -> Result<Relation, LineageError> {
        self.order_by(a, b, self.certain)
    }

    /// The same, and whether that hangs on no uncertain edge, nor on the order of events that their clock does not tell apart.
    ///
    /// # Errors
    /// When a file of the index cannot be read.
    pub fn order_and_doubt(&self, a: u32, b: u32) -> Result<(Relation, bool), LineageError> {
        let relation = self.order(a, b)?;
        let all_certain = self.index.header().uncertain == 0 && !self.has_ties()?;
        let certain = all_certain || self.order_by(a, b, !self.certain)? == relation;
        Ok((relation, certain))
    }

    /// [`Query::order`] by all edges, or by those that are certain.
    fn order_by(&self, a: u32, b: u32, certain: bool) -> Result<Relation, LineageError> {
        if a == b {
            return Ok(Relation::Equal);
        }
        let forward = self.index.order(a)? < self.index.order(b)?;
        let (first, second) = if forward { (a, b) } else { (b, a) };
        Ok(match (self.precedes_by(first, second, certain)?, forward) {
            (false, _) => Relation::Concurrent,
            (true, true) => Relation::Before,
            (true, false) => Relation::After,
        })
    }

    /// Whether `a` happens before `b`.
    pub(crate) fn precedes(&self, a: u32, b: u32) -> Result<bool, LineageError> {
        self.precedes_by(a, b, self.certain)
    }

    fn precedes_by(&self, a: u32, b: u32, certain: bool) -> Result<bool, LineageError> {
        if certain && self.has_ties()? {
            return self.certainly_precedes(a, b);
        }
        let mut starts = vec![a];
        let mut seen = vec![a];
        while let Some(start) = starts.pop() {
            let info = self.index.info(start)?;
            if !info.is_alone() {
                if self.chain_precedes(start, b, certain)? {
                    return Ok(true);
                }
                continue;
            }
            let mut effects = Vec::new();
            self.index.each_effect(start, info, |effect| {
                if effect.certain() || !certain {
                    effects.push(effect.event());
                }
                Ok(())
            })?;
            if effects.contains(&b) {
                return Ok(true);
            }
            effects.retain(|e| !seen.contains(e));
            seen.extend(&effects);
            starts.extend(effects);
        }
        Ok(false)
    }

    /// Whether `a`, which stands in its log's order, is `b` or happens before it.
    fn chain_precedes(&self, a: u32, b: u32, certain: bool) -> Result<bool, LineageError> {
        let from = self.index.order(a)?;
        if a == b || from > self.index.order(b)? {
            return Ok(a == b);
        }
        let limits = Limits::until(a, from, certain);
        let mut sweep = Sweep::new(&self.index, limits);
        sweep.add(b)?;
        sweep.run()
    }
}
