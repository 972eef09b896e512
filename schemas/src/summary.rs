//! Summary files and the JSON that commands print for machines.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::explore_summary::{
    ExploreDeviation, ExploreFinding, ExploreLevel, ExplorePromise, ExploreSummary,
};
pub use crate::fuzz_summary::FuzzSummary;
use crate::scenario::NetworkRule;

/// What is complete of one incarnation of one actor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActorCompleteness {
    /// Who.
    pub actor: String,
    /// Which incarnation.
    pub incarnation: u32,
    /// Events held in the store.
    pub events: u64,
    /// Lowest sequence number.
    pub first_seq: u64,
    /// Highest sequence number.
    pub last_seq: u64,
    /// Missing sequence numbers between 1 and `last_seq`, as inclusive ranges; at most 100 are listed.
    pub gaps: Vec<(u64, u64)>,
    /// How many sequence numbers are missing between 1 and `last_seq`.
    pub missing: u64,
    /// Records of this load that were already there with equal content.
    pub duplicates: u64,
    /// Records of this load that were already there with other content; they went to quarantine.
    pub conflicts: u64,
}

/// Events of one incarnation of an actor in one source that are stamped earlier than an event before them in the actor's log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackwardStamps {
    /// Who.
    pub actor: String,
    /// Which incarnation.
    pub incarnation: u32,
    /// How many there are.
    pub events: u64,
    /// File or connection.
    pub source: String,
    /// Line of the first one, from 1; 0 where it is not known.
    pub line: u64,
    /// What the first one is stamped, in UTC.
    pub time: String,
    /// What the event before it is stamped.
    pub before: String,
    /// The largest step back.
    pub most: String,
}

/// Most actors that are named whose stamps run backwards.
const NAMED_BACKWARDS: usize = 5;

impl BackwardStamps {
    /// What is to be known of stamps that run backwards: by actor, how many events and the first place.
    #[must_use]
    pub fn told(found: &[BackwardStamps]) -> Vec<String> {
        let mut by_actor: Vec<(&BackwardStamps, u64)> = Vec::new();
        for each in found {
            match by_actor.last_mut() {
                Some((first, events))
                    if (&first.actor, first.incarnation) == (&each.actor, each.incarnation) =>
                {
                    *events += each.events;
                }
                _ => by_actor.push((each, each.events)),
            }
        }
        let more = by_actor.len().saturating_sub(NAMED_BACKWARDS);
        let told = by_actor.into_iter().take(NAMED_BACKWARDS).map(|(first, events)| {
            let life = match first.incarnation {
                0 => String::new(),
                n => format!(" (incarnation {n})"),
            };
            let (are, them) = if events == 1 { ("event is", "it") } else { ("events are", "them") };
            format!(
                "the stamps of {}{life} run backwards through its log: {events} {are} stamped earlier than the event before {them}, by up to {}; \
                 first {}:{}: {} after {}",
                first.actor.escape_debug(),
                first.most,
                first.source.escape_debug(),
                first.line,
                first.time,
                first.before,
            )
        });
        let mut told: Vec<String> = told.collect();
        if more > 0 {
            told.push(format!("the stamps of {more} more actors run backwards"));
        }
        told
    }
}

/// What `ingest load` did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadSummary {
    /// Partition loaded into.
    pub system: String,
    /// Files and streams read.
    pub sources: u64,
    /// Lines read, empty ones left out.
    pub lines: u64,
    /// Records added.
    pub added: u64,
    /// Records that were already there with equal content.
    pub duplicates: u64,
    /// Records that were already there with other content.
    pub conflicts: u64,
    /// Lines put in quarantine, conflicts included; those already in quarantine are not counted again.
    pub quarantined: u64,
    /// Lines that were already in quarantine.
    #[serde(default)]
    pub already_quarantined: u64,
    /// Quarantined lines by reason code.
    pub quarantine_reasons: BTreeMap<String, u64>,
    /// With a mapping: lines that hold no event and need not, such as comments, headers and delimiters.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// Records of events that were deleted from the store; they are not added again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deleted: u64,
    /// Actors whose stamps run backwards through their logs, by source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backwards: Vec<BackwardStamps>,
    /// With a mapping: what is odd about events that were loaded, each with its file and line; at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Name of the execution within its source, where a source holds several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<String>,
    /// Where a source holds several executions: each of them, loaded into a system of its own. The counts of this summary are
    /// then their sums, and `actors` is in each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub executions: Vec<LoadSummary>,
    /// What is complete, by actor and incarnation.
    pub actors: Vec<ActorCompleteness>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Which events of the affected actors the causal past keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProvenanceRule {
    /// The affected actors' last events too.
    #[default]
    Inclusive,
    /// Only what is strictly before at least one affected actor's last delivery (DEMi, NSDI'16).
    Strict,
}

/// Why messages found no counterpart, with how many.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unmatched {
    /// Sends that nobody received by the end of the logs.
    pub in_flight: u64,
    /// Sends that were overtaken for good on a channel that is otherwise in order.
    pub lost: u64,
    /// Receives whose sender has no log, or has a gap where the send must be.
    pub sender_missing: u64,
    /// Receives of a message that was received before.
    pub duplicate: u64,
    /// Messages from outside the recorded actors without a recorded send.
    pub external: u64,
}

/// Edges or steps whose later end is stamped before the earlier one, by more than the stamps are coarse.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgainstStamps {
    /// Those both ends of which have a stamp.
    pub compared: u64,
    /// Those of them that run against their stamps.
    pub against: u64,
    /// The earlier and the later event of the first of these.
    pub first: [String; 2],
    /// Those of the one that runs against them most.
    pub most: [String; 2],
    /// By how many nanoseconds it does.
    pub most_nanos: u64,
}

/// Messages there and back between two actors that no constant difference of their clocks explains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Contradiction {
    /// Send and receive of the message there that took least by the stamps.
    pub there: [String; 2],
    /// Send and receive of the one back.
    pub back: [String; 2],
    /// How many nanoseconds both took less than nothing.
    pub nanos: u64,
}

/// The order that was found, compared with the stamps of the logs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StampCheck {
    /// Events with a stamp that can be read.
    #[serde(default)]
    pub stamped: u64,
    /// Certain edges between logs.
    pub edges: AgainstStamps,
    /// Steps from an event to the next of its log that has a stamp.
    pub logs: AgainstStamps,
    /// Logs with a step that runs against its stamps.
    pub logs_back: u64,
    /// Pairs of actors whose messages no constant difference of clocks explains.
    pub contradictions: Vec<Contradiction>,
}

/// How an engine found the causal past that an execution was built of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanSummary {
    /// The engine.
    pub engine: String,
    /// The version of the store's events that the past is of.
    pub events_version: u64,
    /// Rounds on the engine.
    pub rounds: u32,
    /// Who ended them: `rounds`, or the `driver` with what it fetched.
    pub closed_by: String,
    /// Messages that the driver fetched to end them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fetched: u64,
    /// Rows of the tables of lineage that the engine read in these rounds, where it counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_read: Option<u64>,
    /// Bytes that it read of files in these rounds, where it counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_read: Option<u64>,
}

/// What `build` writes to `EXEC/summary.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BuildSummary {
    /// Partition built from.
    pub system: String,
    /// Events read.
    pub events: u64,
    /// Events in the causal past of the violation.
    pub kept: u64,
    /// Events left out.
    pub pruned: u64,
    /// Deliveries (messages and timers) read.
    pub deliveries: u64,
    /// Deliveries kept.
    pub kept_deliveries: u64,
    /// Messages joined to their send.
    pub matched: u64,
    /// Edges between actors that only vector clocks tell.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clock_edges: u64,
    /// Edges between actors that only parents and links of spans tell.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub span_edges: u64,
    /// Edges between threads that their operations tell.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub operation_edges: u64,
    /// The order compared with the stamps of the logs; absent where no event has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamps: Option<StampCheck>,
    /// What found no counterpart.
    pub unmatched: Unmatched,
    /// The actors that the violation names.
    pub affected: Vec<String>,
    /// The violation's fingerprints, where a record says them.
    pub violation: Vec<String>,
    /// The rule of the causal past.
    pub rule: ProvenanceRule,
    /// Actors whose stamps run backwards through their logs, as they were found when these were loaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backwards: Vec<BackwardStamps>,
    /// Whether deliveries are in channel order everywhere it can be judged.
    pub channels_in_order: bool,
    /// Happens-before depth of the longest chain.
    pub depth: u64,
    /// The engine's part, where one found the causal past: only that was read then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanSummary>,
    /// What should be known before trusting the result.
    pub warnings: Vec<String>,
    /// The part of the system's events that it was built of; absent where it was built of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowSummary>,
}

/// What a window begins at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Beginning {
    /// The start of the system: nothing was left out before it.
    Start,
    /// A consistent cut at which no message was on its way.
    Ground,
    /// A consistent cut at which messages were on their way.
    Cut,
}

/// A part of a system's events, between two consistent cuts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WindowSummary {
    /// What was asked for.
    pub asked: String,
    /// What it begins at.
    pub begins: Beginning,
    /// Events of the system before it.
    pub before: u64,
    /// Events of the system after it.
    pub after: u64,
    /// Messages and timers that were on their way at its beginning; their sends are brought along.
    pub in_flight: u64,
    /// Records before it that are brought along since they tell the last state of their actor.
    pub states: u64,
    /// Events of the system without a time that can be read: they are before the window unless they come after something in it.
    pub untimed: u64,
    /// Whether a replay from a first state can follow it.
    pub replayable: bool,
}

/// The three outcomes of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The invariant is broken.
    Violates,
    /// The schedule ran and nothing is broken.
    DoesNotViolate,
    /// The schedule could not be followed.
    Diverged,
}

impl Verdict {
    /// Exit status of the command: 0, 1, 3.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Verdict::Violates => 0,
            Verdict::DoesNotViolate => 1,
            Verdict::Diverged => 3,
        }
    }

    /// The name used in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Violates => "violates",
            Verdict::DoesNotViolate => "does-not-violate",
            Verdict::Diverged => "diverged",
        }
    }
}

/// Where a replay first left the schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Divergence {
    /// Step of the schedule, from 1.
    pub step: u64,
    /// Deliveries made before it.
    pub delivery: u64,
    /// The logged event, as `ACTOR/SEQ`, if the schedule came from logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// What the schedule or log says.
    pub expected: String,
    /// What the model did instead.
    pub got: String,
    /// State of the actor at that point.
    pub state: String,
    /// File of the raw log line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Byte offset of the raw log line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}

/// What `replay --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplaySummary {
    /// The outcome.
    pub verdict: Verdict,
    /// Fingerprints of the violation found.
    pub violation: Vec<String>,
    /// Whether one of them is among those of the schedule's header; null where the header has none.
    pub matches_recorded: Option<bool>,
    /// Deliveries made.
    pub deliveries: u64,
    /// External events as DEMi counts them.
    pub externals: u64,
    /// Steps that could not be followed exactly.
    pub divergences: u64,
    /// The first of them.
    pub first_divergence: Option<Divergence>,
    /// Number of deliveries after which the violation was first seen.
    pub violation_at: Option<u64>,
    /// Where the violation is a livelock: the deliveries after which everything is as it was before, for ever.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub round: Vec<String>,
    /// The network rule that was enforced.
    pub network: NetworkRule,
    /// Digest of the run: every delivery with everything it sent, in order.
    pub digest: String,
    /// Messages that handlers of the model sent and no log has, in programs with threads outside their actors: a mended
    /// model may send more. None was ever received.
    #[serde(default)]
    pub unrecorded_sends: u64,
    /// Copies of repeated messages that a scheduler of the model made and no log has: a log may have been closed, or the
    /// receiver stopped, before they were sent.
    #[serde(default)]
    pub withheld_copies: u64,
    /// Of a causal past: steps that were added to it, because the model needs them and logs do not tell that they are
    /// causes.
    #[serde(default)]
    pub added_steps: u64,
    /// Whether a second run gave the same digest; null where it was not tried.
    pub deterministic: Option<bool>,
    /// Wall-clock time of the first run.
    pub seconds: f64,
}

/// One line of the table of phases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseSummary {
    /// Name of the phase.
    pub phase: String,
    /// Schedules tested.
    pub replays: u64,
    /// Deliveries executed for them.
    pub executed: u64,
    /// Wall-clock time.
    pub seconds: f64,
    /// Size after the phase.
    pub deliveries: u64,
    /// External events after the phase.
    pub externals: u64,
    /// Timers after the phase.
    pub timers: u64,
}

/// What one pass won in all starts together, and what it cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PassYield {
    /// Name of the pass.
    pub pass: String,
    /// How often it ran.
    pub runs: u64,
    /// How often it found something smaller.
    pub gains: u64,
    /// Schedules tested.
    pub replays: u64,
    /// Deliveries executed for them.
    pub executed: u64,
    /// Time, the threads' added up.
    pub seconds: f64,
    /// Deliveries by which it shortened witnesses; fewer external events may cost deliveries, so it can be negative.
    pub deliveries: i64,
    /// External events by which it shortened witnesses.
    pub externals: i64,
    /// Why its searches, or some of them, could not be made. There nothing was looked for.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unsearchable: BTreeSet<String>,
}

/// A point of the curve of size against work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// Schedules tested so far.
    pub replays: u64,
    /// Deliveries executed so far.
    pub executed: u64,
    /// Size of the best schedule.
    pub deliveries: u64,
    /// Its external events.
    pub externals: u64,
}

/// What the closing check of 1-minimality found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MinimalityCheck {
    /// Deliveries and externals removed alone.
    pub tried: u64,
    /// The matchers with which each removal was tried.
    pub matchers: Vec<String>,
}

/// A schedule that has fewer steps than the result, or fewer external events, but not both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OtherResult {
    /// Its steps.
    #[serde(default)]
    pub steps: u64,
    /// Its deliveries.
    pub deliveries: u64,
    /// Its external events.
    pub externals: u64,
    /// The file in OUT.
    pub file: String,
    /// Components that its messages from outside lack, such as members of a bootstrap list; in no other result are
    /// contents changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
}

/// Which switches of a scenario a violation needs: with all others off it is still there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NeededSummary {
    /// The switches, by name.
    pub switches: Vec<String>,
    /// Whether the violation is gone with any one of them off and all others on: then no other set will do.
    pub sole: bool,
}

/// The size of a recording that was reduced by local passes alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReducedSummary {
    /// Steps.
    pub steps: u64,
    /// Deliveries.
    pub deliveries: u64,
    /// External events.
    pub externals: u64,
    /// Whether each remaining step was removed alone and the violation was gone.
    pub one_minimal: bool,
    /// Seconds after which it was there.
    pub seconds: f64,
}

/// What the processes of programs did that run as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramWork {
    /// Steps of nodes that were asked for.
    pub steps: u64,
    /// The part of them that was known from before, from 0 to 1.
    pub from_memory: f64,
    /// Steps that processes made.
    pub executed: u64,
    /// Processes that were started.
    pub starts: u64,
    /// Processes that were copied from others, without a start.
    pub copies: u64,
    /// Operations that clients began.
    #[serde(default)]
    pub operations: u64,
    /// How many of them were answered.
    #[serde(default)]
    pub answered: u64,
    /// How many of the answers say that the operation was not done.
    #[serde(default)]
    pub refused: u64,
}

/// What `minimize` writes to `OUT/summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MinimizeSummary {
    /// The outcome: `violates`, unless the input could not be shown to.
    pub verdict: Verdict,
    /// Fingerprints of the violation that the result ends in.
    pub violation: Vec<String>,
    /// Steps of the result: everything that is in the schedule file.
    #[serde(default)]
    pub steps: u64,
    /// Deliveries of the result.
    pub deliveries: u64,
    /// Its external events: delivered external messages, starts, and injected faults.
    pub externals: u64,
    /// Its timers.
    pub timers: u64,
    /// Steps of the input.
    #[serde(default)]
    pub initial_steps: u64,
    /// Deliveries of the input.
    pub initial_deliveries: u64,
    /// External events of the input.
    pub initial_externals: u64,
    /// Schedules tested.
    pub replays: u64,
    /// Deliveries executed for them.
    pub executed: u64,
    /// Wall-clock time.
    pub seconds: f64,
    /// Whether each remaining delivery and external was removed alone and the violation was gone.
    pub one_minimal: bool,
    /// How that was checked.
    pub minimality: MinimalityCheck,
    /// The network rule that was enforced.
    pub network: NetworkRule,
    /// Where a weaker rule than the scenario's was enforced: the first step of the result that the scenario's network
    /// cannot make, if there is one. No run of the system can then follow the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_schedulable: Option<String>,
    /// What counted as smaller first: `steps` or `externals`, the other breaking ties, and deliveries after both.
    pub objective: String,
    /// No violating execution with the result's external events, all actors started first, has fewer deliveries than
    /// this; null where nothing was proven. `certificate.json` says more.
    pub at_least: Option<u64>,
    /// What happened, reduced by local passes alone, in `reduced.jsonl`: the recorded order and causes are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduced: Option<ReducedSummary>,
    /// Which switches of the scenario what happened needs, where it has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduced_needs: Option<NeededSummary>,
    /// Which switches the result needs. Where these are others than the recording needs, the result is of another defect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<NeededSummary>,
    /// The switches that were off in the search, since what happened does not need them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switched_off: Vec<String>,
    /// The rest of the Pareto front over steps and external events, with the file of each.
    pub others: Vec<OtherResult>,
    /// What was left out because the time ended, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Shorter schedules that were thrown away because they failed their strict replay: a defect of this program, or of a model that does not do the
    /// same twice.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused: u64,
    /// Why one of them failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_because: Option<String>,
    /// Digest of the strict replay of the result.
    pub digest: String,
    /// Why the work ended: `fixpoint`, `budget` or `interrupted`.
    pub ended: String,
    /// What each phase did.
    pub phases: Vec<PhaseSummary>,
    /// What each pass won, all starts together, the most deliveries won for the work first.
    #[serde(default)]
    pub passes: Vec<PassYield>,
    /// Size against work, one point an improvement.
    pub curve: Vec<CurvePoint>,
    /// What processes did, where the model is a program that runs as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programs: Option<ProgramWork>,
}
