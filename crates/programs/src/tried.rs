//! Trying a program before it is searched: does it start, does it come to rest, does it answer twice alike, how fast is it?

use std::sync::Arc;
use std::time::{Duration, Instant};

use demi_schemas::{ChildModel, Scenario};
use serde_json::json;

use crate::error::ProgramError;
use crate::lines::{INIT, Lines, Message};
use crate::process::{Answer, Launch, Process};
use crate::registry::{launches, workload};
use crate::services::{Part, SERVICES, Sent, Service};

/// What was found when a program was tried.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The command as it is run, without scripts in between.
    pub command: Vec<String>,
    /// How many nodes were tried.
    pub nodes: usize,
    /// How many threads a node has when it is at rest.
    pub threads: u32,
    /// Lines that were delivered, and times that the clock went on, in all nodes.
    pub steps: usize,
    /// Requests of the workload that were answered, of how many.
    pub answered: (usize, usize),
    /// Real time from a delivered line to rest, of the middle one.
    pub median: Duration,
    /// Real time of a start, of the middle one.
    pub start: Duration,
    /// What is wrong, in words; nothing where the program can be run.
    pub wrong: Vec<String>,
}

/// What one process did, and how long it took.
struct Run {
    answers: Vec<Answer>,
    times: Vec<Duration>,
    start: Duration,
    threads: u32,
    stderr: String,
}

/// How often a program may ask services before a request is answered.
const ROUNDS: usize = 20;

/// Runs every node alone, twice: its first message, requests of the workload, and its clock in between.
///
/// # Errors
/// When the scenario does not say what is run.
pub fn try_program(spec: &ChildModel, scenario: &Scenario, requests: usize) -> Result<Trial, String> {
    let workload = workload(scenario)?;
    let talk = Lines::new(scenario.lines.as_ref())?;
    let launches = launches(spec, scenario)?;
    let names: Vec<&str> = launches.iter().map(|(name, _)| name.as_str()).collect();
    let command = launches.first().map(|(_, launch)| launch.command.clone()).unwrap_or_default();
    let mut trial = Trial {
        command,
        nodes: launches.len(),
        threads: 0,
        steps: 0,
        answered: (0, 0),
        median: Duration::ZERO,
        start: Duration::ZERO,
        wrong: Vec::new(),
    };
    let (mut times, mut starts) = (Vec::new(), Vec::new());
    for (name, launch) in &launches {
        let body = json!({ "type": "init", "msg_id": 0, "node_id": name, "node_ids": names });
        let line = |src: &str, body: &serde_json::Value| talk.write((src, true), name, 0, &body.to_string());
        let mut lines: Vec<String> = line(INIT, &body).into_iter().collect();
        let all: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        lines.extend(workload.bootstrap(&all).and_then(|body| line(INIT, &body)));
        for id in 1..=requests as u64 {
            let operation = workload.operation(id, id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7);
            lines.extend(line("c1", &workload.request(&operation)?));
        }
        let runs =
            run(launch, &lines, &talk, name).and_then(|first| Ok((first, run(launch, &lines, &talk, name)?)));
        let (first, second) = match runs {
            Ok(runs) => runs,
            Err(error) => {
                trial.wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        if let Some(at) = (0..first.answers.len()).find(|&at| first.answers.get(at) != second.answers.get(at))
        {
            let told = |run: &Run| {
                run.answers
                    .get(at)
                    .map_or(String::new(), |answer| format!("{:?} at {} ns", answer.lines, answer.clock))
            };
            trial.wrong.push(format!(
                "{name} is not deterministic: step {} gave {} and then {}",
                at + 1,
                told(&first),
                told(&second)
            ));
        }
        trial.threads = trial.threads.max(first.threads);
        trial.steps += first.answers.len() + second.answers.len();
        let all = first.answers.iter().flat_map(|answer| &answer.lines);
        let told: Vec<serde_json::Value> = all
            .filter_map(|line| talk.read(line).ok())
            .filter(|message| message.dest == "c1")
            .map(|message| talk.answer("", message.body))
            .collect();
        let all = first.answers.iter().flat_map(|answer| &answer.lines);
        if let Some((line, what)) = all.filter_map(|line| Some((line, talk.read(line).err()?))).next() {
            trial.wrong.push(format!("{name} writes {what}: {line}"));
        }
        // In the name of nobody, or to nobody: `fuzz` would call it a crash.
        let is_there = |who: &str| {
            let services =
                || SERVICES.iter().any(|service| *service == who || who.starts_with(&format!("{service}/")));
            names.contains(&who) || [INIT, "c1"].contains(&who) || services()
        };
        let lost = first.answers.iter().flat_map(|answer| &answer.lines).find_map(|line| {
            let message = talk.read(line).ok()?;
            if !message.src.is_empty() && !is_there(&message.src) {
                return Some((line, "in the name of nobody who is there"));
            }
            (!is_there(&message.dest)).then_some((line, "to somebody who is not there"))
        });
        if let Some((line, what)) = lost {
            trial.wrong.push(format!("{name} writes a message {what}: {line}"));
        }
        let known = |body: &&serde_json::Value| {
            let id = body.get("in_reply_to").and_then(serde_json::Value::as_u64);
            id.is_some_and(|id| (1..=requests as u64).contains(&id))
        };
        if let Some(stray) = told.iter().find(|body| !known(body)) {
            trial.wrong.push(match stray.get("in_reply_to").filter(|id| !id.is_null()) {
                None => format!(
                    "{name} answers without 'in_reply_to', so that nobody knows what it answers: {stray}"
                ),
                Some(id) => format!("{name} answers a request that nobody made, {id}: {stray}"),
            });
        }
        let begun = |message: &Message| {
            message.dest == INIT
                && message.body.get("type").and_then(serde_json::Value::as_str) == Some("init_ok")
        };
        let mut lines = first.answers.iter().flat_map(|answer| &answer.lines);
        if scenario.lines.is_none()
            && first.answers.iter().all(|answer| answer.ended.is_none())
            && !lines.any(|line| talk.read(line).is_ok_and(|message| begun(&message)))
        {
            trial
                .wrong
                .push(format!("{name} does not answer 'init' with 'init_ok', for which Maelstrom waits"));
        }
        trial.answered.0 += told.iter().filter(known).count().min(requests);
        trial.answered.1 += requests;
        if let Some(ended) = first.answers.iter().find_map(|answer| answer.ended.as_ref()) {
            let told = if first.stderr.is_empty() {
                String::new()
            } else {
                format!("; its standard error ends: {}", first.stderr)
            };
            trial.wrong.push(format!("{name} ended by itself: {ended}{told}"));
        }
        times.extend(first.times);
        starts.push(first.start);
    }
    let middle = |mut all: Vec<Duration>| {
        all.sort_unstable();
        all.get(all.len() / 2).copied().unwrap_or_default()
    };
    (trial.median, trial.start) = (middle(times), middle(starts));
    Ok(trial)
}

/// Runs a node with these lines; services answer what it asks them at once.
fn run(launch: &Launch, lines: &[String], talk: &Lines, name: &str) -> Result<Run, ProgramError> {
    let began = Instant::now();
    let mut process = Process::start(&Arc::new(launch.clone()))?;
    let start = began.elapsed();
    let mut answers = vec![process.begun()?];
    let mut times = Vec::new();
    let mut services: Vec<(&str, Service)> = SERVICES
        .iter()
        .map(|&service| {
            (service, Service::new(if service == "lin-tso" { Part::LinTso } else { Part::LinKv }))
        })
        .collect();
    let is_over = |answers: &[Answer]| answers.last().is_some_and(|answer| answer.ended.is_some());
    for line in lines {
        let mut next = vec![line.clone()];
        // A program may ask a service again and again; so many times it does so here.
        for _ in 0..ROUNDS {
            let mut asked = Vec::new();
            for line in next {
                if is_over(&answers) {
                    break;
                }
                let began = Instant::now();
                let answer = process.deliver(&line)?;
                times.push(began.elapsed());
                asked.extend(answered(&mut services, &answer, talk, name));
                answers.push(answer);
            }
            next = asked;
        }
        if answers.last().is_some_and(|answer| answer.wakes) {
            answers.push(process.pass_time()?);
        }
    }
    let stderr = process.stderr();
    Ok(Run { answers, times, start, threads: process.threads(), stderr })
}

/// What services say to what a node asked in a step.
fn answered(services: &mut [(&str, Service)], answer: &Answer, talk: &Lines, name: &str) -> Vec<String> {
    let mut said = Vec::new();
    for message in answer.lines.iter().filter_map(|line| talk.read(line).ok()) {
        let Some((service, state)) = services.iter_mut().find(|(service, _)| *service == message.dest) else {
            continue;
        };
        for sent in state.request(name, &message.body) {
            if let Sent::Answer { body, .. } = sent {
                said.extend(talk.write((service, false), name, 0, &body.to_string()));
            }
        }
    }
    said
}
