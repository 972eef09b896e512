//! Where an exploration stopped, to go on from there: what was met, what waits, and the choices that lead to it.

use std::io::{self, BufRead, Write};
use std::str::FromStr;

use demi_replay::ActorId;
use demi_replay::fuzz::Choice;
use demi_space::cheapest::{Level, Stand, Waiting, Way};
use serde::{Deserialize, Serialize};

use crate::cost::Spent;
use crate::step::Step;

/// No exploration counts further: a century at ten million steps a second.
const MOST_COUNTED: u128 = 1 << 55;

/// An exploration that was stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// What leads to the beginning.
    pub(crate) before: Vec<Choice>,
    pub(crate) stand: Stand<Step>,
}

/// Why a file is no exploration that was stopped.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// It cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line makes no sense.
    #[error("line {line}: {why}")]
    Line {
        /// Which, from 1.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// It ends before its last line.
    #[error("it is cut off after line {0}")]
    Cut(u64),
}

/// A line of the file. Numbers of moments are hexadecimal, spent are cost, faults and steps.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    /// What leads to the beginning.
    Before(Vec<String>),
    /// From, choices, how many are chosen, place in the recording.
    Way(usize, Vec<String>, usize, usize),
    /// Spent, place, number, part of the tree, whether it violates.
    Waits((u32, u32, u32), usize, String, f64, bool),
    /// Number, steps.
    Met(String, u32),
    /// Moments, steps, known, ends, cut.
    Level(u64, u64, u64, u64, u64),
    /// Place, spent.
    Found(usize, (u32, u32, u32)),
    /// The part that is done. The last line.
    Part(f64),
}

impl Saved {
    /// Steps that were made until then.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.stand.levels.iter().fold(0, |sum, level| sum.saturating_add(level.steps))
    }

    /// Says why it cannot be of an exploration with this beginning and these bounds, if it cannot.
    pub(crate) fn fits(&self, before: &[Choice], most: Spent) -> Result<(), String> {
        if self.before != before {
            return Err("it begins with other steps".into());
        }
        if self.stand.levels.len() > most.cost as usize + 1 {
            return Err("it explored beyond the bound".into());
        }
        let counts = self.stand.levels.iter().flat_map(|l| [l.moments, l.steps, l.known, l.ends, l.cut]);
        if counts.into_iter().map(u128::from).sum::<u128>() > MOST_COUNTED {
            return Err("it counted more than there can be".into());
        }
        let spent = self.stand.waiting.iter().map(|waits| waits.spent);
        let within = |at: Spent| at.cost <= most.cost && at.faults <= most.faults && at.steps <= most.steps;
        let mut all = spent.chain(self.stand.findings.iter().map(|(_, at)| *at));
        if let Some(at) = all.find(|at| !within(*at)) {
            return Err(format!("{at:?} is beyond the bounds"));
        }
        Ok(())
    }

    /// Writes it, one thing a line.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut line = |line: &Line| -> io::Result<()> {
            serde_json::to_writer(&mut *out, line)?;
            out.write_all(b"\n")
        };
        let spent = |spent: Spent| (spent.cost, spent.faults, spent.steps);
        line(&Line::Before(texts(self.before.iter().copied())))?;
        let Stand { ways, waiting, met, levels, findings, part } = &self.stand;
        for Way { from, choice } in ways.added() {
            line(&Line::Way(*from, texts(choice.choices()), choice.chosen().count(), choice.at()))?;
        }
        for Waiting { spent: at, place, key, weight, violates } in waiting {
            line(&Line::Waits(spent(*at), *place, format!("{key:x}"), *weight, *violates))?;
        }
        for (key, steps) in met {
            line(&Line::Met(format!("{key:x}"), *steps))?;
        }
        for Level { moments, steps, known, ends, cut } in levels.iter().copied() {
            line(&Line::Level(moments, steps, known, ends, cut))?;
        }
        for (place, at) in findings {
            line(&Line::Found(*place, spent(*at)))?;
        }
        line(&Line::Part(*part))
    }

    /// Reads what [`Saved::write`] wrote, up to its last line. `line` is the number of its first line, and
    /// then of the line after its last one.
    ///
    /// # Errors
    /// When it cannot be read, or a line makes no sense.
    pub fn read(input: &mut impl BufRead, line: &mut u64) -> Result<Saved, SavedError> {
        let mut saved = Saved { before: Vec::new(), stand: Stand::default() };
        let mut text = String::new();
        loop {
            text.clear();
            if input.read_line(&mut text)? == 0 {
                return Err(SavedError::Cut(*line - 1));
            }
            let at = *line;
            let why = |why: String| SavedError::Line { line: at, why };
            *line += 1;
            match serde_json::from_str(&text).map_err(|e| why(e.to_string()))? {
                Line::Part(part) => {
                    saved.stand.part = part;
                    return Ok(saved);
                }
                one => saved.take(one).map_err(why)?,
            }
        }
    }

    fn take(&mut self, line: Line) -> Result<(), String> {
        let spent = |(cost, faults, steps)| Spent { cost, faults, steps };
        let key = |text: &str| u128::from_str_radix(text, 16).map_err(|e| format!("'{text}': {e}"));
        let stand = &mut self.stand;
        let places = stand.ways.count();
        let place = |place: usize| match place <= places {
            true => Ok(place),
            false => Err(format!("there is no place {place}")),
        };
        match line {
            Line::Before(texts) => self.before = choices(&texts)?,
            Line::Way(from, texts, chosen, at) => {
                let all = choices(&texts)?;
                let choice = Step::of(&all, chosen, at)
                    .ok_or_else(|| format!("{chosen} of {} choices are chosen", all.len()))?;
                stand
                    .ways
                    .add(Way { from, choice })
                    .ok_or_else(|| format!("there is no place {from} to begin at"))?;
            }
            Line::Waits(at, to, text, weight, violates) => {
                let (place, key) = (place(to)?, key(&text)?);
                stand.waiting.push(Waiting { spent: spent(at), place, key, weight, violates });
            }
            Line::Met(text, steps) => stand.met.push((key(&text)?, steps)),
            Line::Level(moments, steps, known, ends, cut) => {
                stand.levels.push(Level { moments, steps, known, ends, cut });
            }
            Line::Found(at, cost) => stand.findings.push((place(at)?, spent(cost))),
            Line::Part(part) => stand.part = part,
        }
        Ok(())
    }
}

fn texts(choices: impl Iterator<Item = Choice>) -> Vec<String> {
    choices.map(|choice| text(&choice)).collect()
}

fn choices(texts: &[String]) -> Result<Vec<Choice>, String> {
    texts.iter().map(|text| choice(text).ok_or_else(|| format!("'{text}' is no choice"))).collect()
}

/// A choice as a letter and its numbers.
fn text(choice: &Choice) -> String {
    match choice {
        Choice::Start(actor) => format!("s{}", actor.0),
        Choice::Bootstrap => "b".to_owned(),
        Choice::Client(n, random) => format!("e{n}.{random}"),
        Choice::Crash(actor) => format!("c{}", actor.0),
        Choice::Restart(actor) => format!("r{}", actor.0),
        Choice::Isolate(actor) => format!("i{}", actor.0),
        Choice::Heal(actor) => format!("h{}", actor.0),
        Choice::Duplicate(index) => format!("u{index}"),
        Choice::Program(act) => format!("p{act}"),
        Choice::Deliver(index) => format!("d{index}"),
    }
}

fn choice(text: &str) -> Option<Choice> {
    fn number<N: FromStr>(text: &str) -> Option<N> {
        text.parse().ok()
    }
    let rest = text.get(1..)?;
    let actor = || number(rest).map(ActorId);
    Some(match text.as_bytes().first()? {
        b's' => Choice::Start(actor()?),
        b'b' if rest.is_empty() => Choice::Bootstrap,
        b'e' => {
            let (n, random) = rest.split_once('.')?;
            Choice::Client(number(n)?, number(random)?)
        }
        b'c' => Choice::Crash(actor()?),
        b'r' => Choice::Restart(actor()?),
        b'i' => Choice::Isolate(actor()?),
        b'h' => Choice::Heal(actor()?),
        b'u' => Choice::Duplicate(number(rest)?),
        b'p' => Choice::Program(number(rest)?),
        b'd' => Choice::Deliver(number(rest)?),
        _ => return None,
    })
}
