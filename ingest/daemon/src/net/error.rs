//! Why nobody can listen or be let in.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why nothing can be listened on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecurityError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// Other machines would be served without being asked who they are.
    #[error(
        "{address} is not a loopback address: give token_file, or tls_cert, tls_key and tls_client_ca, to listen there"
    )]
    Open {
        /// The address.
        address: SocketAddr,
    },
    /// Half of what TLS needs is given.
    #[error("TLS needs {missing} too")]
    Incomplete {
        /// The keys that are missing.
        missing: &'static str,
    },
    /// A file of secrets cannot be used.
    #[error("{}: {reason}", .path.display())]
    Secret {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}
