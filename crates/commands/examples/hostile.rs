//! A program whose one model misbehaves, each way by a switch of the scenario: what the commands do then is tested with it.
//!
//! A counter takes numbers and remembers them; the invariant `Nine` breaks once it has taken 9.

#![allow(clippy::panic, reason = "it shall misbehave")]

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use demi_commands::{
    ActorId, Ctx, ExternalMessage, Logs, Model, Models, Names, Proposal, Scenario, ScenarioError, View,
    Violation, Workload,
};

/// What no deterministic model has.
static DICE: AtomicU64 = AtomicU64::new(0);

#[derive(Clone)]
struct Hostile {
    actors: Vec<ActorId>,
    on: Vec<String>,
}

impl Hostile {
    fn new(scenario: &Scenario, names: &mut Names) -> Result<Self, ScenarioError> {
        let members = scenario.members.unwrap_or(1);
        let actors = (1..=members).map(|n| names.id(&format!("counter-{n}"))).collect();
        let on = scenario.switches.iter().filter(|(_, on)| **on).map(|(name, _)| name.clone()).collect();
        Ok(Hostile { actors, on })
    }

    /// How long a step takes at least, by a switch such as `slow 25`.
    fn slow(&self) -> Option<u64> {
        self.on.iter().find_map(|on| on.strip_prefix("slow ")?.parse().ok())
    }

    fn is(&self, switch: &str) -> bool {
        self.on.iter().any(|on| on == switch)
    }

    /// Ends the process, where it is to.
    fn end_the_process(&self, ctx: &Ctx<'_, u64>) {
        if self.is("overflows") {
            std::hint::black_box(depth(u64::from(ctx.me().0)));
        }
        if self.is("aborts") {
            std::process::abort();
        }
        if self.is("exits") {
            std::process::exit(7);
        }
        if self.is("devours") {
            let mut all = Vec::new();
            while all.len() < usize::MAX {
                all.push(vec![all.len() as u8; 1 << 20]);
            }
            std::hint::black_box(all);
        }
    }
}

/// Never comes to its end.
fn depth(n: u64) -> u64 {
    let below = [n; 100];
    if n == u64::MAX { 0 } else { depth(n + 1) + std::hint::black_box(below)[n as usize % 100] }
}

/// Notes a step in the file that the environment names, a byte for each.
fn count() {
    if let Some(path) = std::env::var_os("HOSTILE_STEPS")
        && let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(path)
    {
        let _ = file.write_all(b".");
    }
}

impl Model for Hostile {
    type State = Vec<u64>;
    type Msg = u64;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.actors
    }

    fn initial(&self, _: ActorId) -> Vec<u64> {
        // A megabyte where it is to be big.
        if self.is("big") { vec![0; 125_000] } else { Vec::new() }
    }

    fn start(&self, _: &mut Vec<u64>, _: &mut Ctx<'_, u64>) {
        assert!(!self.is("stillborn"), "cannot start");
    }

    fn deliver(&self, state: &mut Vec<u64>, msg: &u64, ctx: &mut Ctx<'_, u64>) {
        let lacks_five = !state.contains(&5);
        if *msg == 9 && lacks_five && self.is("panics") {
            panic!("nine before five");
        }
        while *msg == 9 && lacks_five && self.is("hangs") {
            std::thread::sleep(Duration::from_millis(5));
        }
        if *msg == 9 && lacks_five {
            self.end_the_process(ctx);
        }
        if let Some(milliseconds) = self.slow() {
            std::thread::sleep(Duration::from_millis(milliseconds));
            count();
        }
        if self.is("grows") {
            state.extend(std::iter::repeat_n(0, 10_000));
        }
        state.push(if self.is("rolls dice") { DICE.fetch_add(1, Ordering::Relaxed) } else { *msg });
        if self.is("storms") {
            let me = ctx.me();
            ctx.send(me, msg * 2 + 20);
            ctx.send(me, msg * 2 + 21);
        }
    }

    fn check(&self, view: &View<'_, Vec<u64>>, (): &mut (), found: &mut Vec<Violation>) {
        for &actor in &self.actors {
            let Some(state) = view.state(actor) else { continue };
            assert!(!self.is("blind") || state.contains(&5) || !state.contains(&9), "nine before five");
            if state.contains(&9) {
                found.push(Violation { fingerprint: "Nine".to_owned(), affected: vec![actor] });
            }
        }
    }

    fn logs(&self) -> &dyn Logs<Vec<u64>, u64> {
        self
    }

    fn workload(&self) -> &dyn Workload<Vec<u64>, u64> {
        self
    }
}

impl Workload<Vec<u64>, u64> for Hostile {
    fn client_message(&self, _: u64, choice: u64, _: &Names) -> Option<Proposal<u64>> {
        let to = *self.actors.get(choice as usize % self.actors.len())?;
        Some(Proposal::new(to, choice / 7 % 12))
    }
}

impl Logs<Vec<u64>, u64> for Hostile {
    fn type_name(&self, _: &u64) -> String {
        "Add".to_owned()
    }

    fn payload(&self, msg: &u64, _: &Names) -> String {
        format!("Add({msg})")
    }

    fn external(&self, message: ExternalMessage<'_>, _: &mut Names) -> Result<u64, String> {
        let number = message.payload.strip_prefix("Add(").and_then(|rest| rest.strip_suffix(')'));
        number.and_then(|n| n.parse().ok()).ok_or_else(|| format!("'{}' is no Add(n)", message.payload))
    }
}

fn main() {
    demi_commands::main(Models::new().with("hostile", Hostile::new))
}
