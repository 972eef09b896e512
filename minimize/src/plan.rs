//! The plan: which strategy runs when, with what share of the budget, until when. Every number that tunes the work is here.

use crate::search::Alike::{self, ReceiverAndType, Type};
use crate::search::Lead::{self, Light, Nearest, Rare};

/// When a turn is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// In any case.
    Always,
    /// While nothing is proven of the incumbent.
    Unproven,
    /// While something smaller may exist over everything recorded.
    Open,
    /// Once the shortest execution over some external events is proven, and nothing smaller was found.
    Proven,
}

/// What a turn does.
#[derive(Clone, Copy, Debug)]
pub enum Strategy {
    /// Reduces what local passes left, and the recording where it is short, with another policy first each time; of the policies those in this
    /// range.
    Recorded {
        /// The first policy of this wave.
        from: usize,
        /// The policy after its last.
        to: usize,
        /// The part of the budget for all policies.
        part: f64,
    },
    /// Beam searches over sets of external events.
    Beam(Reaches),
    /// Beam searches over sets of few external messages, where no bound leads the way: so many deliveries in each layer, one width after the other.
    Small(&'static [u64]),
    /// Searches over the kinds of deliveries that results have.
    Kinds(&'static [Near]),
    /// Searches in which actors start at any time.
    Late,
    /// Rounds of random walks and of iterated local search.
    Rounds(Effort),
    /// Random runs of a system in which each step costs much.
    Runs,
    /// Other beginnings, until the budget ends.
    Restarts,
}

/// A line of the plan.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// The name, by which it can be left out.
    pub name: &'static str,
    /// What it does.
    pub strategy: Strategy,
    /// When it is taken.
    pub when: When,
    /// The part of the budget after which it begins nothing new.
    pub until: f64,
    /// Whether a proof is tried after it where it found something better.
    pub prove: bool,
}

const fn turn(name: &'static str, strategy: Strategy, when: When, until: f64, prove: bool) -> Turn {
    Turn { name, strategy, when, until, prove }
}

/// The portfolio, from the first turn to the last. Small sets owe nothing to the recorded order and take a moment, so they come first. What is near a recording leads to other results than what is far better, so
/// narrow beams come before walks and wide ones after; those end before the budget does, since what they find is often one
/// step from something smaller. After them come checks, other endings, and the proof.
pub const PLAN: [Turn; 16] = [
    turn("small sets", Strategy::Small(&QUICK_WIDTHS), When::Always, 0.5, true),
    turn("recorded", Strategy::Recorded { from: 0, to: 2, part: 0.15 }, When::Always, 1.0, true),
    turn("random runs", Strategy::Runs, When::Unproven, 0.8, false),
    turn("trails", Strategy::Kinds(&TRAILS), When::Unproven, 0.5, false),
    turn("recorded", Strategy::Recorded { from: 2, to: POLICIES, part: 0.25 }, When::Unproven, 1.0, true),
    turn("starts at any time", Strategy::Late, When::Proven, 1.0, true),
    turn("beams elsewhere", Strategy::Beam(ELSEWHERE), When::Proven, 1.0, false),
    turn("narrow beams", Strategy::Beam(NARROW), When::Unproven, 1.0, false),
    turn("quick rounds", Strategy::Rounds(QUICK), When::Unproven, 1.0, false),
    turn("kinds", Strategy::Kinds(&RINGS), When::Unproven, 1.0, true),
    turn("starts at any time", Strategy::Late, When::Unproven, 1.0, true),
    turn("wide beams", Strategy::Beam(WIDE), When::Unproven, 0.85, false),
    turn("rounds", Strategy::Rounds(LITTLE), When::Open, 1.0, false),
    turn("kinds", Strategy::Kinds(&RINGS), When::Unproven, 1.0, true),
    turn("small sets", Strategy::Small(&SMALL_WIDTHS), When::Open, 1.0, true),
    turn("restarts", Strategy::Restarts, When::Open, 1.0, false),
];

/// How much of a budget strategies may use up; the rest is for the checks of 1-minimality, the proof and smaller contents.
pub const SEARCHED: f64 = 0.8;
/// The part of what is left that a strategy may use after its last gain.
pub const IDLE_PART: f64 = 0.3;
/// Policies that recorded jobs begin with, at most.
pub const POLICIES: usize = 6;

/// How much rounds look for.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Rounds in a row without gain after which there are no more.
    pub patience: usize,
    /// Deliveries that the walks or the local search of one job may execute.
    pub walked: u64,
    /// Most rounds.
    pub rounds: usize,
    /// Part of what is left which one round may take.
    pub part: f64,
}

/// What finds a result that is not far off.
pub const QUICK: Effort = Effort { patience: 1, walked: 700_000, rounds: 2, part: 0.15 };
/// What looks around a good one.
pub const LITTLE: Effort = Effort { patience: 2, walked: 700_000, rounds: 12, part: 0.25 };
/// What each job of a round does: from which of the leads, and whether it walks at random or searches near it.
pub const TURNS: [(usize, bool); 8] =
    [(0, true), (1, true), (0, false), (1, false), (0, true), (0, true), (0, false), (0, true)];
/// Violating walks of one job that are reduced.
pub const FINDS: usize = 12;

/// Random runs of one batch that are reduced.
pub const RUN_JOBS: usize = 4;
/// Batches of them, at most.
pub const RUN_BATCHES: usize = 64;
/// Part of what is left for one batch of them.
pub const RUN_PART: f64 = 0.3;
/// Part of what is left that they may use after their last gain.
pub const RUN_IDLE: f64 = 0.5;
/// The part of a batch's time in which a run that violates is looked for; the rest is for what local passes make of it.
pub const RUN_SEARCHED: f64 = 0.6;

/// Part of the budget that restarts leave for the checks of the result, and for a proof.
pub const KEPT: f64 = 0.08;
/// The same where messages may get smaller contents, for which something is looked for again.
pub const FOR_CONTENTS: f64 = 0.4;
/// How often the checks of a result try each step under each policy, at most: before and after contents, and what they gain.
pub const CHECKS: usize = 6;
/// Seconds that a batch of restarts needs to do anything at all.
pub const LEAST_SECONDS: f64 = 0.2;
/// The same in replays.
pub const LEAST_REPLAYS: u64 = 400;
/// The same in states.
pub const LEAST_STATES: u64 = 40_000;
/// Jobs of a batch of restarts.
pub const RESTART_JOBS: usize = 8;
/// Part of what is left that a batch of restarts may take: enough for each job to come to its own end, and so little that many
/// batches follow each other.
pub const RESTART_PART: f64 = 0.6;
/// Deliveries that the walks or the local search of one restart may execute.
pub const RESTART_WALKED: u64 = 2_000_000;
/// Results on the Pareto front that restarts begin with.
pub const RESTART_LEADS: usize = 4;
/// How often the searches of restarts double their limits, at most: then one takes a whole share.
pub const RESTART_DOUBLED: u32 = 6;
/// Random sets of messages that a restart tries to leave out of the recording.
pub const RESTART_MASKS: usize = 60;

/// How far a search near a witness goes.
#[derive(Clone, Copy, Debug)]
pub struct Near {
    /// What makes two deliveries one kind.
    pub alike: Alike,
    /// Whether deliveries come in the order of the witness, of which any may be passed over.
    pub in_order: bool,
    /// Deliveries beyond what the witness has of each kind, at most.
    pub beyond: u8,
    /// Configurations, not many more.
    pub states: u64,
    /// Deliveries made in each layer, not many more, from the rarest configurations ([`Lead::Rare`]); nothing for all.
    pub width: Option<u64>,
}

/// How far the searches over kinds go, in the order in which they are tried. A beam comes before the whole of a ring, since it is
/// quick, and a long result has far more configurations around it than can be looked at.
pub const RINGS: [Near; 9] = [
    near(ReceiverAndType, 0, Some(3_200)),
    near(Type, 0, Some(3_200)),
    near(ReceiverAndType, 1, Some(3_200)),
    near(Type, 0, Some(24_000)),
    near(ReceiverAndType, 2, Some(3_200)),
    near(ReceiverAndType, 1, Some(24_000)),
    near(Type, 1, Some(24_000)),
    near(ReceiverAndType, 1, None),
    near(Type, 0, Some(100_000)),
];

const fn near(alike: Alike, beyond: u8, width: Option<u64>) -> Near {
    let states = if width.is_some() { u64::MAX } else { RING_STATES };
    Near { alike, in_order: false, beyond, states, width }
}

const fn in_order(alike: Alike, beyond: u8, width: u64) -> Near {
    Near { alike, in_order: true, beyond, states: u64::MAX, width: Some(width) }
}

/// The same along the result: its deliveries in their order, of which any may be passed over, with few others between them.
pub const TRAILS: [Near; 7] = [
    in_order(ReceiverAndType, 1, 3_200),
    in_order(Type, 0, 3_200),
    in_order(ReceiverAndType, 2, 3_200),
    in_order(Type, 1, 3_200),
    in_order(Type, 1, 24_000),
    in_order(ReceiverAndType, 3, 24_000),
    in_order(Type, 2, 24_000),
];

/// Configurations of a ring that is searched without a beam.
pub const RING_STATES: u64 = 4_000_000;
/// External events of a result without each of which they search, at most.
pub const KINDS_WITHOUT: usize = 16;
/// Results that are searched around at the same time.
pub const KINDS_LEADS: usize = 2;
/// Part of what is left that one batch of these searches may take.
pub const KINDS_PART: f64 = 0.3;

/// Sets of external events around a result over which actors start at any time, at most.
pub const LATE_SETS: usize = 48;
/// Configurations of such a search over the result's own external events, not many more.
pub const LATE_OWN: u64 = 4_000_000;
/// Part of what is left for it.
pub const LATE_OWN_PART: f64 = 0.4;
/// The same over others, of which there are many.
pub const LATE_STATES: u64 = 300_000;
/// Such searches of one batch.
pub const LATE_JOBS: usize = 8;
/// Part of what is left for one batch of them.
pub const LATE_PART: f64 = 0.15;

/// Deliveries up to which a result is short enough for the searches that begin with one.
pub const SHORT: usize = 400;
/// Over which sets beams search, and how.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// Deliveries that are made in a layer.
    pub width: u64,
    /// From which configurations.
    pub lead: Lead,
    /// Over how many of the sets to choose from.
    pub choices: usize,
    /// Over how many of the others, the nearest first.
    pub near: usize,
}

/// What beams try where a bound says how near a configuration is, and where none does.
#[derive(Clone, Copy, Debug)]
pub struct Reaches {
    /// With a bound.
    pub led: &'static [Reach],
    /// Without.
    pub blind: &'static [Reach],
}

const fn reach(width: u64, lead: Lead, choices: usize, near: usize) -> Reach {
    Reach { width, lead, choices, near }
}

/// What is tried, one after the other.
pub const REACHES: [Reach; 17] = [
    reach(3_200, Nearest, 0, usize::MAX),
    reach(3_200, Light(4), CHOICES, 0),
    reach(3_200, Light(2), 0, usize::MAX),
    reach(3_200, Nearest, CHOICES, 0),
    reach(24_000, Nearest, 0, 2),
    reach(24_000, Light(4), 0, 2),
    reach(24_000, Light(4), CHOICES, 0),
    reach(24_000, Nearest, CHOICES, 0),
    reach(24_000, Light(2), 0, 40),
    reach(100_000, Nearest, 0, 2),
    reach(24_000, Nearest, 0, 40),
    reach(100_000, Nearest, CHOICES, 4),
    reach(100_000, Light(4), CHOICES, 4),
    reach(24_000, Nearest, 0, usize::MAX),
    reach(100_000, Light(2), 0, 24),
    reach(100_000, Nearest, 0, 24),
    reach(400_000, Nearest, 0, 2),
];
/// What comes before walks.
pub const NARROW: Reaches = Reaches { led: REACHES.split_at(1).0, blind: BLIND.split_at(1).0 };
/// What comes after them.
pub const WIDE: Reaches = Reaches { led: &REACHES, blind: &BLIND };
/// What is tried where no bound says how near a configuration is.
pub const BLIND: [Reach; 6] = [
    reach(24_000, Light(1), CHOICES, 4),
    reach(24_000, Rare, 0, 8),
    reach(100_000, Rare, 0, 4),
    reach(100_000, Rare, 2, 16),
    reach(400_000, Rare, 0, 2),
    reach(400_000, Rare, 2, 4),
];
/// What is tried around a result with whose external events no execution is shorter: others may be worth more.
pub const OTHERS: [Reach; 3] =
    [reach(3_200, Light(4), CHOICES, 0), reach(3_200, Nearest, CHOICES, 0), reach(100_000, Nearest, 0, LESS)];
/// The same for both sorts of models.
pub const ELSEWHERE: Reaches = Reaches { led: &OTHERS, blind: BLIND.split_at(1).0 };
/// Sets of external events from which a search is to choose, at most.
pub const CHOICES: usize = 12;
/// How many sets hold what has an actor or an event less.
const LESS: usize = 8;
/// Steps that a search spends on one external event less, for the Pareto front.
pub const FEWER: usize = 10;
/// The same in all.
pub const MORE: usize = 15;
/// Messages from outside of which small sets are made, at most two of each type to each actor.
pub const SMALL_FROM: usize = 24;
/// Small sets that are searched over, at most.
pub const SMALL_SETS: usize = 1_500;
/// Deliveries made in each layer of a search over a small set: so few that all of them are searched over in a moment,
pub const QUICK_WIDTHS: [u64; 1] = [30];
/// and what is tried when others have found nothing more.
pub const SMALL_WIDTHS: [u64; 2] = [300, 3_000];
/// Deliveries of such a search at most: few messages lead to few.
pub const SMALL_DELIVERIES: usize = 40;
/// Part of what is left for one batch of these searches.
pub const SMALL_PART: f64 = 0.1;
/// Part of what is left for one batch of beams.
pub const BEAM_PART: f64 = 0.4;
/// Searches of one batch.
pub const BEAM_JOBS: usize = 8;
/// Part of the budget, as the other, that is open to beams over smaller contents: little is left by then.
pub const CONTENTS: f64 = 1.1;

/// Part of what is left that a proof may take before more is looked for.
pub const PROOF_PART: f64 = 0.25;
/// Configurations that a proof may visit before more is looked for.
pub const SOON: u64 = 6_000_000;
/// The same where the bound is so near that it is worth more.
pub const SOON_NEAR: u64 = 4 * SOON;
/// How near that is, in deliveries.
pub const NEAR: usize = 2;
/// Configurations that the proof of the result may visit.
pub const LATER: u64 = 8_000_000;
/// Configurations that a proof may visit where no bound leads the way.
pub const UNBOUNDED: u64 = 1_000_000;
/// Configurations that the proof over everything recorded may visit: it is tried early, and is worth little time.
pub const SETTLED: u64 = 2_000_000;
/// Starts of a recording for which it is tried, at most: there is a search for each set of them.
pub const SETTLED_STARTS: usize = 8;
/// Messages from outside for which it is tried, at most.
pub const SETTLED_EXTERNALS: usize = 64;
/// External events of a recording over all of which the shortest execution is looked for at the beginning, at most.
pub const ALL: usize = 12;
/// Deliveries that one external event is worth when the yields of passes are compared, to run the best first.
pub const YIELD: i64 = 4;

/// Stretches of causes that are tried at every actor at once: halves, quarters and so on of a hundred are two hundred.
pub const JOINT_STRETCHES: usize = 256;
/// Pairs of causes that are tried in one round.
pub const JOINT_PAIRS: usize = 600;
/// Ways to sort the steps of a run by what they are about, at most.
pub const READINGS: usize = 16;
/// Subjects of one reading, at most.
pub const SUBJECTS: usize = 256;
/// Steps of candidates that keep three subjects, for one reading.
pub const SUBJECT_STEPS: usize = 4_000_000;
/// Policies of passes that try all pairs, places or windows.
pub const FEW_POLICIES: usize = 4;
/// Longest witness, in steps, of whose actors two change places.
pub const RENAMED_STEPS: usize = 256;
/// Up to which width every stretch is tried for it; of wider ones each is a quarter wider than the one before.
pub const RENAMED_WIDTHS: usize = 16;
/// Candidates that are tried for it, at most.
pub const RENAMED: usize = 30_000;
/// Longest witness, in steps, whose starts are moved.
pub const LATE_STARTS: usize = 128;
/// Longest witness, in deliveries, that is backtracked into.
pub const BACKTRACK_DELIVERIES: usize = 150;
/// Longest witness, in deliveries, whose windows are searched.
pub const WINDOW_DELIVERIES: usize = 120;
/// Branches that the backtracks of one candidate may take.
pub const BRANCHES: usize = 24;
/// Longest witness, in deliveries, whose detours are looked for.
pub const DETOUR_DELIVERIES: usize = 400;
/// Deliveries of the stretches in which they are looked for, one width after the other.
pub const DETOUR_WIDTHS: [usize; 4] = [6, 12, 24, 48];
/// Configurations that may be visited for one stretch, not many more.
pub const DETOUR: usize = 20_000;
/// Ways to what the rest needs that are run, at most, for one stretch.
pub const DETOUR_GOALS: usize = 8;
/// Local states of one actor that are met beforehand, at most.
pub const DETOUR_STATES: usize = 2_000;
/// Reactions that are asked for beforehand, at most.
pub const DETOUR_REACTIONS: usize = 50_000;
/// Deliveries of a window.
pub const WINDOW: usize = 4;
/// Configurations that the search for another ending may visit from each place.
pub const ENDING: u64 = 60_000;
/// The same for the result.
pub const POLISH: u64 = 1_000_000;
/// Part of what is left that it may take.
pub const POLISH_PART: f64 = 0.5;
