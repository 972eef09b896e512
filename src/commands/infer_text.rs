//! What `infer` says to people, and what came nearest to breaking what it found.

use std::error::Error;

use demi_common::table::Table;
use demi_common::text::printable;
use demi_infer::{Inferred, Invariant, NearFailure, NearMiss};
use demi_schemas::InvariantEntry;
use glob::Pattern;
use serde_json::json;

use super::executions::Ordered;

/// The result for people: the most telling first.
///
/// # Errors
/// When a file of an execution cannot be read.
pub fn told(
    inferred: &Inferred,
    opened: &[Ordered],
    named: &[(String, Pattern)],
    top: usize,
) -> Result<String, Box<dyn Error>> {
    let executions = opened.len();
    let mut text = String::new();
    for class in &inferred.classes {
        let name = named.iter().find(|(_, pattern)| pattern.as_str() == class.class);
        let name = name.map_or(class.class.clone(), |(name, _)| format!("{name} ({})", class.class));
        let (name, actors, states) = (printable(&name), class.actors, class.states);
        text.push_str(&format!(
            "{name}: {actors} actors, {states} states, {} variables",
            class.variables.len()
        ));
        if !class.constants.is_empty() {
            let all: Vec<String> = class.constants.iter().map(|(n, v)| format!("{n} = {v}")).collect();
            text.push_str(&format!("; always {}", printable(&all.join(", "))));
        }
        if !class.left_out.is_empty() {
            text.push_str(&format!("; left out: {}", printable(&class.left_out.join(", "))));
        }
        text.push('\n');
    }
    if !inferred.groups.is_empty() || inferred.small_groups > 0 {
        let rows: usize = inferred.groups.iter().map(|g| g.rows).sum();
        let (groups, small) = (inferred.groups.len(), inferred.small_groups);
        text.push_str(&format!(
            "{groups} groups of messages and chains, {rows} rows; {small} more have too few rows\n"
        ));
    }
    let shown: Vec<&Invariant> = inferred.invariants.iter().filter(|i| i.shadowed_by.is_empty()).collect();
    let states: usize = inferred.classes.iter().map(|c| c.states).sum();
    let shadows = inferred.invariants.len() - shown.len();
    text.push_str(&format!(
        "\n{} held in {executions} executions ({} held out) and {states} states; {shadows} more follow from them; \
         {} refuted by the executions held out; {} with too little evidence\n",
        shown.len(),
        inferred.held_out,
        inferred.refuted.len(),
        inferred.below,
    ));
    if shown.is_empty() {
        return Ok(text.trim_end().to_owned());
    }
    let mut table = Table::new([">bits", ">tried", "class", "held"]);
    for invariant in shown.iter().take(top) {
        let (bits, tried) = (format!("{:.0}", invariant.bits), invariant.episodes.to_string());
        table.row([&bits, &tried, &invariant.class, &invariant.holds]);
    }
    text.push_str(&format!("\n{table}"));
    if shown.len() > top {
        text.push_str(&format!("\nand {} more (--top, --out and --json have them)", shown.len() - top));
    }
    let mut near = String::new();
    for invariant in shown.iter().take(top) {
        if let Some(close) = invariant.nearest.first() {
            near.push_str(&format!(
                "\n  {}\n    {}",
                printable(&invariant.holds),
                closest(invariant, close, opened)?
            ));
        }
    }
    if !near.is_empty() {
        text.push_str(&format!("\n\nnearest to breaking them:{near}"));
    }
    Ok(text)
}

/// A row that came near, in one line.
fn closest(invariant: &Invariant, close: &NearFailure, opened: &[Ordered]) -> Result<String, Box<dyn Error>> {
    let Some(execution) = opened.get(close.execution) else { return Ok(String::new()) };
    let NearMiss { slack, rows, of, values } = &close.near;
    let values: Vec<String> = values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let event = execution.event(close.at, close.is_message)?;
    let mut text = match invariant.without_remainder() {
        Some(equality) if *slack == 0.0 => format!("{equality} fails at {event}"),
        _ => format!("{slack} from failing at {event}"),
    };
    if opened.len() > 1 {
        text.push_str(&format!(" of {}", execution.name));
    }
    if !of.is_empty() {
        text.push_str(&format!(" ({of})"));
    }
    if *rows > 1 {
        text.push_str(&format!(", {rows} rows, of which one has"));
    }
    Ok(printable(&format!("{text}: {}", values.join(", "))).into_owned())
}

/// The entries as JSON, with what came nearest to breaking each of those that were inferred now.
///
/// # Errors
/// When a file of an execution cannot be read.
pub fn with_nearest(
    entries: &[InvariantEntry],
    inferred: &Inferred,
    opened: &[Ordered],
) -> Result<Vec<serde_json::Value>, Box<dyn Error>> {
    let mut all = Vec::with_capacity(entries.len());
    for entry in entries {
        let mut value = serde_json::to_value(entry)?;
        let own = inferred.invariants.iter().find(|i| i.id == entry.id);
        let mut nearest = Vec::new();
        for close in own.iter().flat_map(|own| &own.nearest) {
            let Some(execution) = opened.get(close.execution) else { continue };
            let NearMiss { slack, rows, of, values } = &close.near;
            let values: serde_json::Map<String, serde_json::Value> =
                values.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
            let event = execution.event(close.at, close.is_message)?;
            let mut near = json!({
                "execution": execution.name, "event": event, "slack": slack, "of": of, "rows": rows, "values": values,
            });
            if let Some(equality) = own.and_then(Invariant::without_remainder).filter(|_| *slack == 0.0) {
                near["breaks"] = json!(equality);
            }
            nearest.push(near);
        }
        if !nearest.is_empty() {
            value["nearest"] = json!(nearest);
        }
        all.push(value);
    }
    Ok(all)
}
