//! The daemon's configuration file.
//!
//! TOML. An unknown key is refused, with the known one that is nearest. Paths of secrets can be set by the environment
//! without touching the file: `DEMI_SOURCE_TOKEN_FILE`, `…_TLS_CERT`, `…_TLS_KEY`, `…_TLS_CLIENT_CA`, where SOURCE is
//! the source's name in capitals with `_` for everything else than letters and digits (`ADMIN` for `[admin]`). The token of a
//! monitor's webhook is `DEMI_MONITOR_NAME_TOKEN`.

mod error;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use demi_common::nearest;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::batch::OF_MONITORS;
use super::incidents::{IncidentsConfig, ReceiverConfig};
use super::monitors::MonitorConfig;
use super::net::security::{ListenConfig, Secret};
pub use super::sections::{DaemonConfig, Keep, SpoolConfig, StoreConfig, SystemConfig};
use super::sources::{Limits, SourceKind, files};
use demi_formats::Redaction;
use demi_incidents::models::{self, ModelConfig, Models, Takes};
use demi_store::check_system_name;
pub use error::ConfigError;

/// Everything that can be configured.
#[derive(Clone, Debug)]
pub struct Config {
    /// `[store]`: where events go.
    pub store: StoreConfig,
    /// `[spool]`: where they wait.
    pub spool: SpoolConfig,
    /// `[limits]`: what peers may do.
    pub limits: Limits,
    /// `[admin]`: health and metrics.
    pub admin: Option<ListenConfig>,
    /// `[daemon]`: the process.
    pub daemon: DaemonConfig,
    /// `[redact]`: what is not written as it comes.
    pub redact: Option<Arc<Redaction>>,
    /// `[sources.NAME]`, by name.
    pub sources: BTreeMap<String, SourceConfig>,
    /// `[systems.NAME]`, by name.
    pub systems: BTreeMap<String, SystemConfig>,
    /// `[monitors.NAME]`, by name.
    pub monitors: BTreeMap<String, MonitorConfig>,
    /// `[incidents]`: violations as incidents.
    pub incidents: Option<IncidentsConfig>,
    /// `[models.NAME]`: on what incidents are replayed.
    pub models: Models,
    /// `[receivers.NAME]`: who is told of bugs.
    pub receivers: BTreeMap<String, ReceiverConfig>,
}

/// `[sources.NAME]`.
#[derive(Clone, Debug)]
pub struct SourceConfig {
    /// `system`: the system whose events it brings.
    pub system: String,
    /// `actors`: how many actors the system may have, each incarnation counted, for the source to bring new ones; `limits.actors` where absent.
    pub actors: Option<u64>,
    /// `type` and the keys of that kind.
    pub kind: SourceKind,
}

impl Config {
    /// Reads a file; the environment overrides paths of secrets.
    ///
    /// # Errors
    /// When it cannot be read or used.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Config::parse(&text, |name| std::env::var(name).ok()).map_err(|error| match error {
            ConfigError::Toml(text) => ConfigError::Toml(format!("{}: {text}", path.display())),
            ConfigError::Value { table, reason } => {
                ConfigError::Value { table, reason: format!("{reason} (in {})", path.display()) }
            }
            other => other,
        })
    }

    /// Reads a text; `env` gives the values of environment variables.
    ///
    /// # Errors
    /// When it cannot be used.
    pub fn parse(text: &str, env: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let mut root: Table = text
            .parse()
            .map_err(|e: toml::de::Error| ConfigError::Toml(e.to_string().trim_end().to_owned()))?;
        let tables = [
            "store",
            "spool",
            "limits",
            "admin",
            "daemon",
            "redact",
            "sources",
            "systems",
            "monitors",
            "incidents",
            "models",
            "receivers",
        ];
        known("the file", &root, &tables)?;
        let mut store: StoreConfig =
            table("store", root.remove("store").unwrap_or(Value::Table(Table::new())))?;
        store.dir = demi_store::folder_of(&store.dir).map_err(|error| refuse("store", error.to_string()))?;
        let spool: SpoolConfig = table("spool", root.remove("spool").unwrap_or(Value::Table(Table::new())))?;
        let limits: Limits = optional("limits", root.remove("limits"))?.unwrap_or_default();
        let daemon: DaemonConfig = optional("daemon", root.remove("daemon"))?.unwrap_or_default();
        let mut admin: Option<ListenConfig> = optional("admin", root.remove("admin"))?;
        if let Some(admin) = &mut admin {
            overrides(admin.secrets(), "ADMIN", &env);
        }
        let redact = root.remove("redact").map(Redaction::new).transpose()?;
        let redact = redact.map(Arc::new);
        let mut sources = BTreeMap::new();
        let value = root.remove("sources").unwrap_or(Value::Table(Table::new()));
        let Value::Table(tables) = value else {
            return Err(refuse("sources", "must be tables: [sources.NAME]"));
        };
        for (name, value) in tables {
            let config = source(&name, value, &env)?;
            sources.insert(name, config);
        }
        let systems: BTreeMap<String, SystemConfig> =
            optional("systems", root.remove("systems"))?.unwrap_or_default();
        let monitors = monitors(root.remove("monitors"), &env)?;
        let mut incidents: Option<IncidentsConfig> = optional("incidents", root.remove("incidents"))?;
        if let Some(incidents) = &mut incidents {
            overrides(incidents.listen.secrets(), "INCIDENTS", &env);
        }
        let models = optional("models", root.remove("models"))?.unwrap_or_default();
        let named: BTreeMap<String, Value> =
            optional("receivers", root.remove("receivers"))?.unwrap_or_default();
        let mut receivers: BTreeMap<String, ReceiverConfig> = BTreeMap::new();
        for (name, value) in named {
            receivers.insert(name.clone(), table(&format!("receivers.{name}"), value)?);
        }
        for (name, receiver) in &mut receivers {
            let secrets = env(&format!("DEMI_RECEIVER_{}_SECRETS", variable(name))).unwrap_or_default();
            receiver.secrets = secrets.split_whitespace().map(str::to_owned).collect();
        }
        let models = Models { models };
        let mut config = Config {
            store,
            spool,
            limits,
            admin,
            daemon,
            redact,
            sources,
            systems,
            monitors,
            incidents,
            models,
            receivers,
        };
        config.check()?;
        config.leave_work_to_incidents();
        Ok(config)
    }

    /// Where there is an incident service, a monitor's record opens an incident, and the work is the service's: `build` and `minimize` of a monitor are
    /// short for a model that takes its system, unless another one does.
    fn leave_work_to_incidents(&mut self) {
        if self.incidents.is_none() {
            return;
        }
        for (name, monitor) in &mut self.monitors {
            monitor.build = false;
            let Some(minimize) = monitor.minimize.take() else { continue };
            let takes_it = |model: &ModelConfig| {
                model.takes.systems.iter().any(|pattern| models::glob(pattern, &monitor.system))
            };
            if !self.models.models.values().any(takes_it) {
                let takes = Takes { systems: vec![monitor.system.clone()], ..Takes::default() };
                let limits = models::Limits { budget: minimize.budget, ..models::Limits::default() };
                let model = ModelConfig { takes, scenario: minimize.scenario, program: None, limits };
                self.models.models.insert(format!("monitors.{name}"), model);
            }
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        for (name, receiver) in &self.receivers {
            receiver.check().map_err(|reason| refuse(&format!("receivers.{name}"), reason))?;
        }
        if self.incidents.is_none() && !(self.receivers.is_empty() && self.models.models.is_empty()) {
            let table = if self.receivers.is_empty() { "models" } else { "receivers" };
            return Err(refuse(table, "nothing uses it: add a table [incidents]"));
        }
        if self.sources.is_empty() {
            return Err(refuse("sources", "there is none: add a table [sources.NAME] with type and system"));
        }
        for name in self.systems.keys() {
            self.brought(&format!("systems.{name}"), name)?;
        }
        let mut watched: BTreeMap<&str, &str> = BTreeMap::new();
        for (name, monitor) in &self.monitors {
            let title = format!("monitors.{name}");
            monitor.check().map_err(|reason| refuse(&title, reason))?;
            self.brought(&title, &monitor.system)?;
            if let Some(other) = watched.insert(&monitor.system, name) {
                let reason = format!("system '{}' is watched by [monitors.{other}] already", monitor.system);
                return Err(refuse(&title, reason));
            }
        }
        let positive = [
            ("store", "seal_rows", self.store.seal_rows),
            ("store", "seal_bytes", self.store.seal_bytes),
            ("store", "keep_removed_hours", self.store.keep_removed_hours),
            ("limits", "actors", self.limits.actors),
            ("limits", "line_bytes", self.limits.line_bytes as u64),
            ("limits", "body_bytes", self.limits.body_bytes as u64),
            ("limits", "read_secs", self.limits.read_secs),
            ("limits", "idle_secs", self.limits.idle_secs),
        ];
        for (table, key, value) in positive {
            if value == 0 {
                return Err(refuse(table, format!("{key} must be at least 1")));
            }
        }
        let most = super::intake::most_bytes(self.redact.is_some());
        for (key, value) in [("line_bytes", self.limits.line_bytes), ("body_bytes", self.limits.body_bytes)] {
            if value > most {
                return Err(refuse("limits", format!("{key} must be at most {most}")));
            }
        }
        let least = 2 * self.limits.body_bytes;
        if self.limits.requests_bytes < least {
            let reason = format!(
                "requests_bytes must be at least {least}: a request of body_bytes, packed and unpacked"
            );
            return Err(refuse("limits", reason));
        }
        let spool = &self.spool;
        // Room for one segment in use and some of the largest batches.
        let least = 4 * (self.limits.body_bytes as u64).max(files::CHUNK as u64) + spool.segment_bytes;
        if spool.max_bytes < least {
            return Err(refuse(
                "spool",
                format!("max_bytes must be at least {least}, got {}", spool.max_bytes),
            ));
        }
        if spool.segment_bytes == 0 || spool.segment_bytes > spool.max_bytes / 4 {
            return Err(refuse("spool", "segment_bytes must be from 1 to a quarter of max_bytes"));
        }
        Ok(())
    }

    /// Whether a source brings events of a system that a table is about.
    fn brought(&self, table: &str, system: &str) -> Result<(), ConfigError> {
        if self.sources.values().any(|source| source.system == system) {
            return Ok(());
        }
        let systems = self.sources.values().map(|source| source.system.as_str());
        let hint = demi_common::hint::did_you_mean(system, systems);
        Err(refuse(table, format!("no source brings events of system '{system}'{hint}")))
    }

    /// How long events of a system are kept; for ever where nothing says it.
    #[must_use]
    pub fn keep(&self, system: &str) -> Option<Keep> {
        self.systems.get(system).and_then(|system| system.keep).or(self.store.keep)
    }

    /// `seal_millis` as a duration.
    #[must_use]
    pub fn seal_after(&self) -> Duration {
        Duration::from_millis(self.store.seal_millis)
    }
}

fn refuse(table: &str, reason: impl Into<String>) -> ConfigError {
    ConfigError::Value { table: table.to_owned(), reason: reason.into() }
}

fn known(table: &str, value: &Table, keys: &[&str]) -> Result<(), ConfigError> {
    let unknown = value.keys().find(|key| !keys.contains(&key.as_str()));
    unknown.map_or(Ok(()), |key| Err(unknown_key(table, key, keys)))
}

fn unknown_key(table: &str, key: &str, keys: &[&str]) -> ConfigError {
    let hint = match nearest(key, keys.iter().copied()) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("known are {}", keys.join(", ")),
    };
    refuse(table, format!("unknown key '{key}': {hint}"))
}

fn optional<T: DeserializeOwned>(name: &str, value: Option<Value>) -> Result<Option<T>, ConfigError> {
    value.map(|value| table(name, value)).transpose()
}

/// A table as its type.
fn table<T: DeserializeOwned>(name: &str, value: Value) -> Result<T, ConfigError> {
    value.try_into().map_err(|error| unreadable(name, &error))
}

/// Why a table could not be read. Of a key that nobody knows the nearest known one is told.
fn unreadable(name: &str, error: &toml::de::Error) -> ConfigError {
    let text = error.message().trim_end();
    let unknown = text.split_once("unknown field `").and_then(|(_, rest)| rest.split_once('`'));
    match unknown {
        Some((key, rest)) => unknown_key(name, key, &in_quotes(rest)),
        None => refuse(name, text),
    }
}

/// What a message of serde has in its quotes.
fn in_quotes(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The kinds of sources, as serde lists them.
fn kinds() -> Vec<String> {
    let none = Table::from_iter([("type".to_owned(), Value::from(""))]);
    let error = none.try_into::<SourceKind>().err();
    let listed = error.as_ref().map_or("", |error| error.message());
    in_quotes(listed).into_iter().filter(|kind| !kind.is_empty()).map(str::to_owned).collect()
}

/// Puts paths of secrets from the environment over those of the file.
fn overrides(secrets: Vec<Secret<'_>>, prefix: &str, env: &impl Fn(&str) -> Option<String>) {
    for (key, secret) in secrets {
        if let Some(path) = env(&format!("DEMI_{prefix}_{}", key.to_ascii_uppercase())) {
            *secret = Some(path.into());
        }
    }
}

/// `[monitors.NAME]`; tokens come from the environment alone.
fn monitors(
    value: Option<Value>,
    env: &impl Fn(&str) -> Option<String>,
) -> Result<BTreeMap<String, MonitorConfig>, ConfigError> {
    let Some(value) = value else { return Ok(BTreeMap::new()) };
    let Value::Table(tables) = value else {
        return Err(refuse("monitors", "must be tables: [monitors.NAME]"));
    };
    let read = |(name, value): (String, Value)| {
        let mut monitor: MonitorConfig = table(&format!("monitors.{name}"), value)?;
        monitor.token = env(&format!("DEMI_MONITOR_{}_TOKEN", variable(&name)));
        Ok((name, monitor))
    };
    tables.into_iter().map(read).collect()
}

/// A name as a part of the name of an environment variable.
fn variable(name: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    name.chars().map(upper).collect()
}

fn source(
    name: &str,
    value: Value,
    env: &impl Fn(&str) -> Option<String>,
) -> Result<SourceConfig, ConfigError> {
    let title = format!("sources.{name}");
    if name.starts_with(OF_MONITORS) {
        return Err(refuse(
            "sources",
            format!("'{name}' is a name of the daemon's own: no source begins with '{OF_MONITORS}'"),
        ));
    }
    let Value::Table(mut value) = value else {
        return Err(refuse("sources", format!("'{name}' must be a table: [{title}]")));
    };
    let actors = match value.remove("actors").map(|value| value.as_integer().map(u64::try_from)) {
        None => None,
        Some(Some(Ok(actors @ 1..))) => Some(actors),
        Some(_) => return Err(refuse(&title, "actors must be a whole number from 1")),
    };
    let mut text = |key: &str, example: &str| match value.remove(key) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(refuse(&title, format!("{key} must be text"))),
        None => Err(refuse(&title, format!("{key} is missing ({example})"))),
    };
    let kinds = kinds();
    let kind = text("type", &kinds.join(", "))?;
    if !kinds.contains(&kind) {
        let hint =
            nearest(&kind, kinds.iter().map(String::as_str)).map(|near| format!("; did you mean '{near}'?"));
        let reason =
            format!("unknown type '{kind}' (known: {}){}", kinds.join(", "), hint.unwrap_or_default());
        return Err(refuse(&title, reason));
    }
    let system = text("system", "the name of the system whose events it brings")?;
    check_system_name(&system).map_err(|e| refuse(&title, e.to_string()))?;
    value.insert("type".to_owned(), Value::String(kind));
    let mut kind: SourceKind = table(&title, Value::Table(value))?;
    overrides(kind.secrets(), &variable(name), env);
    kind.source().check().map_err(|e| refuse(&title, e.to_string()))?;
    Ok(SourceConfig { system, actors, kind })
}

#[cfg(test)]
mod tests;
