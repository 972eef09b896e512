//! The statements of all plans, and the few words in which dialects differ: integer division, quotes, and how a series becomes rows.
//!
//! A statement reads tables of fixed names. `messages`, `checkpoints`, `runs` and `events` are files of the store, the others are put by the driver.

use std::fmt::Write as _;

use demi_schemas::event::{COUNTED_AFTER_LOSS_ID, COUNTED_ID, TIME_SEQS};
use demi_schemas::tables;

/// A dialect of SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// DuckDB.
    DuckDb,
    /// Apache DataFusion, and Ballista with it.
    DataFusion,
    /// Apache Spark.
    Spark,
    /// Trino.
    Trino,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Dialect; 4] = [Dialect::DuckDb, Dialect::DataFusion, Dialect::Spark, Dialect::Trino];

    /// The name of a column that is a word of the language.
    fn quoted(self, name: &str) -> String {
        if self == Dialect::Spark { format!("`{name}`") } else { format!("\"{name}\"") }
    }

    /// The quotient of integers, rounded down.
    fn divided(self, what: &str, by: &str) -> String {
        let operator = match self {
            Dialect::DuckDb => "//",
            Dialect::Spark => "div",
            Dialect::DataFusion | Dialect::Trino => "/",
        };
        format!("({what} {operator} {by})")
    }

    /// The columns of a relation with a row for each number of a series.
    fn series(self, columns: &str, from: &str, to: &str, relation: &str) -> String {
        match self {
            Dialect::DuckDb | Dialect::DataFusion => {
                format!("SELECT {columns}, unnest(generate_series({from}, {to})) AS b FROM {relation}")
            }
            Dialect::Spark => {
                format!("SELECT {columns}, explode(sequence({from}, {to})) AS b FROM {relation}")
            }
            Dialect::Trino => {
                format!(
                    "SELECT {columns}, s.b FROM {relation} CROSS JOIN UNNEST(sequence({from}, {to})) AS s (b)"
                )
            }
        }
    }

    /// Whether the keys of a join are written down as well: Spark and Ballista look for few rows in a file only if they are told which before they begin.
    fn wants_literals(self) -> bool {
        matches!(self, Dialect::DataFusion | Dialect::Spark | Dialect::Trino)
    }
}

/// Most keys that are written down in a statement.
const LITERALS: usize = 1000;

/// What a block's number is multiplied by its receiver with: keys of blocks are `ra * 2^32 + block`.
pub const KEY: i64 = 1 << 32;

/// One statement of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Records that are there twice, and those that contradict.
    Repeated,
    /// The runs of each log, and what is missing before each.
    Completeness,
    /// Events with their positions.
    Positions,
    /// Message ids that several sends have: these are matched by content, in this process.
    Reused,
    /// Who sent to whom, by message id.
    Matched,
    /// Who sent to whom, where messages have no ids and channels neither lose, repeat nor reorder.
    Channels,
    /// What each log had heard of before each block.
    Blocks,
    /// The names of events by their positions.
    Names,
    /// The positions of events by their names.
    Places,
    /// The records of violations.
    Records,
    /// One round of pasts: what the raised positions have heard of, through checkpoints.
    Round,
    /// One round of pasts from messages alone, of certain edges only.
    CertainRound,
    /// One round of futures: what hears of the lowered positions.
    Later,
    /// What may still raise a frontier, fetched when rounds end.
    Rest,
    /// What may still raise a frontier by certain edges.
    CertainRest,
    /// Sends outside their log's order whose message is received in a frontier.
    Alone,
    /// The next positions that receive something.
    NextReceive,
    /// The next beginnings of a handler, by incarnation.
    NextHead,
    /// The next beginnings of a handler in logs whose positions are not in the order of names.
    NextHeadUnordered,
    /// How many events before a bound stand outside their log's order.
    Outside,
    /// The same in logs whose positions are not in the order of names.
    OutsideUnordered,
    /// Which events of these names stand outside their log's order.
    Stands,
    /// An edge that makes a cut inconsistent, if there is one.
    Inconsistent,
    /// Messages sent in a cut and received after it.
    InFlight,
    /// Logs in which events follow each other that no clock tells apart.
    Tied,
    /// The events to fetch: what stands before the bounds, single ones, and actions of the environment.
    Slice,
}

impl Step {
    /// Its name in messages and before its text.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Step::Repeated => "repeated records",
            Step::Completeness => "completeness",
            Step::Positions => "positions",
            Step::Reused => "message ids used again",
            Step::Matched => "messages by id",
            Step::Channels => "messages by channel order",
            Step::Blocks => "checkpoints",
            Step::Names => "names of positions",
            Step::Places => "positions of names",
            Step::Records => "violation records",
            Step::Round => "one round",
            Step::CertainRound => "one round of certain edges",
            Step::Later => "one round forward",
            Step::Rest => "hand-over",
            Step::CertainRest => "hand-over of certain edges",
            Step::Alone => "sends outside the order",
            Step::NextReceive => "next receives",
            Step::NextHead => "next handlers",
            Step::NextHeadUnordered => "next handlers, logs in another order",
            Step::Outside => "events outside the order",
            Step::OutsideUnordered => "events outside the order, logs in another order",
            Step::Stands => "is it outside the order",
            Step::Inconsistent => "is the cut consistent",
            Step::InFlight => "in flight",
            Step::Tied => "logs with equal times",
            Step::Slice => "the slice",
        }
    }

    /// Those that make the tables of lineage, in order.
    pub const TABLES: [Step; 7] = [
        Step::Repeated,
        Step::Completeness,
        Step::Positions,
        Step::Reused,
        Step::Matched,
        Step::Channels,
        Step::Blocks,
    ];

    /// Those of a slice, in order; the round is repeated until it raises nothing.
    pub const SLICE: [Step; 10] = [
        Step::Records,
        Step::Places,
        Step::Round,
        Step::Rest,
        Step::Alone,
        Step::NextReceive,
        Step::NextHead,
        Step::NextHeadUnordered,
        Step::Names,
        Step::Slice,
    ];

    /// Those of questions that are not of a slice.
    pub const QUESTIONS: [Step; 9] = [
        Step::CertainRound,
        Step::CertainRest,
        Step::Later,
        Step::Stands,
        Step::Outside,
        Step::OutsideUnordered,
        Step::Inconsistent,
        Step::InFlight,
        Step::Tied,
    ];

    /// The statement. `keys` are the keys of the blocks that it looks for, where it looks for some.
    #[must_use]
    pub fn text(self, dialect: Dialect, keys: &[i64]) -> String {
        let among = |column: &str| match dialect.wants_literals() && (1..=LITERALS).contains(&keys.len()) {
            true => {
                let listed: Vec<String> = keys.iter().map(ToString::to_string).collect();
                format!(" AND {column} IN ({})", listed.join(", "))
            }
            false => String::new(),
        };
        match self {
            Step::Repeated => {
                "SELECT actor, incarnation, seq, count(*) AS n, count(DISTINCT digest) AS contents\n\
                 FROM events GROUP BY actor, incarnation, seq HAVING count(*) > 1"
                    .into()
            }
            Step::Completeness => COMPLETENESS.into(),
            Step::Positions => positions(dialect),
            Step::Reused => {
                "SELECT msg_id, count(*) AS sends FROM positions WHERE kind = 'send' AND msg_id IS NOT NULL\n\
                 GROUP BY msg_id HAVING count(*) > 1"
                    .into()
            }
            Step::Matched => MATCHED.replace("{block}", &dialect.divided("r.ord", "r.block")),
            Step::Channels => {
                CHANNELS.replace("{from}", &dialect.quoted("from")).replace("{to}", &dialect.quoted("to"))
            }
            Step::Blocks => blocks(dialect),
            Step::Names => NAMES.into(),
            Step::Places => PLACES.into(),
            Step::Records => {
                "SELECT actor, incarnation, seq, fields FROM events WHERE kind = 'violation'".into()
            }
            Step::Round => ROUND.replace("{of_c}", &among("c.key")).replace("{of_m}", &among("m.key")),
            Step::CertainRound => CERTAIN_ROUND.into(),
            Step::Later => LATER.into(),
            Step::Rest => REST.into(),
            Step::CertainRest => format!("{REST} AND m.certain"),
            Step::Alone => ALONE.into(),
            Step::NextReceive => NEXT_RECEIVE.into(),
            Step::NextHead => NEXT_HEAD.replace("{heads}", HEADS),
            Step::NextHeadUnordered => NEXT_HEAD_UNORDERED.replace("{heads}", HEADS),
            Step::Outside => OUTSIDE.into(),
            Step::OutsideUnordered => OUTSIDE_UNORDERED.into(),
            Step::Stands => STANDS.into(),
            Step::Inconsistent => INCONSISTENT.into(),
            Step::InFlight => IN_FLIGHT.into(),
            Step::Tied => format!(
                "SELECT DISTINCT number FROM runs WHERE n > 1 AND seq >= {} AND seq < {}",
                TIME_SEQS.start, TIME_SEQS.end
            ),
            Step::Slice => slice(dialect),
        }
    }
}

/// Every statement, with its name before it and a semicolon behind it.
#[must_use]
pub fn explained(dialect: Dialect, steps: &[Step]) -> String {
    let mut text = String::new();
    for step in steps {
        let repeated = if *step == Step::Round { ": repeated until it raises nothing" } else { "" };
        let _ = writeln!(text, "-- {}{repeated}\n{};\n", step.name(), step.text(dialect, &[]));
    }
    text
}

/// Events that begin a handler or stand for themselves.
const HEADS: &str =
    "'start', 'receive', 'timer_fire', 'crash', 'restart', 'stop', 'isolate', 'heal', 'action'";

/// Positions below 2^60 are counted; others come from clocks, and gaps between them mean nothing.
const COMPLETENESS: &str = "SELECT actor, incarnation, min(seq) AS from_seq, max(seq) AS to_seq,
  min(seq) - 1 - coalesce(lag(max(seq)) OVER (PARTITION BY actor, incarnation ORDER BY min(seq)), 0) AS missing_before
FROM (SELECT actor, incarnation, seq, seq - row_number() OVER (PARTITION BY actor, incarnation ORDER BY seq) AS island
      FROM (SELECT DISTINCT actor, incarnation, seq FROM events WHERE seq < 1152921504606846976) k) i
GROUP BY actor, incarnation, island";

/// Of a message that was counted, one end may say that a record was lost before it. `alone` must never be NULL: NOT NULL drops every event without
/// `via`.
fn positions(dialect: Dialect) -> String {
    let (from, to) = (dialect.quoted("from"), dialect.quoted("to"));
    format!(
        "SELECT e.actor, a.number, a.block, e.incarnation, e.seq, e.kind,\n  \
         replace(e.msg_id, '{COUNTED_AFTER_LOSS_ID}', '{COUNTED_ID}') AS msg_id, e.{from}, e.{to},\n  \
         row_number() OVER (PARTITION BY e.actor ORDER BY e.incarnation, e.seq) AS ord,\n  \
         (e.actor = '_environment' OR (e.kind IN ('send', 'timer_set') AND coalesce(e.via = 'thread', false))) AS alone\n\
         FROM events e JOIN actors a ON a.actor = e.actor"
    )
}

/// Duplicates give several rows, which change no maximum. Timers and messages of an actor to itself are in the order of its log already.
const MATCHED: &str = "SELECT r.number * 4294967296 + {block} AS key, r.number AS ra, r.ord AS rp, s.number AS sa, s.ord AS sp, s.alone
FROM positions r JOIN positions s ON s.msg_id = r.msg_id
WHERE r.kind = 'receive' AND s.kind = 'send' AND (s.alone OR r.number <> s.number) AND NOT r.alone";

/// One message that is lost or repeated shifts all that follow on its channel.
const CHANNELS: &str = "WITH s AS (SELECT number, ord, {from}, {to}, row_number() OVER (PARTITION BY {from}, {to} ORDER BY ord) AS k FROM positions WHERE kind = 'send'),
  r AS (SELECT number, ord, {from}, {to}, row_number() OVER (PARTITION BY {from}, {to} ORDER BY ord) AS k FROM positions WHERE kind = 'receive')
SELECT r.number AS ra, r.ord AS rp, s.number AS sa, s.ord AS sp
FROM r JOIN s ON s.{from} = r.{from} AND s.{to} = r.{to} AND s.k = r.k";

/// What was received in the blocks before each, filled forward to the log's last event, not to its last receive.
fn blocks(dialect: Dialect) -> String {
    let last = dialect.divided("a.last_ord", "a.block");
    let of = "m.key - m.ra * 4294967296";
    let filled = dialect.series(
        "run.ra, run.sa, run.sp",
        "run.b",
        &format!("coalesce(run.next_b, {last})"),
        "run JOIN actors a ON a.number = run.ra",
    );
    let within = format!("WHERE run.b <= coalesce(run.next_b, {last})");
    format!(
        "WITH m AS (SELECT m.ra, m.sa, {of} AS b, max(m.sp) AS sp FROM messages m WHERE NOT m.alone GROUP BY m.ra, m.sa, {of}),\n  \
         run AS (SELECT ra, sa, b + 1 AS b, max(sp) OVER (PARTITION BY ra, sa ORDER BY b) AS sp,\n    \
         lead(b) OVER (PARTITION BY ra, sa ORDER BY b) AS next_b FROM m),\n  \
         filled AS ({filled} {within})\n\
         SELECT ra * 4294967296 + b AS key, ra, sa, sp FROM filled"
    )
}

const NAMES: &str = "SELECT w.target, w.actor, w.ord, CAST(r.incarnation AS BIGINT) AS incarnation, r.seq + (w.ord - r.ord) AS seq
FROM wanted w JOIN runs r ON r.number = w.actor WHERE r.ord <= w.ord AND w.ord < r.ord + r.n";

const PLACES: &str = "SELECT n.place, n.actor, r.ord + (n.seq - r.seq) AS ord
FROM named n JOIN runs r ON r.number = n.actor WHERE CAST(r.incarnation AS BIGINT) = n.incarnation AND r.seq <= n.seq AND n.seq < r.seq + r.n";

const ROUND: &str = "SELECT g.target, g.actor, g.ord FROM (
  SELECT u.target, u.actor, max(u.ord) AS ord FROM (
    SELECT d.target, c.sa AS actor, c.sp AS ord FROM delta d JOIN checkpoints c ON c.key = d.key WHERE true{of_c}
    UNION ALL
    SELECT d.target, m.sa AS actor, m.sp AS ord FROM delta d JOIN messages m ON m.key = d.key WHERE m.rp <= d.hi AND NOT m.alone{of_m}) u
  GROUP BY u.target, u.actor) g
LEFT JOIN frontier f ON f.target = g.target AND f.actor = g.actor WHERE g.ord > coalesce(f.ord, 0)";

const CERTAIN_ROUND: &str = "SELECT g.target, g.actor, g.ord FROM (
  SELECT d.target, m.sa AS actor, max(m.sp) AS ord FROM delta d JOIN messages m ON m.ra = d.actor
  WHERE m.rp > d.lo AND m.rp <= d.hi AND m.certain AND NOT m.alone GROUP BY d.target, m.sa) g
LEFT JOIN frontier f ON f.target = g.target AND f.actor = g.actor WHERE g.ord > coalesce(f.ord, 0)";

const LATER: &str = "SELECT g.target, g.actor, g.ord FROM (
  SELECT d.target, m.ra AS actor, min(m.rp) AS ord FROM delta d JOIN messages m ON m.sa = d.actor
  WHERE m.sp >= d.lo AND m.sp <= d.hi AND m.alone = (d.alone = 1) GROUP BY d.target, m.ra) g
LEFT JOIN frontier f ON f.target = g.target AND f.actor = g.actor WHERE f.ord IS NULL OR g.ord < f.ord";

/// `known` has for each log the least of all targets, of what was expanded and of what is in the frontier.
const REST: &str = "SELECT m.ra, m.rp, m.sa, m.sp FROM messages m
LEFT JOIN known r ON r.actor = m.ra LEFT JOIN known s ON s.actor = m.sa
WHERE NOT m.alone AND m.rp > coalesce(r.expanded, 0) AND m.sp > coalesce(s.ord, 0)";

const ALONE: &str =
    "SELECT DISTINCT f.target, m.sa AS actor, m.sp AS ord FROM frontier f JOIN messages m ON m.ra = f.actor
WHERE m.alone AND m.rp <= f.ord";

const NEXT_RECEIVE: &str =
    "SELECT f.target, f.actor, min(m.rp) AS ord FROM frontier f JOIN messages m ON m.ra = f.actor
WHERE m.rp > f.ord GROUP BY f.target, f.actor";

const NEXT_HEAD: &str = "SELECT b.number, CAST(e.incarnation AS BIGINT) AS incarnation, min(e.seq) AS seq FROM bounds b JOIN events e ON e.actor = b.actor
WHERE (CAST(e.incarnation AS BIGINT) > b.incarnation OR (CAST(e.incarnation AS BIGINT) = b.incarnation AND e.seq >= b.seq)) AND e.kind IN ({heads})
GROUP BY b.number, CAST(e.incarnation AS BIGINT)";

const NEXT_HEAD_UNORDERED: &str =
    "SELECT u.number, min(r.ord) AS ord FROM unordered u JOIN events e ON e.actor = u.actor
  JOIN runs r ON r.number = u.number AND r.seq = e.seq
WHERE r.incarnation = e.incarnation AND r.ord >= u.ord AND e.kind IN ({heads}) GROUP BY u.number";

const OUTSIDE: &str = "SELECT b.target, b.number, count(*) AS n FROM bounds b JOIN events e ON e.actor = b.actor
WHERE (CAST(e.incarnation AS BIGINT) < b.incarnation OR (CAST(e.incarnation AS BIGINT) = b.incarnation AND e.seq < b.seq))
  AND e.kind IN ('send', 'timer_set') AND coalesce(e.via = 'thread', false)
GROUP BY b.target, b.number";

const OUTSIDE_UNORDERED: &str = "SELECT u.target, u.number, count(*) AS n FROM unordered u JOIN events e ON e.actor = u.actor
  JOIN runs r ON r.number = u.number AND r.seq = e.seq
WHERE r.incarnation = e.incarnation AND r.ord < u.ord AND e.kind IN ('send', 'timer_set') AND coalesce(e.via = 'thread', false)
GROUP BY u.target, u.number";

const STANDS: &str = "SELECT n.place FROM named n JOIN events e ON e.seq = n.seq AND e.actor = n.name
WHERE CAST(e.incarnation AS BIGINT) = n.incarnation AND e.kind IN ('send', 'timer_set') AND coalesce(e.via = 'thread', false)";

const INCONSISTENT: &str = "SELECT m.ra, m.rp, m.sa, m.sp FROM messages m JOIN frontier r ON r.actor = m.ra LEFT JOIN frontier s ON s.actor = m.sa
WHERE NOT m.alone AND m.rp <= r.ord AND m.sp > coalesce(s.ord, 0) LIMIT 1";

const IN_FLIGHT: &str = "SELECT count(*) AS n FROM messages m JOIN frontier s ON s.actor = m.sa LEFT JOIN frontier r ON r.actor = m.ra
WHERE NOT m.alone AND m.message AND m.sp <= s.ord AND m.rp > coalesce(r.ord, 0)";

/// One pass over the events.
fn slice(dialect: Dialect) -> String {
    let fields = tables::store_events();
    let columns: Vec<String> = fields
        .fields()
        .iter()
        .filter(|field| !["system", "date"].contains(&field.name().as_str()))
        .map(|field| format!("e.{}", dialect.quoted(field.name())))
        .collect();
    format!(
        "SELECT {}\n\
         FROM events e LEFT JOIN bounds b ON b.actor = e.actor\n  \
         LEFT JOIN (SELECT s.actor, s.incarnation, s.seq FROM singles s\n    \
         UNION SELECT u.actor, CAST(r.incarnation AS BIGINT) AS incarnation, r.seq FROM unordered u JOIN runs r ON r.number = u.number WHERE r.ord < u.ord) p\n  \
         ON p.actor = e.actor AND p.incarnation = CAST(e.incarnation AS BIGINT) AND p.seq = e.seq\n\
         WHERE p.actor IS NOT NULL OR (e.actor = '_environment' AND e.kind = 'action')\n  \
         OR CAST(e.incarnation AS BIGINT) < b.incarnation OR (CAST(e.incarnation AS BIGINT) = b.incarnation AND e.seq < b.seq)",
        columns.join(", ")
    )
}
