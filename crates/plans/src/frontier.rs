//! The causal past as a frontier: one position for each log, raised by joins and maxima until it stands.
//!
//! A round asks what the raised positions have heard of. The driver holds the frontier, so that an engine needs neither recursion nor state.
//! The operator is monotone: every order of rounds ends in the same least fixpoint. There are at most as many rounds as logs; where there are
//! more than allowed, what may still raise something is fetched, and closed in memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::engine::{ColumnType, Counted, Engine, Small};
use crate::error::PlanError;
use crate::sql::{KEY, Step};

/// A position in a log, by the log's number; the first is 1.
pub type Position = (i64, i64);

/// By log: the last position that is in the past. Logs without one are left out.
pub type Frontier = BTreeMap<i64, i64>;

/// How a frontier is closed.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Most rounds on the engine.
    pub max_rounds: u32,
    /// Whether only certain edges count.
    pub certain: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { max_rounds: 32, certain: false }
    }
}

/// Who closed a frontier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClosedBy {
    /// Rounds on the engine.
    Rounds,
    /// The driver, with what it fetched after the last round.
    Driver,
}

/// What closing frontiers took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Effort {
    /// Rounds on the engine, the last one included, which raised nothing.
    pub rounds: u32,
    /// What the engine counted.
    #[serde(flatten)]
    pub counted: Counted,
    /// Who closed the frontiers.
    pub closed_by: ClosedBy,
    /// Messages that the driver fetched.
    pub fetched: u64,
}

/// The frontiers of some targets, in their order, and what they took.
#[derive(Clone, Debug)]
pub struct Closed {
    /// By target.
    pub frontiers: Vec<Frontier>,
    /// What it took.
    pub effort: Effort,
}

/// A round puts what was raised, as (target, log, key of the block, position before, position now),
pub(crate) const DELTA: &[(&str, ColumnType)] = &[
    ("target", ColumnType::Long),
    ("actor", ColumnType::Long),
    ("key", ColumnType::Long),
    ("lo", ColumnType::Long),
    ("hi", ColumnType::Long),
    ("alone", ColumnType::Long),
];
/// and all that is known.
pub(crate) const FRONTIER: &[(&str, ColumnType)] =
    &[("target", ColumnType::Long), ("actor", ColumnType::Long), ("ord", ColumnType::Long)];
const KNOWN: &[(&str, ColumnType)] =
    &[("actor", ColumnType::Long), ("expanded", ColumnType::Long), ("ord", ColumnType::Long)];

/// The frontiers as a table.
pub(crate) fn as_table(frontiers: &[Frontier]) -> Small {
    let mut table = Small::new("frontier", FRONTIER);
    for (target, frontier) in (0..).zip(frontiers) {
        for (&actor, &ord) in frontier {
            table.push(vec![i64::into(target), actor.into(), ord.into()]);
        }
    }
    table
}

/// A target's number among `n`, or an error: engines answer with what they were told.
pub(crate) fn target_of(row: &[i64], n: usize) -> Result<usize, PlanError> {
    let target = row.first().and_then(|&target| usize::try_from(target).ok());
    target
        .filter(|&target| target < n)
        .ok_or_else(|| PlanError::Broken(format!("an answer for the target {row:?}")))
}

/// Frontiers on their way.
struct Rising {
    frontiers: Vec<Frontier>,
    /// By target and log: the last position that a round looked at.
    expanded: Vec<FxHashMap<i64, i64>>,
    /// What the next round looks at: target and log.
    raised: Vec<(usize, i64)>,
}

impl Rising {
    fn new(targets: &[Vec<Position>]) -> Rising {
        let mut rising = Rising {
            frontiers: vec![Frontier::new(); targets.len()],
            expanded: vec![FxHashMap::default(); targets.len()],
            raised: Vec::new(),
        };
        for (target, starts) in targets.iter().enumerate() {
            starts.iter().for_each(|&(actor, ord)| rising.raise(target, actor, ord));
        }
        rising
    }

    fn raise(&mut self, target: usize, actor: i64, ord: i64) {
        let known = self.frontiers[target].entry(actor).or_default();
        if ord > *known {
            *known = ord;
            self.raised.push((target, actor));
        }
    }

    fn position(&self, target: usize, actor: i64) -> i64 {
        self.frontiers[target].get(&actor).copied().unwrap_or(0)
    }

    /// Takes what the next round looks at: target, log, position before and position now.
    fn take(&mut self) -> Vec<(usize, i64, i64, i64)> {
        self.raised.sort_unstable();
        self.raised.dedup();
        let raised = std::mem::take(&mut self.raised);
        let rows = raised.into_iter().map(|(target, actor)| {
            let now = self.position(target, actor);
            let before = self.expanded[target].insert(actor, now).unwrap_or(0);
            (target, actor, before, now)
        });
        rows.collect()
    }
}

/// Closes the pasts of targets, each with positions to begin at, in one loop. `blocks` has the size of blocks by log.
///
/// # Errors
/// When the engine fails, or its answers name what is not there.
pub fn close(
    engine: &mut dyn Engine,
    blocks: &dyn Fn(i64) -> Option<i64>,
    targets: &[Vec<Position>],
    options: Options,
    scratch: &Path,
) -> Result<Closed, PlanError> {
    let mut rising = Rising::new(targets);
    let mut effort = Effort { rounds: 0, counted: Counted::none(), closed_by: ClosedBy::Rounds, fetched: 0 };
    while !rising.raised.is_empty() {
        if effort.rounds >= options.max_rounds {
            hand_over(engine, &mut rising, options, scratch, &mut effort)?;
            break;
        }
        let mut delta = Small::new("delta", DELTA);
        let mut keys = Vec::new();
        for (target, actor, before, now) in rising.take() {
            let block = blocks(actor).ok_or_else(|| PlanError::Broken(format!("there is no log {actor}")))?;
            let key = actor * KEY + now / block.max(1);
            keys.push(key);
            delta.push([target as i64, actor, key, before, now, 0].map(Into::into).to_vec());
        }
        keys.sort_unstable();
        keys.dedup();
        engine.put(&[delta, as_table(&rising.frontiers)])?;
        let step = if options.certain { Step::CertainRound } else { Step::Round };
        let answer = engine.query(step, &keys)?;
        effort.rounds += 1;
        effort.counted.add(answer.counted);
        for row in &answer.rows {
            let target = target_of(row, targets.len())?;
            let (Some(&actor), Some(&ord)) = (row.get(1), row.get(2)) else {
                return Err(PlanError::Broken(format!("a round answered {row:?}")));
            };
            rising.raise(target, actor, ord);
        }
    }
    Ok(Closed { frontiers: rising.frontiers, effort })
}

/// A message of which all that counts is known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Message {
    ra: i64,
    rp: i64,
    sa: i64,
    sp: i64,
}

/// Fetches what may still raise something and closes the frontiers with it.
fn hand_over(
    engine: &mut dyn Engine,
    rising: &mut Rising,
    options: Options,
    scratch: &Path,
    effort: &mut Effort,
) -> Result<(), PlanError> {
    // Of all targets that still rise, the least that is known.
    let mut open: Vec<usize> = rising.raised.iter().map(|(target, _)| *target).collect();
    open.sort_unstable();
    open.dedup();
    let mut known: FxHashMap<i64, (usize, i64, i64)> = FxHashMap::default();
    for &target in &open {
        for (&actor, &ord) in &rising.frontiers[target] {
            let expanded = rising.expanded[target].get(&actor).copied().unwrap_or(0);
            let entry = known.entry(actor).or_insert((0, i64::MAX, i64::MAX));
            *entry = (entry.0 + 1, entry.1.min(expanded), entry.2.min(ord));
        }
    }
    let mut table = Small::new("known", KNOWN);
    let mut all: Vec<_> = known.into_iter().collect();
    all.sort_unstable();
    for (actor, (targets, expanded, ord)) in all {
        // A target without the log knows nothing of it.
        if targets == open.len() {
            table.push([actor, expanded, ord].map(Into::into).to_vec());
        }
    }
    engine.put(&[table])?;
    let rest = if options.certain { Step::CertainRest } else { Step::Rest };
    let saved = engine.save(rest, &scratch.join("rest.parquet"))?;
    effort.counted.add(saved.counted);
    effort.closed_by = ClosedBy::Driver;
    let mut messages = Vec::new();
    for file in &saved.files {
        read(file, &mut messages)?;
    }
    effort.fetched = messages.len() as u64;
    messages.sort_unstable();
    let mut begins: FxHashMap<i64, (usize, usize)> = FxHashMap::default();
    for (at, message) in messages.iter().enumerate() {
        begins.entry(message.ra).or_insert((at, at)).1 = at + 1;
    }
    let mut raised = rising.take();
    while let Some((target, actor, before, now)) = raised.pop() {
        let Some(&(begin, end)) = begins.get(&actor) else { continue };
        let of = &messages[begin..end];
        let from = of.partition_point(|m| m.rp <= before);
        for message in of[from..].iter().take_while(|m| m.rp <= now) {
            rising.raise(target, message.sa, message.sp);
        }
        if !rising.raised.is_empty() {
            raised.extend(rising.take());
        }
    }
    Ok(())
}

fn read(path: &PathBuf, messages: &mut Vec<Message>) -> Result<(), PlanError> {
    let file = File::open(path).map_err(PlanError::io(path))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(PlanError::table(path))?;
    let mask = ProjectionMask::columns(builder.parquet_schema(), ["ra", "rp", "sa", "sp"]);
    let reader = builder.with_projection(mask).build().map_err(PlanError::table(path))?;
    for batch in reader {
        let batch = batch?;
        let column = |name: &str| {
            let column = batch.column_by_name(name).and_then(|column| column.as_primitive_opt::<Int64Type>());
            column.ok_or_else(|| PlanError::Broken(format!("{} has no numbers '{name}'", path.display())))
        };
        let (ra, rp, sa, sp) = (column("ra")?, column("rp")?, column("sa")?, column("sp")?);
        messages.extend((0..batch.num_rows()).map(|row| Message {
            ra: ra.value(row),
            rp: rp.value(row),
            sa: sa.value(row),
            sp: sp.value(row),
        }));
    }
    Ok(())
}
