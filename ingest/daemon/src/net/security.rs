//! Listeners and who may speak to them: bearer tokens, TLS, client certificates.
//!
//! A listener serves loopback addresses only, unless it asks who is there: by tokens, or by client certificates. Files
//! of secrets are read again when [`Reload`] asks (SIGHUP); where one cannot be used any more, what was read before
//! stays in force and the error is logged.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use rustls::ServerConfig;
use serde::Deserialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

pub use super::connection::Connection;
use super::connection::Inner;
pub use super::error::SecurityError;
use super::guard::Guard;
pub use super::secrets::{Holder, Role};
use super::secrets::{TokenList, read_tls, read_tokens};
use crate::metrics::Metrics;
use crate::shutdown::Reload;
use crate::tasks::Task;

/// How long a peer may take for the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Handshakes going on at the same time; more wait in the system's queue.
const HANDSHAKES: usize = 256;
/// First byte of every TLS connection: a handshake record (RFC 8446, 5.1).
const TLS_HANDSHAKE: u8 = 0x16;

/// Where a listener listens, and who may speak to it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
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
    /// File of bearer tokens, one a line; empty lines and those that begin with `#` are left out.
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
    /// The keys, which a source has in one table with its own.
    pub(crate) const KEYS: [&'static str; 6] =
        ["listen", "tls_cert", "tls_key", "tls_client_ca", "token_file", "max_connections"];

    /// The settings that name files of secrets, by key.
    pub(crate) fn secrets(&mut self) -> Vec<Secret<'_>> {
        vec![
            ("token_file", &mut self.token_file),
            ("tls_cert", &mut self.tls_cert),
            ("tls_key", &mut self.tls_key),
            ("tls_client_ca", &mut self.tls_client_ca),
        ]
    }

    /// Checks the rules and reads the files of secrets, without listening.
    ///
    /// # Errors
    /// When the address is open to others without authentication, or a file cannot be used.
    pub fn check(&self) -> Result<(), SecurityError> {
        self.read(&[]).map(drop)
    }

    fn read(&self, alpn: &[&str]) -> Result<Secrets, SecurityError> {
        let address = self.listen;
        let tls = match (&self.tls_cert, &self.tls_key, &self.tls_client_ca) {
            (Some(cert), Some(key), ca) => Some(read_tls(cert, key, ca.as_deref(), alpn)?),
            (None, None, None) => None,
            (cert, key, _) => {
                let missing = match (cert, key) {
                    (None, Some(_)) => "tls_cert",
                    (Some(_), _) => "tls_key",
                    (None, None) => "tls_cert and tls_key",
                };
                return Err(SecurityError::Incomplete { missing });
            }
        };
        let tokens = self.token_file.as_deref().map(read_tokens).transpose()?;
        if !address.ip().is_loopback() && tokens.is_none() && self.tls_client_ca.is_none() {
            return Err(SecurityError::Open { address });
        }
        Ok(Secrets { tls, tokens })
    }
}

/// A setting that names a file of secrets, with its key.
pub(crate) type Secret<'a> = (&'static str, &'a mut Option<PathBuf>);

/// What was read from the files of secrets.
struct Secrets {
    tls: Option<Arc<ServerConfig>>,
    tokens: Option<TokenList>,
}

/// The secrets in force.
type Current = Arc<RwLock<Secrets>>;

/// Where refused connections are counted.
struct Counter {
    metrics: Arc<Metrics>,
    source: Arc<str>,
}

/// A listening socket that gives out connections which may be served.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    max_connections: usize,
    current: Current,
    handshakes: JoinSet<Result<(Connection, SocketAddr), Refused>>,
    counter: Option<Counter>,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").field("socket", &self.socket).finish_non_exhaustive()
    }
}

/// A connection that did not come through: who, and a word for the metrics.
struct Refused {
    peer: SocketAddr,
    reason: &'static str,
    text: String,
}

impl Listener {
    /// Listens as configured; certificates and tokens are read again when `reload` asks. Inside TLS it offers these protocols (ALPN, RFC 7301),
    /// such as `h2`, the preferred first.
    ///
    /// # Errors
    /// When the address cannot be listened on, is open to others without authentication, or a file of the
    /// configuration cannot be used.
    pub async fn bind(
        config: &ListenConfig,
        reload: &Reload,
        alpn: &'static [&'static str],
    ) -> Result<Self, SecurityError> {
        let address = config.listen;
        let secrets = config.read(alpn)?;
        if !address.ip().is_loopback() && secrets.tls.is_none() {
            tracing::warn!(%address, "tokens and data cross the network unencrypted: tls_cert is not set");
        }
        let failed = |source| SecurityError::Bind { address, source };
        let socket = TcpListener::bind(address).await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let current = Arc::new(RwLock::new(secrets));
        tokio::spawn(keep_current(config.clone(), alpn, Arc::downgrade(&current), reload.clone()));
        let max_connections = config.max_connections.max(1);
        Ok(Listener { socket, address, max_connections, current, handshakes: JoinSet::new(), counter: None })
    }

    /// Counts connections that are refused before they are given out as those of `source`.
    pub fn count_into(&mut self, metrics: &Arc<Metrics>, source: &Arc<str>) {
        self.counter = Some(Counter { metrics: metrics.clone(), source: source.clone() });
    }

    /// The address in use; tells the port if 0 was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections are served at the same time.
    #[must_use]
    pub fn max_connections(&self) -> usize {
        self.max_connections
    }

    /// The next connection. TLS is set up, and refused connections are counted, before it is given out; one slow
    /// handshake does not hold up others. Safe to drop and call again.
    ///
    /// # Errors
    /// What the system says; it may be called again.
    pub async fn accept(&mut self) -> io::Result<(Connection, SocketAddr)> {
        loop {
            let (stream, peer) = tokio::select! {
                accepted = self.socket.accept(), if self.handshakes.len() < HANDSHAKES => accepted?,
                Some(done) = self.handshakes.join_next(), if !self.handshakes.is_empty() => {
                    match done {
                        Ok(Ok(ready)) => return Ok(ready),
                        Ok(Err(refused)) => self.refuse(&refused),
                        Err(error) => tracing::error!(%error, "a handshake ended unexpectedly"),
                    }
                    continue;
                }
            };
            stream.set_nodelay(true)?;
            let tls = self.current.read().unwrap_or_else(PoisonError::into_inner).tls.clone();
            match tls {
                None => return Ok((Connection(Inner::Plain(stream)), peer)),
                Some(tls) => {
                    self.handshakes.spawn(handshake(stream, peer, tls));
                }
            }
        }
    }

    fn refuse(&self, refused: &Refused) {
        let Refused { peer, reason, text } = refused;
        if let Some(counter) = &self.counter {
            counter.metrics.count_refused(&counter.source, reason);
        }
        tracing::debug!(%peer, reason, text, "connection refused");
    }

    /// Who may ask over HTTP.
    #[must_use]
    pub fn guard(&self) -> Guard {
        Guard::new(self.tokens(), self.address.ip())
    }

    /// The tokens that requests must show.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        Tokens { current: self.current.clone() }
    }
}

/// Sets up TLS.
async fn handshake(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Arc<ServerConfig>,
) -> Result<(Connection, SocketAddr), Refused> {
    let refused = |reason, text: String| Refused { peer, reason, text };
    let set_up = async {
        let mut first = [0];
        match stream.peek(&mut first).await {
            Ok(1..) if first[0] == TLS_HANDSHAKE => {}
            Ok(1..) => return Err(refused("plain_text", "the peer does not speak TLS".to_owned())),
            Ok(_) => return Err(refused("broken_connection", "the peer said nothing".to_owned())),
            Err(error) => return Err(refused("broken_connection", error.to_string())),
        }
        let accepted = TlsAcceptor::from(tls).accept(stream).await;
        accepted.map_err(|error| refused("bad_handshake", error.to_string()))
    };
    let stream = tokio::time::timeout(HANDSHAKE, set_up)
        .await
        .map_err(|_| refused("too_slow", "the handshake took too long".to_owned()))??;
    Ok((Connection(Inner::Tls(Box::new(stream))), peer))
}

/// Reads the secrets again whenever that is asked for, until the listener is gone.
async fn keep_current(
    config: ListenConfig,
    alpn: &'static [&'static str],
    current: Weak<RwLock<Secrets>>,
    reload: Reload,
) {
    let mut asked = reload.subscribe();
    // Holding the sender would keep it from ever closing.
    drop(reload);
    while asked.changed().await.is_ok() {
        let Some(current) = current.upgrade() else { return };
        // Whatever happens here, the next request to read them again is heard.
        let read = Task::caught(|| config.read(alpn).map_err(|error| error.to_string()));
        match read.flatten() {
            Ok(secrets) => {
                *current.write().unwrap_or_else(PoisonError::into_inner) = secrets;
                tracing::info!(address = %config.listen, "certificates and tokens were read again");
            }
            Err(error) => {
                tracing::error!(address = %config.listen, %error, "certificates and tokens stay as they were");
            }
        }
    }
}

/// The bearer tokens of a listener, as they are now. Cheap to clone.
#[derive(Clone)]
pub struct Tokens {
    current: Current,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").field("required", &self.required()).finish()
    }
}

impl Tokens {
    /// Whether a request must show a token.
    #[must_use]
    pub fn required(&self) -> bool {
        self.current.read().unwrap_or_else(PoisonError::into_inner).tokens.is_some()
    }

    /// Who shows this token; nobody where it is not valid. Without required tokens whoever asks may do everything.
    #[must_use]
    pub fn holder(&self, shown: Option<&[u8]>) -> Option<Holder> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        match (&current.tokens, shown) {
            (None, _) => Some(Holder { role: Role::Admin, name: String::new() }),
            (Some(_), None) => None,
            (Some(tokens), Some(shown)) => tokens.holder(shown).cloned(),
        }
    }

    /// Whether the token shown is one of those that are valid and may do everything, in time that does not tell which part was wrong.
    /// Without required tokens everything is.
    #[must_use]
    pub fn allow(&self, shown: Option<&[u8]>) -> bool {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        match (&current.tokens, shown) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(tokens), Some(shown)) => tokens.contain(shown),
        }
    }
}
