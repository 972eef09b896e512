//! What a source of the daemon is, and the kinds that there are.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::path::PathBuf;

use futures::future::BoxFuture;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use tokio::task::JoinHandle;
use toml::{Table, Value};

#[cfg(feature = "nats")]
use super::nats;
#[cfg(feature = "otlp")]
use super::otlp;
use super::{Context, files, http, tcp};
use crate::net::security::{ListenConfig, Listener, Secret, SecurityError};

/// A source as it is configured: its kind, which is its `type`, with the keys of that kind. This is the one list of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SourceKind {
    /// Follows files.
    Files(files::Config),
    /// Event records over TCP.
    Tcp(Listening<tcp::Config>),
    /// Event records over HTTP.
    Http(Listening<http::Config>),
    /// OpenTelemetry over gRPC and HTTP.
    #[cfg(feature = "otlp")]
    Otlp(Listening<otlp::Config>),
    /// A JetStream consumer.
    #[cfg(feature = "nats")]
    Nats(nats::Config),
}

/// Calls a method of [`Source`], whatever the kind.
macro_rules! of_kind {
    ($kind:expr, $source:ident => $call:expr) => {
        match $kind {
            SourceKind::Files($source) => $call,
            SourceKind::Tcp($source) => $call,
            SourceKind::Http($source) => $call,
            #[cfg(feature = "otlp")]
            SourceKind::Otlp($source) => $call,
            #[cfg(feature = "nats")]
            SourceKind::Nats($source) => $call,
        }
    };
}

impl SourceKind {
    /// What all kinds can do.
    #[must_use]
    pub fn source(&self) -> &dyn Source {
        of_kind!(self, source => source)
    }

    /// The settings that name files of secrets, by key.
    pub(crate) fn secrets(&mut self) -> Vec<Secret<'_>> {
        of_kind!(self, source => source.secrets())
    }
}

/// What a source can do, whatever its kind.
pub trait Source: Debug + Send + Sync {
    /// Refuses values that cannot work. Looks at no file.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    fn check(&self) -> Result<(), SourceError> {
        Ok(())
    }

    /// Refuses files that are named and cannot be used: certificates, tokens, mappings. Listens nowhere.
    ///
    /// # Errors
    /// The first file that cannot be used.
    fn check_files(&self) -> Result<(), SourceError>;

    /// The settings that name files of secrets, by key. The environment can set them too.
    fn secrets(&mut self) -> Vec<Secret<'_>> {
        Vec::new()
    }

    /// Which of these absolute paths it would read, if a file were there.
    fn would_read(&self, _paths: &[PathBuf]) -> Option<PathBuf> {
        None
    }

    /// The files that it reads, as they are now.
    fn reads(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Opens sockets and files, spawns the tasks of the source, and returns. They end soon after
    /// [`Context::shutdown`] is thrown: they take nothing new, and finish what they have handed over.
    fn start(&self, context: Context) -> BoxFuture<'static, Result<Running, SourceError>>;
}

/// A source at work.
#[derive(Debug)]
pub struct Running {
    /// The addresses it listens on, if it does.
    pub addresses: Vec<SocketAddr>,
    /// Ends when the source has ended.
    pub task: JoinHandle<()>,
}

/// Why a source cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// Its listener cannot be opened.
    #[error(transparent)]
    Security(#[from] SecurityError),
    /// A setting cannot be used.
    #[error("{key}: {reason}")]
    Setting {
        /// The key.
        key: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

impl SourceError {
    /// A setting that cannot be used, and why.
    pub(crate) fn setting(key: &'static str, reason: impl Into<String>) -> Self {
        SourceError::Setting { key, reason: reason.into() }
    }
}

/// What a source that listens does with its connections.
pub trait Serves: Clone + Debug + Send + Sync + 'static {
    /// The protocols that it offers inside TLS, the preferred first.
    const PROTOCOLS: &'static [&'static str] = &[];

    /// Refuses values that cannot work. Looks at no file.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    fn check(&self) -> Result<(), SourceError> {
        Ok(())
    }

    /// Refuses files that are named and cannot be used.
    ///
    /// # Errors
    /// The first file that cannot be used.
    fn check_files(&self) -> Result<(), SourceError> {
        Ok(())
    }

    /// What serves the connections of a listener until shutdown.
    ///
    /// # Errors
    /// When a file that is named cannot be used.
    fn server(&self, context: Context) -> Result<Server, SourceError>;
}

/// Serves the connections of a listener until shutdown.
pub type Server = Box<dyn FnOnce(Listener) -> BoxFuture<'static, ()> + Send>;

/// A source that listens: where, and what it does besides. Both have their keys in one table.
#[derive(Clone, Debug)]
pub struct Listening<S> {
    listen: ListenConfig,
    serves: S,
}

impl<'de, S: DeserializeOwned> Deserialize<'de> for Listening<S> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let all = Table::deserialize(from)?;
        let (listen, own): (Table, Table) =
            all.into_iter().partition(|(key, _)| ListenConfig::KEYS.contains(&key.as_str()));
        let serves = Value::Table(own).try_into().map_err(|error: toml::de::Error| {
            let keys = ListenConfig::KEYS.map(|key| format!("`{key}`")).join(", ");
            match error.message().trim_end() {
                unknown if unknown.starts_with("unknown field") => {
                    D::Error::custom(format!("{unknown}, {keys}"))
                }
                other => D::Error::custom(other),
            }
        })?;
        let listen = Value::Table(listen)
            .try_into()
            .map_err(|e: toml::de::Error| D::Error::custom(e.message().trim_end()))?;
        Ok(Listening { listen, serves })
    }
}

impl<S: Serves> Source for Listening<S> {
    fn check(&self) -> Result<(), SourceError> {
        self.serves.check()
    }

    fn check_files(&self) -> Result<(), SourceError> {
        self.listen.check()?;
        self.serves.check_files()
    }

    fn secrets(&mut self) -> Vec<Secret<'_>> {
        self.listen.secrets()
    }

    fn start(&self, context: Context) -> BoxFuture<'static, Result<Running, SourceError>> {
        let Listening { listen, serves } = self.clone();
        Box::pin(async move {
            let reload = context.reload.clone();
            let server = serves.server(context)?;
            let listener = Listener::bind(&listen, &reload, S::PROTOCOLS).await?;
            let addresses = vec![listener.address()];
            Ok(Running { addresses, task: tokio::spawn(server(listener)) })
        })
    }
}
