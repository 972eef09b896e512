//! Several executions in one source: their names, and the hosts that are deduced from all clocks of one.

use super::emit::{clock_array, host_name};
use super::engine::Mapper;
use super::source_state::Held;
use super::unit::Unit;
use super::{clocks, deduce};
use crate::fate::Fate;

impl Mapper {
    /// Ends the execution being read: what was held becomes events.
    pub(crate) fn finish_execution(&mut self, out: &mut Vec<Unit>) {
        self.flush(out);
        let mut held = std::mem::take(&mut self.source.held);
        self.source.held_bytes = 0;
        if held.is_empty() {
            return;
        }
        if self.mapping.input.newest_first {
            held.reverse();
        }
        if !self.mapping.clock.as_ref().is_some_and(|(_, clock)| clock.deduce_host) {
            for Held { line, lines, raw, record, carried } in held {
                let (execution, fate) = self.events(&line, &raw, &record, &carried, None);
                out.push(Unit { line, lines, raw, execution, fate });
            }
            return;
        }
        let arrays: Vec<Result<Vec<u64>, String>> =
            held.iter().map(|h| clock_array(&self.mapping, &h.record)).collect();
        let good: Vec<&[u64]> = arrays.iter().flatten().map(Vec::as_slice).collect();
        let mut deduced = deduce::hosts(&good).into_iter();
        let hosts: Vec<Result<usize, String>> = arrays
            .iter()
            .map(|array| match array {
                Ok(_) => deduced.next().unwrap_or_else(|| Err("the host is not known".into())),
                Err(reason) => Err(reason.clone()),
            })
            .collect();
        let (names, clashes) = self.names_of_entries(&held, &hosts);
        for ((held, host), clash) in held.into_iter().zip(hosts).zip(clashes) {
            let (execution, fate) = match (host, clash) {
                (Ok(index), None) => {
                    let name = names.get(index).cloned().unwrap_or_default();
                    self.events(&held.line, &held.raw, &held.record, &held.carried, Some((&name, &names)))
                }
                (Err(reason), _) | (Ok(_), Some(reason)) => {
                    (self.source.execution.clone(), Fate::rejected("clock", reason))
                }
            };
            out.push(Unit { line: held.line, lines: held.lines, raw: held.raw, execution, fate });
        }
    }

    /// The name of each entry of the clocks, and by record why its name cannot be.
    fn names_of_entries(
        &self,
        held: &[Held],
        hosts: &[Result<usize, String>],
    ) -> (Vec<String>, Vec<Option<String>>) {
        let width = hosts.iter().flatten().max().map_or(0, |&i| i + 1);
        let mut written: Vec<Option<String>> = vec![None; width];
        let mut clashes = vec![None; held.len()];
        for (i, (held, host)) in held.iter().zip(hosts).enumerate() {
            let (Ok(index), Some(name)) = (host, host_name(&self.mapping, &held.record)) else { continue };
            match &written[*index] {
                None => written[*index] = Some(name),
                Some(before) if *before != name => {
                    clashes[i] = Some(format!(
                        "by its clock this is an event of '{before}', entry {} of the clocks, and the log says '{name}'",
                        index + 1
                    ));
                }
                Some(_) => {}
            }
        }
        let by_number =
            |i: usize| self.mapping.clock.as_ref().map_or_else(String::new, |(_, c)| clocks::host(c, i));
        let names = written.into_iter().enumerate().map(|(i, w)| w.unwrap_or_else(|| by_number(i)));
        (names.collect(), clashes)
    }

    /// Begins the execution behind a delimiter.
    pub(crate) fn next_execution(&mut self, label: Option<String>) {
        if self.source.begun || self.source.number == 0 {
            self.source.number += 1;
        }
        if self.source.begun && self.source.number == 1 {
            // What came before the first delimiter was the first execution, though nothing said so.
            self.source.number = 2;
        }
        self.source.begun = false;
        let label = label.filter(|l| !l.trim().is_empty()).unwrap_or_else(|| self.source.number.to_string());
        self.source.execution = Some(self.execution_name(&label));
    }

    /// A name for an execution, unlike all given before.
    pub(crate) fn execution_name(&mut self, label: &str) -> String {
        let label = if self.overrides.several {
            format!("{}/{label}", self.source.name.rsplit('/').next().unwrap_or(""))
        } else {
            label.to_owned()
        };
        let mut name = label.clone();
        let mut again = 2;
        while self.used_names.contains(&name) {
            name = format!("{label} ({again})");
            again += 1;
        }
        self.used_names.insert(name.clone());
        name
    }
}
