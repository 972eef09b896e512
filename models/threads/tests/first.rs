//! What is known of each program: the least bound at which it fails, and how soon.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use demi_threads::Check;
use demi_threads_programs::{KNOWN, Known};

fn bounded(known: &Known) -> Check {
    Check::named(known.name).random(false).budget(200_000)
}

#[test]
fn each_program_fails_first_at_its_least_bound_and_soon_enough() {
    let mut wrong = Vec::new();
    for known in KNOWN {
        let by_preemptions = bounded(known).bound(3).explore(known.run);
        let by_delays = bounded(known).delays(5).explore(known.run);
        let first = |outcome: &demi_threads::Outcome| outcome.finding().map(|finding| finding.executions());
        let least = by_preemptions.finding().and_then(|finding| finding.least());
        let delays = by_delays.levels().iter().take_while(|level| level.complete()).count() as u32;
        let soon = |found: Option<u64>, bar: Option<u64>| {
            bar.is_none_or(|bar| found.is_some_and(|found| found <= bar))
        };
        let right = least == Some((known.preemptions, true))
            && soon(first(&by_preemptions), known.first.0)
            && soon(first(&by_delays), known.first.1)
            && known.delays.is_none_or(|known| known == delays);
        let line = format!(
            "{:22} c {:?} (known {}), first {:?} (bar {:?}); d {delays} (known {:?}), first {:?} (bar {:?})",
            known.name,
            least,
            known.preemptions,
            first(&by_preemptions),
            known.first.0,
            known.delays,
            first(&by_delays),
            known.first.1
        );
        println!("{line}");
        if !right {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
