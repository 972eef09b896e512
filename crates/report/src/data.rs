//! What the page is given, as JSON. The page reads `demi-page/2` only.

use demi_lineage::export::Joint;
use demi_schemas::Kind;
use demi_schemas::summary::{CurvePoint, PhaseSummary};
use serde::{Serialize, Serializer};

/// Version of the data, checked by the page.
pub(crate) const PAGE: &str = "demi-page/2";

/// Numbers as text: JavaScript rounds what is larger than 2^53, and a name that is rounded names nothing.
fn texts<S: Serializer, N: ToString>(numbers: &[N], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(numbers.iter().map(N::to_string))
}

/// A number as text.
fn text<S: Serializer, N: std::fmt::Display>(number: &N, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

/// A number that may be absent as text.
fn maybe_text<S: Serializer>(number: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => serializer.collect_str(number),
        None => serializer.serialize_none(),
    }
}

/// Pairs of numbers as texts.
fn text_pairs<S: Serializer>(pairs: &[(u64, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(pairs.iter().map(|(a, b)| [a.to_string(), b.to_string()]))
}

/// Counts with their names, the counts as texts.
fn named_texts<S: Serializer>(counts: &[(String, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(counts.iter().map(|(name, count)| (name, count.to_string())))
}

/// No text, no event: the number that the page takes for nothing.
pub(crate) const NOTHING: i64 = -1;

/// The content of a page.
#[derive(Clone, Debug, Serialize)]
pub struct Page {
    /// [`PAGE`].
    pub(crate) schema: &'static str,
    /// Version of the program.
    pub(crate) version: &'static str,
    /// The recorded system.
    pub(crate) system: String,
    /// Fingerprints of the violation.
    pub(crate) violation: Vec<String>,
    /// Lines for the head of the page.
    pub(crate) facts: Vec<Fact>,
    /// Names of the kinds of events, by code.
    pub(crate) kinds: Vec<&'static str>,
    /// Names of what joins a message's ends, by code.
    pub(crate) joints: Vec<&'static str>,
    /// The executions: the recorded one, the minimized one, or both in this order.
    pub(crate) traces: Vec<TraceData>,
    /// Size against replays, of a minimization.
    pub(crate) curve: Vec<CurvePoint>,
    /// What each phase of a minimization did.
    pub(crate) phases: Vec<PhaseSummary>,
    /// What is complete of each log.
    pub(crate) completeness: Vec<Completeness>,
    /// Of two executions that are compared: where the log of each actor first differs.
    pub(crate) differences: Vec<Difference>,
    /// The invariants of a file, as they stand in the recorded execution.
    pub(crate) invariants: Vec<Invariant>,
    /// Messages without a counterpart, by the reason.
    #[serde(serialize_with = "named_texts")]
    pub(crate) unmatched: Vec<(String, u64)>,
    /// What should be known before trusting what is shown.
    pub(crate) warnings: Vec<String>,
    /// Whether events are asked of a server.
    pub(crate) served: bool,
}

impl Page {
    /// A page with nothing on it.
    pub(crate) fn new(system: String) -> Page {
        Page {
            schema: PAGE,
            version: env!("CARGO_PKG_VERSION"),
            system,
            violation: Vec::new(),
            facts: Vec::new(),
            kinds: Kind::ALL.iter().map(|k| k.as_str()).collect(),
            joints: Joint::ALL.iter().map(|j| j.as_str()).collect(),
            traces: Vec::new(),
            curve: Vec::new(),
            phases: Vec::new(),
            completeness: Vec::new(),
            differences: Vec::new(),
            invariants: Vec::new(),
            unmatched: Vec::new(),
            warnings: Vec::new(),
            served: false,
        }
    }

    /// Adds a line to the head of the page.
    pub(crate) fn fact(&mut self, name: &str, value: impl ToString) {
        self.facts.push(Fact { name: name.to_owned(), value: value.to_string() });
    }
}

/// The first event of an actor at which two executions differ; [`NOTHING`] in one that has no further event of the actor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    pub(crate) actor: String,
    pub(crate) first: i64,
    pub(crate) second: i64,
}

/// A line in the head of the page.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Fact {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// An execution on the page.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct TraceData {
    /// `recorded`, `minimized`, or what else tells it from the others of the page.
    pub(crate) name: String,
    /// Names of the actors.
    pub(crate) actors: Vec<String>,
    /// How many events there are.
    pub(crate) events: u64,
    /// How many steps there are, of a served execution; others count themselves.
    pub(crate) steps: u64,
    /// The events, in the order of the linear extension; none of a served execution.
    pub(crate) columns: Columns,
    /// How the actors' variables changed.
    pub(crate) changes: Changes,
    /// What is to be said of an event besides its content: what it sent, what breaks without it.
    pub(crate) notes: Vec<(u32, String)>,
    /// By event: the event of the first trace that is alike, or [`NOTHING`].
    pub(crate) align: Vec<i64>,
    /// Events at which the violation is seen.
    pub(crate) violations: Vec<u32>,
    /// Events that left the default order of an exploration.
    pub(crate) deviations: Vec<u32>,
    /// Where the variables come from: `model`, `log`, or nothing.
    pub(crate) states_from: &'static str,
}

/// Columns of events. Texts are numbers into `texts`, [`NOTHING`] for none.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Columns {
    pub(crate) texts: Vec<String>,
    pub(crate) actor: Vec<u32>,
    pub(crate) incarnation: Vec<u32>,
    #[serde(serialize_with = "texts")]
    pub(crate) seq: Vec<u64>,
    pub(crate) kind: Vec<u8>,
    /// Sum of [`KEPT`], [`EXTERNAL`], [`LOOSE`], [`AFFECTED`].
    pub(crate) flags: Vec<u8>,
    pub(crate) joint: Vec<u8>,
    /// Position in the order of its actor, from 0; [`NOTHING`] where it has none.
    pub(crate) place: Vec<i64>,
    #[serde(rename = "type")]
    pub(crate) type_: Vec<i64>,
    pub(crate) payload: Vec<i64>,
    /// Structured content, as JSON.
    pub(crate) fields: Vec<i64>,
    pub(crate) msg_id: Vec<i64>,
    pub(crate) from: Vec<i64>,
    pub(crate) to: Vec<i64>,
    pub(crate) time: Vec<i64>,
    pub(crate) source: Vec<i64>,
    #[serde(serialize_with = "texts")]
    pub(crate) offset: Vec<i64>,
    /// The edges of happens-before that have an end among these events.
    pub(crate) edges: Edges,
}

/// Edges of happens-before besides the order of logs, sorted by effect and cause. Events are known by their position in the order,
/// so an end may lie outside of what the columns tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Edges {
    pub(crate) cause: Vec<u32>,
    pub(crate) cause_actor: Vec<u32>,
    pub(crate) effect: Vec<u32>,
    pub(crate) effect_actor: Vec<u32>,
    pub(crate) joint: Vec<u8>,
    /// 1 where it does not rest on a guess.
    pub(crate) certain: Vec<u8>,
}

/// The event is in the causal past of the violation.
pub(crate) const KEPT: u8 = 1;
/// It came from outside.
pub(crate) const EXTERNAL: u8 = 2;
/// It has no place in the order of its log.
pub(crate) const LOOSE: u8 = 4;
/// The violation is about it.
pub(crate) const AFFECTED: u8 = 8;

/// Changes of variables, in the order of the events.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Changes {
    pub(crate) texts: Vec<String>,
    pub(crate) event: Vec<u32>,
    pub(crate) actor: Vec<u32>,
    /// Name of the variable, a number into `texts`.
    pub(crate) variable: Vec<u32>,
    /// What it became, a number into `texts`; [`NOTHING`] where it is gone.
    pub(crate) value: Vec<i64>,
}

/// The completeness of one incarnation of an actor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Completeness {
    pub(crate) actor: String,
    pub(crate) incarnation: u32,
    #[serde(serialize_with = "text")]
    pub(crate) events: u64,
    #[serde(serialize_with = "text")]
    pub(crate) first: u64,
    #[serde(serialize_with = "text")]
    pub(crate) last: u64,
    /// How many sequence numbers from 1 to `last` are missing; 0 where they come from a clock and say nothing of gaps.
    #[serde(serialize_with = "text")]
    pub(crate) missing: u64,
    /// The first missing ranges, both ends included.
    #[serde(serialize_with = "text_pairs")]
    pub(crate) gaps: Vec<(u64, u64)>,
}

/// An invariant, as it stands in an execution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Invariant {
    pub(crate) holds: String,
    pub(crate) name: Option<String>,
    pub(crate) class: Option<String>,
    /// How much speaks for it, and how often it was tried, where it was inferred.
    pub(crate) bits: Option<f64>,
    #[serde(serialize_with = "maybe_text")]
    pub(crate) episodes: Option<u64>,
    /// States or messages looked at here.
    #[serde(serialize_with = "text")]
    pub(crate) checked: u64,
    /// `holds`, `fails` or `nothing told`.
    pub(crate) found: &'static str,
    /// What it fails of, and the event with which it fails first.
    pub(crate) of: String,
    pub(crate) event: String,
    /// The number of that event; [`NOTHING`] where it is not shown.
    pub(crate) at: i64,
}
