//! `demi-lineage replay --step`: a schedule one step at a time, forwards and backwards.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

use demi_replay::replay::{ReplayOptions, watched};
use demi_replay::script::{Act, ScriptError};
use demi_replay::{ActorId, Did, Model, Pending, Simulator, Visitor, World, guard};
use demi_schemas::Schedule;
use serde_json::{Value, json};

/// What can be asked for, for people.
const HELP: &str = "n or nothing: next   p: previous   NUMBER: go to that place   s [ACTOR]: states   l: what is pending   q: end";

/// Why stepping ends early.
#[derive(Debug, thiserror::Error)]
pub enum SteppingError {
    /// The schedule makes no sense to the model.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// Commands cannot be read, or answers not be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Steps through a schedule, as commands say.
pub struct Stepping<'a> {
    /// The schedule.
    pub schedule: &'a Schedule,
    /// How to replay it.
    pub options: ReplayOptions,
    /// Commands, one a line.
    pub input: &'a mut dyn BufRead,
    /// Where answers go.
    pub output: &'a mut dyn Write,
    /// Answers as JSON, one object a line.
    pub json: bool,
}

/// A place of the run: what was done last, and what came of it.
struct Place<M: Model> {
    /// The step of the schedule, from 0; none for a start that it does not say.
    step: Option<usize>,
    does: String,
    did: Vec<Did>,
    world: World<M>,
}

/// What can be asked for.
enum Command {
    Next,
    Previous,
    To(usize),
    States(Option<String>),
    Pending,
    End,
}

impl Command {
    fn of(line: &str) -> Option<Command> {
        let (word, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        Some(match word {
            "" | "n" | "next" => Command::Next,
            "p" | "previous" => Command::Previous,
            "s" | "states" => Command::States(Some(rest.trim().to_owned()).filter(|name| !name.is_empty())),
            "l" | "list" => Command::Pending,
            "q" | "quit" => Command::End,
            number => Command::To(number.parse().ok()?),
        })
    }
}

impl Visitor for Stepping<'_> {
    type Output = Result<(), SteppingError>;

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Self::Output {
        let Stepping { schedule, options, input, output, json } = self;
        let world = sim.empty_world();
        let mut places = vec![Place { step: None, does: "the beginning".to_owned(), did: Vec::new(), world }];
        let run = watched(&mut sim, schedule, &options, &mut |step, act, sim, world| {
            let does = does(sim, act, step.and_then(|at| schedule.steps.get(at)));
            places.push(Place { step, does, did: sim.did().to_vec(), world: world.clone() });
        })?;
        let mut walk = Walk { sim, places, at: 0 };
        let mut answer = |people: String, machine: Value| -> io::Result<()> {
            match json {
                true => writeln!(output, "{machine}")?,
                false => writeln!(output, "{people}")?,
            }
            output.flush()
        };
        if let (Some(first), false) = (&run.first_divergence, json) {
            let text = format!("the model leaves the schedule at step {}: {}\n{HELP}", first.step, first.got);
            answer(text, Value::Null)?;
        } else if !json {
            answer(HELP.to_owned(), Value::Null)?;
        }
        answer(walk.people(), walk.machine())?;
        let mut line = String::new();
        loop {
            line.clear();
            if input.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let last = walk.places.len() - 1;
            match Command::of(&line) {
                Some(Command::Next) if walk.at == last => {
                    answer("that was the last step".into(), json!({"error": "that was the last step"}))?;
                    continue;
                }
                Some(Command::Next) => walk.at += 1,
                Some(Command::Previous) => walk.at = walk.at.saturating_sub(1),
                Some(Command::To(place)) if place > last => {
                    let why = format!("there is no place {place}: the last is {last}");
                    answer(why.clone(), json!({"error": why}))?;
                    continue;
                }
                Some(Command::To(place)) => walk.at = place,
                Some(Command::States(who)) => {
                    let states = walk.states(walk.at, who.as_deref());
                    if states.is_empty() {
                        let why = format!("there is no actor '{}'", who.as_deref().unwrap_or_default());
                        answer(why.clone(), json!({"error": why}))?;
                        continue;
                    }
                    let lines: Vec<String> =
                        states.iter().map(|(name, state)| format!("  {name}: {state}")).collect();
                    answer(lines.join("\n"), json!({"place": walk.at, "states": states}))?;
                    continue;
                }
                Some(Command::Pending) => {
                    let pending = walk.pending();
                    let none = if pending.is_empty() { "nothing is pending" } else { "" };
                    answer(
                        format!("  {none}{}", pending.join("\n  ")),
                        json!({"place": walk.at, "pending": pending}),
                    )?;
                    continue;
                }
                Some(Command::End) => return Ok(()),
                None => {
                    let why = format!("'{}' is no command: {HELP}", line.trim());
                    answer(why.clone(), json!({"error": why}))?;
                    continue;
                }
            }
            answer(walk.people(), walk.machine())?;
        }
    }
}

/// Where one stands.
struct Walk<M: Model> {
    sim: Simulator<M>,
    places: Vec<Place<M>>,
    at: usize,
}

impl<M: Model> Walk<M> {
    /// The state of an actor, as its logs describe it.
    fn state(&self, place: usize, actor: ActorId) -> Value {
        let world = &self.places[place].world;
        match self.sim.view(world).state(actor) {
            Some(state) => guard::or(Value::String(format!("{state:?}")), || {
                self.sim.model().logs().describe(state, self.sim.names())
            }),
            None => Value::String(format!("{:?}", world.status(actor)).to_lowercase()),
        }
    }

    /// The states of all actors, or of the one of that name.
    fn states(&self, place: usize, who: Option<&str>) -> BTreeMap<String, Value> {
        let actors =
            (0..self.places[place].world.actors()).filter_map(|n| u16::try_from(n).ok()).map(ActorId);
        let named = actors.map(|actor| (self.sim.names().get(actor).to_owned(), actor));
        named
            .filter(|(name, actor)| match who {
                Some(who) => name == who,
                None => {
                    self.sim.model().actors().contains(actor)
                        || self.sim.view(&self.places[place].world).state(*actor).is_some()
                }
            })
            .map(|(name, actor)| (name, self.state(place, actor)))
            .collect()
    }

    /// What changed at the last step: by actor, what was and what is. Of states that are objects only what is different in them.
    fn changed(&self) -> Vec<(String, Value, Value)> {
        let Some(before) = self.at.checked_sub(1) else { return Vec::new() };
        let (was, is) = (self.states(before, None), self.states(self.at, None));
        let mut changed = Vec::new();
        for (name, now) in is {
            let then = was.get(&name).cloned().unwrap_or(Value::Null);
            match (&then, &now) {
                (a, b) if a == b => {}
                (Value::Object(a), Value::Object(b)) => {
                    let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
                    for key in keys {
                        let (a, b) = (a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null));
                        if a != b {
                            changed.push((format!("{name}.{key}"), a.clone(), b.clone()));
                        }
                    }
                }
                _ => changed.push((name, then, now)),
            }
        }
        changed
    }

    /// What the last step did besides.
    fn did(&self) -> Vec<String> {
        let name = |actor: &ActorId| self.sim.names().get(*actor);
        let one = |did: &Did| match did {
            Did::Sent(entry) => format!("sends {}", entry_text(&self.sim, entry)),
            Did::TimerSet(entry) => format!("sets {}", entry_text(&self.sim, entry)),
            Did::TimerCancelled(entry) => format!("cancels {}", entry_text(&self.sim, entry)),
            Did::Crashed(actor) => format!("{} fails", name(actor)),
            Did::Restarted(actor) => format!("{} starts its next incarnation", name(actor)),
            Did::Started(actor) => format!("{} starts", name(actor)),
        };
        self.places[self.at].did.iter().map(one).collect()
    }

    fn pending(&self) -> Vec<String> {
        let pending = self.places[self.at].world.pending();
        pending.iter().map(|entry| entry_text(&self.sim, entry)).collect()
    }

    /// What is violated here.
    fn violated(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.sim.check(&self.places[self.at].world, &mut M::History::default(), &mut found);
        found.into_iter().map(|violation| violation.fingerprint).collect()
    }

    fn people(&self) -> String {
        let place = &self.places[self.at];
        let step = place.step.map_or_else(String::new, |step| format!(" step {}", step + 1));
        let mut text = format!("{}/{}{step}: {}", self.at, self.places.len() - 1, place.does);
        for (what, was, is) in self.changed() {
            text.push_str(&format!("\n  {what}: {was} -> {is}"));
        }
        for did in self.did() {
            text.push_str(&format!("\n  {did}"));
        }
        if let violated @ [_, ..] = self.violated().as_slice() {
            text.push_str(&format!("\n  violates {}", violated.join(", ")));
        }
        text
    }

    fn machine(&self) -> Value {
        let place = &self.places[self.at];
        let changed: Vec<Value> = self
            .changed()
            .into_iter()
            .map(|(what, was, is)| json!({"what": what, "was": was, "is": is}))
            .collect();
        json!({
            "place": self.at,
            "of": self.places.len() - 1,
            "step": place.step.map(|step| step + 1),
            "does": place.does,
            "changed": changed,
            "did": self.did(),
            "violates": self.violated(),
        })
    }
}

/// A pending entry in words.
fn entry_text<M: Model>(sim: &Simulator<M>, entry: &Pending) -> String {
    let (from, to) = (sim.names().get(entry.from), sim.names().get(entry.to));
    let payload = sim.text(sim.info(entry.msg).payload);
    match entry.kind.is_timer() {
        true => format!("timer {} of {to}: {payload}", sim.timer_name(entry)),
        false => format!("{from} -> {to}: {payload}"),
    }
}

/// An act in words.
fn does<M: Model>(sim: &Simulator<M>, act: &Act, step: Option<&demi_schemas::schedule::Step>) -> String {
    let name = |actor: &ActorId| sim.names().get(*actor);
    match act {
        Act::Start(actor) => format!("start {}", name(actor)),
        Act::Inject(actor, msg) => {
            format!("outside sends {}: {}", name(actor), sim.text(sim.info(*msg).payload))
        }
        Act::Deliver(want) => format!("deliver {}", want.text(sim)),
        Act::Crash(actor) => format!("{} is made to fail", name(actor)),
        Act::Restart(actor) => format!("restart {}", name(actor)),
        Act::Isolate(actor) => format!("cut {} off", name(actor)),
        Act::Heal(actor) => format!("{} is back on the network", name(actor)),
        Act::Duplicate(want) => format!("the network repeats {}", want.text(sim)),
        Act::Stop(actor) => format!("stop {}", name(actor)),
        Act::Action(_) => {
            format!("action {}", step.and_then(|step| step.type_.as_deref()).unwrap_or_default())
        }
        Act::Noted(actor) => format!("the log notes that {} failed or began anew", name(actor)),
        Act::Sent => "the log notes a message that the model sends itself".to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]
mod tests {
    use demi_included::with_model;
    use demi_replay::fuzz::{FuzzOptions, fuzz};
    use demi_schemas::Scenario;

    use super::*;

    struct Recorded<'a>(&'a Scenario);

    impl Visitor for Recorded<'_> {
        type Output = Schedule;

        fn visit<M: Model>(self, mut sim: Simulator<M>) -> Schedule {
            let options = FuzzOptions::new(3, 1_000, 200);
            fuzz(&mut sim, self.0, &options, &mut |_| true).unwrap().unwrap().schedule
        }
    }

    /// What is answered to commands, a line each.
    fn asked(scenario: &Scenario, schedule: &Schedule, commands: &str, json: bool) -> String {
        let options = ReplayOptions { rule: scenario.network, strict: false, interval: 1 };
        let mut output = Vec::new();
        let input = &mut commands.as_bytes();
        let task = Stepping { schedule, options, input, output: &mut output, json };
        with_model(scenario, task).unwrap().unwrap();
        String::from_utf8(output).unwrap()
    }

    fn two_phase() -> (Scenario, Schedule) {
        let text =
            "model = 'two-phase'\nnetwork = 'fifo'\nmembers = 2\n[switches]\ncommit_on_timeout = true\n";
        let scenario = Scenario::parse(text).unwrap();
        let schedule = with_model(&scenario, Recorded(&scenario)).unwrap();
        (scenario, schedule)
    }

    #[test]
    fn a_schedule_is_walked_forwards_and_backwards() {
        let (scenario, schedule) = two_phase();
        let last = schedule.steps.len();
        let told = asked(&scenario, &schedule, &format!("n\n\np\n{last}\nn\nfly\nq\nn\n"), false);
        assert!(told.contains(&format!("\n0/{last}: the beginning\n")), "{told}");
        assert!(told.contains(&format!("\n1/{last} step 1: ")), "{told}");
        assert!(told.contains(&format!("\n{last}/{last} step {last}: ")), "{told}");
        assert!(told.contains("  violates Atomicity"), "{told}");
        assert!(told.contains("that was the last step") && told.contains("'fly' is no command"), "{told}");
        // Two forwards and one back is the same place as one forwards.
        let place = format!("\n1/{last} step 1: ");
        assert_eq!(told.matches(&place).count(), 2, "{told}");
        // Whatever way leads to a place, what is told there is the same.
        let straight = asked(&scenario, &schedule, &"n\n".repeat(last), true);
        let jumped = asked(&scenario, &schedule, &format!("{last}\n{}", "p\n".repeat(last)), true);
        let mut forwards: Vec<&str> = straight.lines().collect();
        let mut backwards: Vec<&str> = jumped.lines().skip(1).collect();
        backwards.reverse();
        assert_eq!(forwards.len(), last + 1);
        forwards.dedup();
        assert_eq!(forwards, backwards);
    }

    #[test]
    fn states_and_what_is_pending_are_told() {
        let (scenario, schedule) = two_phase();
        let told = asked(&scenario, &schedule, "4\ns\nl\ns nobody\n", true);
        let lines: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[1]["place"], 4);
        let states = lines[2]["states"].as_object().unwrap();
        assert!(states.len() >= 3, "{told}");
        assert!(lines[3]["pending"].is_array(), "{told}");
        assert_eq!(lines[4]["error"], "there is no actor 'nobody'", "{told}");
        let beyond = asked(&scenario, &schedule, "9999\n", false);
        assert!(beyond.contains("there is no place 9999"), "{beyond}");
        // Changes from place to place add up to the states.
        let all = asked(&scenario, &schedule, &"n\ns\n".repeat(schedule.steps.len()), true);
        let lines: Vec<Value> = all.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut changes = 0;
        for pair in lines[1..].chunks(2) {
            for change in pair[0]["changed"].as_array().unwrap() {
                let what = change["what"].as_str().unwrap();
                let states = &pair[1]["states"];
                let now = states.get(what).or_else(|| {
                    let (actor, key) = what.rsplit_once('.')?;
                    states[actor].get(key)
                });
                assert_eq!(now.unwrap_or(&Value::Null), &change["is"], "{what}");
                changes += 1;
            }
        }
        assert!(changes > 3, "{all}");
    }
}
