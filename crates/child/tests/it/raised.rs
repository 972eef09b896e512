//! A handler that raises an exception in another process is a violation like others.

use std::path::{Path, PathBuf};
use std::process::Command;

use demi_child::WithChildren;
use demi_minimize::{Budget, Objective, Options, Phases, StopFlag, minimize};
use demi_replay::fuzz::{Found, FuzzOptions, fuzz};
use demi_replay::registry::NoModels;
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::summary::Verdict;
use demi_schemas::{NetworkRule, Scenario, Schedule};

/// Two actors send each other what they have counted; who gets to three fails, with what differs from process to process in the text.
const PYTHON: &str = r#"
import sys
sys.path.insert(0, SDK)
from demi_model import Model, message, serve
class M(Model):
    actors = ["a", "b"]
    def start(self, actor, ctx, disk=None):
        ctx.set_timer("t", message("Tick"), repeats=True)
        return 0
    def deliver(self, actor, n, msg, ctx):
        if msg.type == "Tick":
            ctx.send("b" if actor == "a" else "a", message("Hit"))
            return n
        return self.count(n)
    def count(self, n):
        if n == 2:
            raise ValueError("three of %s in %s" % ({"x%d" % i for i in range(5)}, object()))
        return n + 1
serve(M())
"#;

const JAVASCRIPT: &str = r#"
import { Model, message, serve } from SDK;
class M extends Model {
  actors = ["a", "b"];
  start(actor, ctx) {
    ctx.setTimer("t", message("Tick"), { repeats: true });
    return 0;
  }
  deliver(actor, n, msg, ctx) {
    if (msg.type === "Tick") {
      ctx.send(actor === "a" ? "b" : "a", message("Hit"));
      return n;
    }
    if (n === 2) {
      throw new RangeError("three of them");
    }
    return n + 1;
  }
}
serve(new M());
"#;

struct Find<'a>(&'a Scenario);

impl Visitor for Find<'_> {
    type Output = Option<Found>;

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Self::Output {
        let options = FuzzOptions { externals: Some(0), ..FuzzOptions::new(1, 20, 60) };
        fuzz(&mut sim, self.0, &options, &mut |_| true).unwrap()
    }
}

struct Shorten<'a>(&'a Schedule);

impl Visitor for Shorten<'_> {
    type Output = Schedule;

    fn visit<M: Model>(self, sim: Simulator<M>) -> Self::Output {
        let options = Options {
            rule: NetworkRule::Fifo,
            budget: Budget::Replays(1_000),
            jobs: 1,
            phases: Phases::All,
            objective: Objective::Steps,
            stop: StopFlag::default(),
        };
        let done = minimize(&sim, self.0, None, &options, &|_| {}).unwrap();
        let strict = ReplayOptions { rule: NetworkRule::Fifo, strict: true, interval: 1 };
        let run = replay(&mut sim.clone(), &done.schedule, &strict).unwrap();
        assert_eq!((run.verdict, &run.violation), (Verdict::Violates, &self.0.header.violation));
        done.schedule
    }
}

fn found(program: &str, file: &Path, text: &str, more: &str) -> Option<(Scenario, Found)> {
    std::fs::write(file, text).unwrap();
    let scenario =
        format!("model = {{ command = ['{program}', '{}'] }}\nnetwork = 'fifo'\n{more}", file.display());
    let scenario = Scenario::parse(&scenario).unwrap();
    let models = WithChildren::new(NoModels);
    let found = models.visit(&scenario, Find(&scenario)).unwrap();
    assert_eq!(models.fault(), None, "the work goes on");
    found.map(|found| (scenario, found))
}

#[test]
fn an_exception_is_found_minimized_and_replayed() {
    let sdk =
        |at: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk").join(at).canonicalize().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| -> PathBuf { folder.path().join(name) };
    let python = PYTHON.replace("SDK", &format!("{:?}", sdk("python").display().to_string()));
    let javascript = JAVASCRIPT.replace("SDK", &format!("{:?}", sdk("js/index.js").display().to_string()));
    let texts = "ValueError: three of {'x0', 'x1', 'x2', 'x3', 'x4'} in <object object at 0x…> (m.py:17)";
    for (program, file, text, says) in [
        ("python3", at("m.py"), &python, texts),
        ("node", at("m.mjs"), &javascript, "RangeError: three of them (m.mjs:15)"),
    ] {
        if Command::new(program).arg("--version").output().is_err() {
            eprintln!("skipped: there is no {program}");
            continue;
        }
        let (scenario, one) = found(program, &file, text, "").expect("a violation");
        let told = &one.violation[0];
        let actor = if told.starts_with("crash: a") { "a" } else { "b" };
        assert_eq!(told, &format!("crash: {actor}, {says}"));
        assert_eq!(one.affected, [actor]);
        // Another process says the same, though it prints sets and addresses otherwise.
        assert_eq!(
            found(program, &file, text, "").map(|(_, again)| again.schedule),
            Some(one.schedule.clone())
        );
        let least = WithChildren::new(NoModels).visit(&scenario, Shorten(&one.schedule)).unwrap();
        // Two starts, three ticks of the other one, three hits.
        assert_eq!(least.steps.len(), 8, "{}", least.to_text());
        assert!(found(program, &file, text, "no_crash = true").is_none());
    }
}

/// A process that ends in a handler: killed, aborted, or left by the handler itself.
#[test]
fn a_process_that_ends_in_a_handler_is_found_like_an_exception() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3");
        return;
    }
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/python").canonicalize().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.py");
    let raise = PYTHON.lines().find(|line| line.contains("raise ValueError")).unwrap();
    for (ends, says) in [
        ("os.abort()", "(signal: 6 (SIGABRT))"),
        ("os.kill(os.getpid(), 9)", "(signal: 9 (SIGKILL))"),
        ("os._exit(3)", "(exit status: 3)"),
    ] {
        let text = PYTHON.replace("SDK", &format!("{:?}", sdk.display().to_string()));
        let text =
            text.replace(raise, &format!("            {ends}")).replace("import sys", "import os, sys");
        let (scenario, one) = found("python3", &file, &text, "").expect("a violation");
        let expected = format!("crash: {}, the model's process ended {says}", one.affected[0]);
        assert_eq!(one.violation, [expected]);
        let least = WithChildren::new(NoModels).visit(&scenario, Shorten(&one.schedule)).unwrap();
        assert_eq!(least.steps.len(), 8, "{}", least.to_text());
        assert!(found("python3", &file, &text, "no_crash = true").is_none());
    }
}

/// A process that ends once and not again when it is asked the same is a problem, not what the handler does.
#[test]
fn a_process_that_ends_once_ends_the_work() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3");
        return;
    }
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/python").canonicalize().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (file, mark) = (folder.path().join("m.py"), folder.path().join("mark"));
    let raise = PYTHON.lines().find(|line| line.contains("raise ValueError")).unwrap();
    let once = format!(
        "            if not os.path.exists({mark:?}):\n                open({mark:?}, 'w').close()\n                os._exit(3)"
    );
    let text = PYTHON.replace("SDK", &format!("{:?}", sdk.display().to_string()));
    let text = text.replace(raise, &once).replace("import sys", "import os, sys");
    std::fs::write(&file, text).unwrap();
    let scenario = format!("model = {{ command = ['python3', '{}'] }}\nnetwork = 'fifo'", file.display());
    let scenario = Scenario::parse(&scenario).unwrap();
    let models = WithChildren::new(NoModels);
    models.visit(&scenario, Find(&scenario)).unwrap();
    let fault = models.fault().unwrap();
    assert!(fault.contains("it ended before it answered (exit status: 3)"), "{fault}");
}
