//! Certificates: writing down what was proven of a result, and checking it from scratch.
//!
//! The checker is kept simple and apart: it knows the simulator, the model's bound and the rules, and nothing of
//! matching, passes or the search. What it does not re-check are the other matchers of the 1-minimality check.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use demi_replay::model::DistanceOf;
use demi_replay::script::{Act, Refusal, Script, ScriptError};
use demi_replay::{Did, Model, PendingKind, Simulator, Status, World, network};
use demi_schemas::certificate::{CERTIFICATE_SCHEMA, Certificate, Removal, Shortest};
use demi_schemas::{NetworkRule, Schedule};
use rustc_hash::FxHashSet;
use xxhash_rust::xxh3::Xxh3;

use crate::Quota;
use crate::faults::{first_of_each, impossible, with_outside};

/// Steps up to which each single removal is tried of any result: all of them together run nearly as many steps as the square
/// of that. Of longer ones only what is said to be 1-minimal, which took as long to find out.
pub const MOST_STEPS: usize = 1_000;

/// Why a certificate does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// Of another version.
    #[error("the certificate's schema is '{0}', this version reads '{CERTIFICATE_SCHEMA}'")]
    Version(String),
    /// The schedule makes no sense to the model.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// A claim is not true.
    #[error("{0}")]
    False(String),
    /// There is an execution of fewer deliveries, and what there is to say of its end.
    #[error("there is a violating execution of {0} deliveries{1}")]
    Shorter(usize, &'static str),
    /// The budget ended before each single removal was tried.
    #[error("the budget ended before each single removal was tried")]
    Removals,
    /// The budget ended before everything was checked.
    #[error("the budget ended before the lower bound was checked; everything before it holds")]
    Budget,
}

/// A schedule with all that its checks need.
pub struct Checked<'a, M: Model> {
    pub(crate) sim: Simulator<M>,
    pub(crate) script: Script,
    pub(crate) rule: NetworkRule,
    target: &'a [String],
}

impl<'a, M: Model> Checked<'a, M> {
    /// Prepares the checks of a schedule.
    ///
    /// # Errors
    /// When the model cannot re-create a message from outside.
    pub fn new(
        sim: &Simulator<M>,
        schedule: &Schedule,
        rule: NetworkRule,
        target: &'a [String],
    ) -> Result<Self, ScriptError> {
        let mut sim = sim.clone();
        let (script, _) = Script::compile(&mut sim, schedule)?;
        Ok(Checked { sim, script, rule, target })
    }

    pub(crate) fn violates(&self, world: &World<M>) -> bool {
        let mut found = Vec::new();
        self.sim.check(world, &mut M::History::default(), &mut found);
        found.iter().any(|v| self.target.contains(&v.fingerprint))
    }

    /// What each single removal does; nothing where the time ends before all are tried.
    pub fn removals(&mut self, quota: &dyn Quota) -> Option<Vec<Removal>> {
        (0..self.script.acts.len()).map(|step| self.without(step, quota)).collect()
    }

    /// Whether there may be too many steps to try each removal.
    fn long(&self) -> bool {
        self.script.acts.len() > MOST_STEPS
    }

    /// Makes all steps but one, each as it stands; what is impossible is skipped. Nothing where the time ends.
    fn without(&mut self, removed: usize, quota: &dyn Quota) -> Option<Removal> {
        let mut world = self.sim.empty_world();
        let mut digest = Xxh3::new();
        let (mut violates, mut impossible) = (false, None);
        let acts = std::mem::take(&mut self.script.acts);
        for (at, act) in acts.iter().enumerate().filter(|(at, _)| *at != removed) {
            if quota.late() {
                self.script.acts = acts;
                return None;
            }
            let made = act.perform(&mut self.sim, &mut world, &self.script.actions, self.rule).is_ok();
            if !made {
                impossible = impossible.or(Some(at as u64 + 1));
                continue;
            }
            digest.write_u64(at as u64);
            for did in self.sim.did() {
                if let Did::Sent(entry) | Did::TimerSet(entry) = did {
                    digest.write(self.sim.text(self.sim.info(entry.msg).payload).as_bytes());
                }
            }
            if (act.is_delivery() || act.is_fault()) && self.violates(&world) {
                violates = true;
                break;
            }
        }
        self.script.acts = acts;
        let digest = format!("{:032x}", digest.digest128());
        Some(Removal { step: removed as u64 + 1, violates, impossible, digest, breaks_others: false })
    }

    /// Looks at every execution with fewer than `at_least` deliveries over the schedule's starts, external messages and
    /// faults. Gives how many configurations there were, or nothing when the budget ends.
    ///
    /// # Errors
    /// When one of them violates.
    pub fn none_shorter(
        &mut self,
        at_least: usize,
        bounded: bool,
        quota: &mut dyn Quota,
    ) -> Result<Option<u64>, CertificateError> {
        let (world, faults) = self.beginning()?;
        if bounded && !faults.is_empty() {
            return Err(CertificateError::False("bounds say nothing of executions with faults".into()));
        }
        self.none_from(world, faults, at_least, bounded, quota).map_err(|why| match why {
            CertificateError::Shorter(..) => CertificateError::False(why.to_string()),
            why => why,
        })
    }

    /// The same from a world on, over what is pending in it and some faults.
    pub(crate) fn none_from(
        &mut self,
        world: World<M>,
        faults: Vec<Act>,
        at_least: usize,
        bounded: bool,
        quota: &mut dyn Quota,
    ) -> Result<Option<u64>, CertificateError> {
        let bound = bounded.then(|| self.sim.distance(self.target)).flatten();
        let mut level = vec![(world, faults)];
        let mut seen: FxHashSet<u128> = FxHashSet::default();
        let mut states = 0;
        for made in 1..at_least {
            self.fail(&mut level, &mut seen, made - 1)?;
            let mut next = Vec::new();
            for (world, faults) in level.drain(..) {
                for index in 0..world.pending().len() {
                    let entry = &world.pending()[index];
                    let cut_off =
                        entry.kind == PendingKind::External && world.status(entry.to) == Status::Isolated;
                    if cut_off || !self.sim.deliverable(&world, index, self.rule) {
                        continue;
                    }
                    if !quota.take() {
                        return Ok(None);
                    }
                    let mut after = world.clone();
                    self.sim.deliver(&mut after, index, self.rule);
                    states += 1;
                    if self.violates(&after) {
                        return Err(CertificateError::Shorter(made, ""));
                    }
                    // Nothing comes after a panic.
                    if after.panic().is_some() {
                        continue;
                    }
                    let least = made + self.missing(&after, bound.as_ref());
                    // A fault may still follow the last delivery.
                    if (least < at_least || least == at_least && !faults.is_empty())
                        && !self.pointless(&world, &after, index)
                        && seen.insert(self.hash(&after, &faults))
                    {
                        next.push((after, faults.clone()));
                    }
                }
            }
            level = next;
        }
        self.fail(&mut level, &mut seen, at_least.saturating_sub(1))?;
        Ok(Some(states))
    }

    /// Adds to a level what faults make of its configurations: they are no deliveries. Before any delivery of the level,
    /// for what one fault leads to must not be taken for known because a delivery leads there too.
    fn fail(
        &mut self,
        level: &mut Vec<(World<M>, Vec<Act>)>,
        seen: &mut FxHashSet<u128>,
        made: usize,
    ) -> Result<(), CertificateError> {
        let mut next = 0;
        while next < level.len() {
            let (world, faults) = level[next].clone();
            for at in first_of_each(&faults) {
                let (mut after, mut rest) = (world.clone(), faults.clone());
                let fault = rest.remove(at);
                match fault.perform(&mut self.sim, &mut after, &[], self.rule) {
                    Err(Refusal::NotPending) => continue,
                    done => done.map_err(impossible)?,
                }
                if let Act::Stop(actor) = faults[at] {
                    after = with_outside(&after, &world, actor);
                }
                if self.violates(&after) {
                    return Err(CertificateError::Shorter(made, " that ends with a fault"));
                }
                if after.panic().is_none() && seen.insert(self.hash(&after, &rest)) {
                    level.push((after, rest));
                }
            }
            next += 1;
        }
        Ok(())
    }

    /// All actors started and all messages from outside pending, and the faults in their order.
    fn beginning(&mut self) -> Result<(World<M>, Vec<Act>), CertificateError> {
        let mut world = self.sim.empty_world();
        let (mut faults, mut started) = (Vec::new(), Vec::new());
        let acts = self.script.acts.clone();
        for act in &acts {
            match act {
                Act::Start(actor) if !started.contains(actor) => {
                    self.sim.start(&mut world, *actor);
                    started.push(*actor);
                }
                fault if fault.is_fault() => faults.push(*fault),
                Act::Deliver(_) | Act::Inject(..) | Act::Noted(_) => {}
                _ => {
                    let why = "it has actions or second starts among its steps";
                    return Err(CertificateError::False(why.into()));
                }
            }
        }
        for act in &acts {
            if let Act::Deliver(want) = act
                && let Some(msg) = want.external
            {
                self.sim.inject(&mut world, want.to, msg);
            }
        }
        Ok((world, faults))
    }

    fn missing(&self, world: &World<M>, bound: Option<&DistanceOf<M>>) -> usize {
        bound.map_or(1, |bound| self.sim.lower_bound(world, bound).max(1))
    }

    /// A timer, a message from outside or, without order, any message that changed no state and sent nothing.
    fn pointless(&self, before: &World<M>, after: &World<M>, index: usize) -> bool {
        let entry = &before.pending()[index];
        let order_matters =
            self.rule == NetworkRule::Fifo && entry.kind == PendingKind::Message && network::ordered(entry);
        let sent = self.sim.did().iter().any(|d| !matches!(d, Did::TimerCancelled(_)));
        !order_matters && !sent && after.same_states(before)
    }

    fn hash(&self, world: &World<M>, faults: &[Act]) -> u128 {
        let of_world = world.configuration_hash(self.rule != NetworkRule::Unordered, |p| self.sim.content(p));
        let mut hasher = Xxh3::new();
        (of_world, faults).hash(&mut hasher);
        hasher.digest128()
    }

    /// The external messages of the schedule, as the certificate names them.
    #[must_use]
    pub fn external_messages(&self) -> Vec<String> {
        let text = |act: &Act| match act {
            Act::Deliver(want) if want.external.is_some() => {
                Some(format!("{} {}", self.sim.names().get(want.to), self.sim.text(want.payload)))
            }
            _ => None,
        };
        self.script.acts.iter().filter_map(text).collect()
    }
}

/// Steps of a schedule: all but what a recording notes besides.
fn steps(acts: &[Act]) -> u64 {
    acts.iter().filter(|act| !matches!(act, Act::Inject(..) | Act::Noted(_) | Act::Sent)).count() as u64
}

/// Whether an actor starts after the first delivery.
fn starts_late(acts: &[Act]) -> bool {
    let mut delivered = false;
    acts.iter().any(|act| {
        delivered |= act.is_delivery();
        delivered && matches!(act, Act::Start(_))
    })
}

/// Writes down what is known of a result: what each single removal does, and the proof. No removals are written down where the time ends
/// before all are tried, or if a result that is not said to be 1-minimal has more than [`MOST_STEPS`].
///
/// # Errors
/// When the model cannot re-create a message from outside.
pub fn certify<M: Model>(
    sim: &Simulator<M>,
    schedule: &Schedule,
    rule: NetworkRule,
    target: &[String],
    (digest, one_minimal): (&str, bool),
    shortest: Option<Shortest>,
    quota: &dyn Quota,
) -> Result<Certificate, ScriptError> {
    let mut checked = Checked::new(sim, schedule, rule, target)?;
    let shortest = shortest.map(|s| Shortest { externals: checked.external_messages(), ..s });
    Ok(Certificate {
        schema: CERTIFICATE_SCHEMA.to_owned(),
        network: rule,
        violation: target.to_vec(),
        deliveries: schedule.deliveries() as u64,
        externals: schedule.externals() as u64,
        digest: digest.to_owned(),
        removals: match checked.long() && !one_minimal {
            true => Vec::new(),
            false => checked.removals(quota).unwrap_or_default(),
        },
        shortest,
        settled: None,
    })
}

/// Checks a certificate from scratch, all but the digest of the strict replay, which the caller compares with its own
/// replay. Gives what was checked, a line each.
///
/// # Errors
/// On the first claim that is not true.
pub fn verify<M: Model>(
    sim: &Simulator<M>,
    schedule: &Schedule,
    certificate: &Certificate,
    quota: &mut dyn Quota,
) -> Result<Vec<String>, CertificateError> {
    let wrong = |why: String| Err(CertificateError::False(why));
    if certificate.schema != CERTIFICATE_SCHEMA {
        return Err(CertificateError::Version(certificate.schema.clone()));
    }
    let size = (schedule.deliveries() as u64, schedule.externals() as u64);
    if size != (certificate.deliveries, certificate.externals) {
        return wrong(format!("the schedule has {} deliveries and {} external events", size.0, size.1));
    }
    let target: Arc<[String]> = certificate.violation.clone().into();
    let mut checked = Checked::new(sim, schedule, certificate.network, &target)?;
    let has = steps(&checked.script.acts);
    if certificate.settled.is_some_and(|settled| settled.steps != has) {
        return wrong(format!("the schedule has {has} steps, not what is proven of everything recorded"));
    }
    let mut lines = vec![format!("{} deliveries, {} external events", size.0, size.1)];
    let untried = certificate.removals.is_empty();
    let steps = checked.script.acts.len();
    if !untried && steps != certificate.removals.len() {
        return wrong(format!("there are {steps} single removals"));
    }
    let mut removals =
        if untried { Vec::new() } else { checked.removals(quota).ok_or(CertificateError::Removals)? };
    // Which systems must not break is not known here.
    let claimed: Vec<u64> = certificate.removals.iter().filter(|r| r.breaks_others).map(|r| r.step).collect();
    removals.iter_mut().for_each(|r| r.breaks_others = claimed.contains(&r.step));
    if let Some((found, said)) = removals.iter().zip(&certificate.removals).find(|(a, b)| a != b) {
        return wrong(match (found.violates, said.violates) {
            (true, false) => format!("without step {} the rest still violates", found.step),
            _ => format!("the removal of step {} does not come out as written", found.step),
        });
    }
    let violating = removals.iter().filter(|r| r.violates && !r.breaks_others).count();
    let mut line = match violating {
        _ if untried && checked.long() => {
            format!("more than {MOST_STEPS} steps: no single removals were tried")
        }
        _ if untried => "no single removals were tried".to_owned(),
        0 if claimed.is_empty() => format!("{} single removals, none of which violates", removals.len()),
        0 => format!("{} single removals, none of which is a result", removals.len()),
        n => format!("{} single removals; as written, {n} still violate: not 1-minimal", removals.len()),
    };
    let n = removals.iter().filter(|r| r.violates && r.breaks_others).count();
    if n > 0 {
        line.push_str(&format!(
            "; {n} violate but are said to break a system that must not break, unchecked"
        ));
    }
    lines.push(line);
    if let Some(shortest) = &certificate.shortest {
        if shortest.externals != checked.external_messages() {
            return wrong("the external messages are not those of the schedule".into());
        }
        let late = starts_late(&checked.script.acts);
        let meant = shortest.starts_at_any_time || !late;
        if shortest.optimal != (shortest.at_least == certificate.deliveries && meant) {
            return wrong(format!("{} deliveries at least is not what it has", shortest.at_least));
        }
        let at_least = usize::try_from(shortest.at_least).unwrap_or(usize::MAX);
        if shortest.starts_at_any_time {
            if checked.script.acts.iter().any(Act::is_fault) {
                return wrong("nothing is known of late starts among faults".into());
            }
            // All start first then, and what is lost by a late start is never delivered.
            if checked.rule == NetworkRule::Fifo {
                checked.rule = NetworkRule::Unordered;
            }
        }
        let Some(states) = checked.none_shorter(at_least, shortest.bounded, quota)? else {
            return Err(CertificateError::Budget);
        };
        // The search looks at what a delivery leads to, and there may be none.
        if meant && shortest.at_least > certificate.deliveries {
            return wrong(format!("{} deliveries at least, and this execution has fewer", shortest.at_least));
        }
        let least = shortest.at_least;
        let when = if shortest.starts_at_any_time { "" } else { " in which all actors start first" };
        lines.push(format!(
            "no violating execution with these external events{when} has fewer than {least} deliveries ({states} configurations searched)"
        ));
    }
    Ok(lines)
}
