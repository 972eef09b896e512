//! What a source of the daemon is.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde::de::DeserializeOwned;

use super::{Context, Running, SourceError};

/// A source as it is configured: the keys of `[sources.NAME]` besides `type` and `system`.
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

/// A kind of source.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// `type` in the configuration.
    pub name: &'static str,
    /// The keys besides `type` and `system`.
    pub keys: &'static [&'static str],
    /// Reads the keys.
    pub read: fn(toml::Value) -> Result<Arc<dyn Source>, toml::de::Error>,
}

/// Reads the keys of a kind whose source is `S`.
pub(super) fn read_keys<S: Source + DeserializeOwned + 'static>(
    keys: toml::Value,
) -> Result<Arc<dyn Source>, toml::de::Error> {
    Ok(Arc::new(keys.try_into::<S>()?))
}
