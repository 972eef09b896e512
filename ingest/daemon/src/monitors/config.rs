//! `[monitors.NAME]`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use demi_monitor::{Invariant, Options};
use serde::Deserialize;
use url::{Host, Url};

/// What is watched, and what happens when it fails.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MonitorConfig {
    /// The system whose events are watched.
    pub system: String,
    /// The file of invariants, as `infer` writes it. It is read again at SIGHUP.
    pub invariants: PathBuf,
    /// Share of the state changes at which an invariant is looked at, above 0 and at most 1. Default 1. Histories (`EVER`) and messages
    /// are always looked at.
    #[serde(default = "one")]
    pub sample: f64,
    /// Share of a core that watching may take. Above it `sample` is halved, below half of it doubled, a step a second. Default 0.05.
    #[serde(default = "cpu_share")]
    pub cpu_share: f64,
    /// How long a record waits for those before it, and a receive for its send, in milliseconds. Default 2000.
    #[serde(default = "wait_millis")]
    pub wait_millis: u64,
    /// How many records wait at most. Default 100 000.
    #[serde(default = "wait_records")]
    pub wait_records: usize,
    /// How many rows of a history are kept for an invariant at most. Default 1 000 000.
    #[serde(default = "keys")]
    pub keys: usize,
    /// How many actors are known at most. Beyond, those that told nothing for the longest time are forgotten, first those that never told a state.
    /// Default 100 000.
    #[serde(default = "actors")]
    pub actors: usize,
    /// How many snapshots in a row must fail before there is an alert. Default 1.
    #[serde(default = "confirm")]
    pub confirm: u64,
    /// How long there is no further alert of the same invariant and group, in seconds. Default 300.
    #[serde(default = "quiet_secs")]
    pub quiet_secs: u64,
    /// Where alerts are posted to as JSON, at least once each. Its token comes from `DEMI_MONITOR_NAME_TOKEN`.
    #[serde(default)]
    pub webhook: Option<Url>,
    /// Whether the webhook is reached through the proxy that the environment names (`https_proxy`). Default false; this machine is never
    /// reached through one.
    #[serde(default)]
    pub proxy: bool,
    /// Whether `build` is run at a violation.
    #[serde(default)]
    pub build: bool,
    /// With what `minimize` is run behind `build`.
    #[serde(default)]
    pub minimize: Option<MinimizeConfig>,
    /// The token of the webhook.
    #[serde(skip)]
    pub token: Option<String>,
}

/// `minimize = { scenario = "...", budget = "60s" }`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MinimizeConfig {
    /// The scenario file.
    pub scenario: PathBuf,
    /// How much work may be done, as `minimize --budget` says. Default 60s.
    #[serde(default = "budget")]
    pub budget: String,
}

fn one() -> f64 {
    1.0
}

fn cpu_share() -> f64 {
    0.05
}

fn wait_millis() -> u64 {
    Options::default().wait_millis
}

fn wait_records() -> usize {
    Options::default().wait_records
}

fn keys() -> usize {
    Options::default().keys
}

fn actors() -> usize {
    Options::default().actors
}

fn confirm() -> u64 {
    Options::default().confirm
}

fn quiet_secs() -> u64 {
    Options::default().quiet_millis / 1000
}

fn budget() -> String {
    "60s".to_owned()
}

impl MonitorConfig {
    /// Refuses values that cannot work. Looks at no file.
    pub(crate) fn check(&self) -> Result<(), String> {
        let share = |key: &str, value: f64| match value > 0.0 && value <= 1.0 {
            true => Ok(()),
            false => Err(format!("{key} must be above 0 and at most 1, got {value}")),
        };
        share("sample", self.sample)?;
        share("cpu_share", self.cpu_share)?;
        let positive = [
            ("wait_records", self.wait_records as u64),
            ("keys", self.keys as u64),
            ("actors", self.actors as u64),
            ("confirm", self.confirm),
        ];
        if let Some((key, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(format!("{key} must be at least 1"));
        }
        if self.minimize.is_some() && !self.build {
            return Err("minimize needs build = true".to_owned());
        }
        let Some(webhook) = &self.webhook else { return Ok(()) };
        match webhook.scheme() {
            "https" => Ok(()),
            "http" if self.token.is_none() || is_loopback(webhook) => Ok(()),
            "http" => Err("webhook: the token would go over the network in the clear: use https".to_owned()),
            other => Err(format!("webhook must be http or https, not '{other}'")),
        }
    }

    /// The invariants of the file.
    pub(crate) fn read_invariants(&self) -> Result<Vec<Invariant>, String> {
        let path = &self.invariants;
        Invariant::read(&read(path)?).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Refuses files that are named and cannot be used.
    pub(crate) fn check_files(&self) -> Result<(), String> {
        self.read_invariants()?;
        self.minimize.as_ref().map_or(Ok(()), |minimize| read(&minimize.scenario).map(|_| ()))
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            wait_millis: self.wait_millis,
            wait_records: self.wait_records,
            keys: self.keys,
            actors: self.actors,
            confirm: self.confirm,
            quiet_millis: Duration::from_secs(self.quiet_secs).as_millis().try_into().unwrap_or(u64::MAX),
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: cannot be read: {e}", path.display()))
}

/// Whether an address is of this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}
