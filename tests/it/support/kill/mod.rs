//! Pieces of the daemon's tests.

#![allow(dead_code, clippy::print_stderr, reason = "each test uses a part of it; what is left out is told")]

pub mod check;
pub mod clients;
pub mod daemon;
pub mod files;
pub mod nats;
pub mod random;

/// A record of an actor: its content follows from its name, so that it can be checked.
pub fn record(actor: &str, seq: u64) -> String {
    format!(
        "{{\"actor\":\"{actor}\",\"seq\":{seq},\"kind\":\"state\",\"payload\":\"{}\"}}\n",
        payload(actor, seq)
    )
}

/// The same as text that says no position: a mapping has to count it.
pub fn text(actor: &str, seq: u64) -> String {
    format!("{actor} {}\n", payload(actor, seq))
}

/// The mapping of such texts.
pub const MAPPING: &str = r#"
name = "text"
description = "test"
[input]
container = "text"
patterns = ['^(?<who>\S+) (?<text>.*)$']
[event]
actor = "{who}"
payload = "{text}"
"#;

/// What the record of that name says.
pub fn payload(actor: &str, seq: u64) -> String {
    format!("{actor}/{seq}:{}", "x".repeat((seq * 7919 % 300) as usize))
}
