//! What lies on object storage, where the store does and the build reaches it.

use std::io;

/// What object storage says, as the system would.
pub(crate) fn said(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::other(error)
}

#[cfg(feature = "store")]
pub(crate) use demi_store::{RemoteObjects as Far, is_mirror as is_far};

#[cfg(not(feature = "store"))]
mod nothing {
    use std::collections::BTreeMap;
    use std::io::Error;
    use std::path::Path;

    /// There is none in this build.
    #[derive(Clone, Debug)]
    pub enum Far {}

    pub(crate) fn is_far(_: &Path) -> bool {
        false
    }

    impl Far {
        pub(crate) fn of(_: &Path, _: &str) -> Result<Option<Self>, Error> {
            Ok(None)
        }

        pub(crate) fn create(&self, _: &str, _: &[u8]) -> Result<bool, Error> {
            match *self {}
        }

        pub(crate) fn read_each(&self, _: &[String]) -> Result<Vec<Option<Vec<u8>>>, Error> {
            match *self {}
        }

        pub(crate) fn replace(&self, _: &str, _: &[u8]) -> Result<(), Error> {
            match *self {}
        }

        pub(crate) fn remove_each(&self, _: &[String]) -> Result<(), Error> {
            match *self {}
        }

        pub(crate) fn list(&self, _: &str) -> Result<BTreeMap<String, u64>, Error> {
            match *self {}
        }

        pub(crate) fn publish(&self, _: &str) -> Result<(), Error> {
            match *self {}
        }

        pub(crate) fn bring(&self, _: &str) -> Result<(), Error> {
            match *self {}
        }
    }
}
#[cfg(not(feature = "store"))]
pub(crate) use nothing::{Far, is_far};
