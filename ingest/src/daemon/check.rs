//! What can be refused before the daemon starts.

use super::config::Config;
use super::monitors::MonitorError;
use super::run::log_filter;
use super::serve::ServeError;
use super::sources::SourceError;

/// Why a configuration that can be read cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The rules of the log cannot be read.
    #[error("{0}")]
    Log(String),
    /// A source, or the admin listener.
    #[error(transparent)]
    Source(#[from] ServeError),
}

/// Refuses what serving would refuse, as far as it can be told without listening and without touching spool and store:
/// certificates, keys, tokens, addresses that are open to others, mappings, rules of the log.
///
/// # Errors
/// The first thing that cannot be used.
pub fn check(config: &Config) -> Result<(), CheckError> {
    log_filter(&config.daemon).map_err(CheckError::Log)?;
    let failed = |name: &str, source: SourceError| ServeError::Source { name: name.to_owned(), source };
    for (name, source) in &config.sources {
        source.kind.check_files().map_err(|source| failed(name, source))?;
    }
    for (name, monitor) in &config.monitors {
        let failed = |reason| ServeError::Monitor { name: name.clone(), source: MonitorError::File(reason) };
        monitor.check_files().map_err(failed)?;
    }
    if let Some(listen) = &config.admin {
        listen.check().map_err(|source| ServeError::Admin { source })?;
    }
    Ok(())
}
