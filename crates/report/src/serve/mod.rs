//! The page for executions too large for one file: a server on loopback that answers for one window of events at a
//! time. It reads, and writes nothing.

mod answer;
mod counts;
mod http;
mod search;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use demi_lineage::execution::{self, load_summary};
use demi_lineage::export::{self, Ranks, Skeleton};
use demi_lineage::query::Query;
use demi_replay::Registry;
use demi_schemas::{InvariantsFile, Kind, Scenario};

use crate::completeness::completeness;
use crate::data::{Page, TraceData};
use crate::error::ReportError;
use crate::execution::{SeenViolations, states};
use crate::input::{Input, describe};
use crate::invariants::invariants;
use crate::page::html;
use crate::timeline::Timeline;
use answer::{BLOCK, Crossing, Timelines};

/// An execution that is ready to be served: about 60 bytes of memory an event. What its events say, and what happens before what, is read from its
/// tables and its order index when it is asked for.
pub struct Served {
    pub(crate) skeleton: Skeleton,
    pub(crate) exec: PathBuf,
    pub(crate) ranks: Ranks,
    pub(crate) timelines: Timelines,
    pub(crate) crossing: Crossing,
    /// The events at which the violation is seen, in order.
    pub(crate) violations: Vec<u32>,
    /// By block of events how many steps there are before it.
    pub(crate) steps: Vec<u32>,
    pub(crate) html: String,
}

impl Served {
    /// Reads an execution. With a scenario the variables of actors come from a replay on its model, else from `state`
    /// records.
    ///
    /// # Errors
    /// When the folder holds no execution, a file is not what it should be, or the model cannot follow.
    pub fn open(
        models: &impl Registry,
        path: &Path,
        scenario: Option<&Scenario>,
        file: Option<&InvariantsFile>,
    ) -> Result<Served, ReportError> {
        Served::open_with(models, path, scenario, file, &[])
    }

    /// The same, with what else the page warns of.
    ///
    /// # Errors
    /// As [`Served::open`].
    pub fn open_with(
        models: &impl Registry,
        path: &Path,
        scenario: Option<&Scenario>,
        file: Option<&InvariantsFile>,
        warnings: &[String],
    ) -> Result<Served, ReportError> {
        let Input::Execution(exec) = Input::of(path)? else {
            return Err(ReportError::NotServed(path.to_owned()));
        };
        let summary = load_summary(&exec)?;
        let query = Query::open(&exec, false)?;
        let (skeleton, ranks) = export::ordered(&query)?;
        let mut seen = SeenViolations::default();
        let mut logged: Vec<(u32, Box<str>)> = Vec::new();
        export::contents(
            &exec,
            |_| true,
            |e, content| -> Result<(), ReportError> {
                seen.note(e, skeleton.kind[e as usize], content.reason.as_deref());
                if let Some(state) = content.state.as_deref().filter(|_| scenario.is_none()) {
                    logged.push((e, state.into()));
                }
                Ok(())
            },
        )?;
        let mut page = Page::new(summary.system.clone());
        describe(&mut page, &summary);
        page.warnings.extend_from_slice(warnings);
        page.served = true;
        page.completeness = completeness(&query.runs()?);
        page.invariants = file.map_or(Ok(Vec::new()), |file| invariants(&exec, file, &skeleton))?;
        let mut trace = TraceData {
            name: "recorded".to_owned(),
            actors: skeleton.actors.clone(),
            events: skeleton.len() as u64,
            steps: skeleton.kind.iter().filter(|kind| is_step(**kind)).count() as u64,
            violations: seen.chosen(),
            ..TraceData::default()
        };
        let changes = match scenario {
            Some(scenario) => {
                let states = states(models, &skeleton, &execution::load_schedule(&exec, false)?, scenario)?;
                trace.violations.extend(states.violation);
                page.warnings.extend(states.warning);
                trace.states_from = "model";
                states.changes
            }
            None => {
                let mut timeline = Timeline::default();
                logged.sort_unstable_by_key(|l| l.0);
                for (e, state) in &logged {
                    if let Ok(state) = serde_json::from_str(state) {
                        timeline.note(*e, skeleton.actor[*e as usize], &state);
                    }
                }
                trace.states_from = if logged.is_empty() { "" } else { "log" };
                timeline.finish()
            }
        };
        trace.violations.sort_unstable();
        trace.violations.dedup();
        let violations = trace.violations.clone();
        page.traces.push(trace);
        let crossing = Crossing::new(&skeleton);
        let mut before = 0;
        let counted = |kinds: &[Kind]| {
            let first = before;
            before += kinds.iter().filter(|kind| is_step(**kind)).count() as u32;
            first
        };
        let steps = skeleton.kind.chunks(BLOCK).map(counted).collect();
        let html = html(&page)?;
        let timelines = Timelines::new(changes);
        Ok(Served { exec, ranks, timelines, crossing, violations, steps, html, skeleton })
    }

    /// The page.
    #[must_use]
    pub fn html(&self) -> &str {
        &self.html
    }

    /// The answer to a question of the page, both as JSON.
    ///
    /// # Errors
    /// When the text is no question, or a file cannot be read.
    pub fn ask(&self, question: &str) -> Result<String, ReportError> {
        Ok(serde_json::to_string(&self.answer(serde_json::from_str(question)?)?)?)
    }

    /// How many events there are.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.skeleton.len() as u64
    }

    /// Whether `e` is an event that a walk through the schedule stops at.
    pub(crate) fn is_step(&self, e: u32) -> bool {
        is_step(self.skeleton.kind[e as usize])
    }
}

/// Whether a walk through the schedule stops at events of a kind.
fn is_step(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::Send | Kind::TimerSet | Kind::TimerCancel | Kind::State | Kind::BlockBegin | Kind::BlockEnd
    )
}

/// Serves the page on 127.0.0.1 until the program ends; `ready` is told the address. Port 0 takes any that is free.
///
/// # Errors
/// When the port cannot be had.
pub fn serve(served: Served, port: u16, ready: &mut dyn FnMut(SocketAddr)) -> Result<(), ReportError> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let name = address.to_string();
    let failed = |source| ReportError::Io { path: name.clone().into(), source };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        ready(address);
        axum::serve(listener, http::router(Arc::new(served), address.port())).await.map_err(failed)
    })
}
