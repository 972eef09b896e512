//! Files of secrets: certificates, keys, tokens.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};

use super::error::SecurityError;
use demi_formats::secret_file::{self, Holds};

/// Longest token, in bytes.
const LONGEST: usize = 512;
/// Length from which a token is not guessed, in bytes: 96 bits where each character is one of 64.
const LONG_ENOUGH: u64 = 16;

/// What somebody who shows a token may do. Each may do what stands before it as well, but for a reporter, who may only report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reads.
    Viewer,
    /// Reports incidents, and nothing else.
    Reporter,
    /// Says what is to become of bugs and incidents.
    Operator,
    /// Works on incidents.
    Worker,
    /// Everything.
    Admin,
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 5] = [Role::Viewer, Role::Reporter, Role::Operator, Role::Worker, Role::Admin];

    /// The word that stands for it in a file of tokens.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Reporter => "reporter",
            Role::Operator => "operator",
            Role::Worker => "worker",
            Role::Admin => "admin",
        }
    }

    /// Whether it may do what this role may do.
    #[must_use]
    pub fn may(self, needed: Role) -> bool {
        if self == Role::Reporter { needed == Role::Reporter } else { self >= needed }
    }
}

/// Who shows a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// What they may do.
    pub role: Role,
    /// Their name; empty where the file has none.
    pub name: String,
}

/// Valid tokens, each filled up to one length, so that comparing takes the same time for all.
pub(super) struct TokenList(Vec<Valid>);

struct Valid {
    token: (u64, [u8; LONGEST]),
    holder: Holder,
}

fn fill(token: &[u8]) -> (u64, [u8; LONGEST]) {
    let mut filled = [0; LONGEST];
    let length = token.len().min(LONGEST);
    filled[..length].copy_from_slice(&token[..length]);
    (token.len() as u64, filled)
}

impl TokenList {
    /// Whose token it is. The time it takes depends on how many tokens there are, and on nothing else.
    pub(super) fn holder(&self, shown: &[u8]) -> Option<&Holder> {
        let (length, bytes) = fill(shown);
        let mut found = self.0.len() as u64;
        for (at, valid) in self.0.iter().enumerate() {
            let same: Choice = valid.token.0.ct_eq(&length) & valid.token.1.ct_eq(&bytes);
            found.conditional_assign(&(at as u64), same);
        }
        self.0.get(usize::try_from(found).ok()?).map(|valid| &valid.holder)
    }

    /// Whether the token is one of these that may do everything.
    pub(super) fn contain(&self, shown: &[u8]) -> bool {
        self.holder(shown).is_some_and(|holder| holder.role == Role::Admin)
    }

    /// How many tokens are so short that they may be guessed.
    fn short(&self) -> usize {
        self.0.iter().filter(|valid| valid.token.0 < LONG_ENOUGH).count()
    }
}

fn refuse(path: &Path, reason: impl Into<String>) -> SecurityError {
    SecurityError::Secret { path: path.to_owned(), reason: reason.into() }
}

fn read(path: &Path, holds: Holds) -> Result<Vec<u8>, SecurityError> {
    secret_file::read(path, holds).map_err(|reason| refuse(path, reason))
}

/// Who a line is of, and the token in it.
fn holder_of(line: &[u8]) -> (Holder, &[u8]) {
    let words: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    if let [role, name, token] = words.as_slice()
        && let Some(role) = Role::ALL.into_iter().find(|known| known.word().as_bytes() == *role)
        && let Ok(name) = std::str::from_utf8(name)
        && name.chars().all(|c| c.is_alphanumeric() || "-_.@".contains(c))
    {
        return (Holder { role, name: name.to_owned() }, token);
    }
    (Holder { role: Role::Admin, name: String::new() }, line)
}

/// Tokens of a file, one a line: a token alone, which may do everything, or `ROLE NAME TOKEN`.
pub(super) fn read_tokens(path: &Path) -> Result<TokenList, SecurityError> {
    let bytes = read(path, Holds::Secret)?;
    let lines = bytes.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).enumerate();
    let mut tokens = Vec::new();
    for (n, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with(b"#")) {
        let (holder, token) = holder_of(line);
        if token.len() > LONGEST || !token.iter().all(u8::is_ascii_graphic) {
            let rule = format!(
                "is neither a token (at most {LONGEST} visible ASCII characters without spaces) nor ROLE NAME TOKEN"
            );
            return Err(refuse(path, format!("line {} {rule}", n + 1)));
        }
        tokens.push(Valid { token: fill(token), holder });
    }
    if tokens.is_empty() {
        return Err(refuse(path, "holds no token"));
    }
    let tokens = TokenList(tokens);
    if tokens.short() > 0 {
        let path = path.display();
        tracing::warn!(%path, tokens = tokens.short(), "tokens of fewer than {LONG_ENOUGH} characters may be guessed");
    }
    Ok(tokens)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, SecurityError> {
    let pem = read(path, Holds::Public)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let found = found.map_err(|error| refuse(path, format!("is not PEM: {error}")))?;
    if found.is_empty() { Err(refuse(path, "holds no certificate")) } else { Ok(found) }
}

/// What a server needs for TLS; with `ca`, clients need a certificate signed by one of those in it.
pub(super) fn read_tls(
    cert: &Path,
    key: &Path,
    ca: Option<&Path>,
    alpn: &[&str],
) -> Result<Arc<ServerConfig>, SecurityError> {
    let chain = certificates(cert)?;
    let pem = read(key, Holds::Secret)?;
    let private = PrivateKeyDer::from_pem_slice(&pem)
        .map_err(|error| refuse(key, format!("holds no private key: {error}")))?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| refuse(cert, error.to_string()))?;
    let builder = match ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for authority in certificates(path)? {
                roots.add(authority).map_err(|error| refuse(path, error.to_string()))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| refuse(path, error.to_string()))?)
        }
    };
    let mut config = builder
        .with_single_cert(chain, private)
        .map_err(|error| refuse(cert, format!("does not go with {}: {error}", key.display())))?;
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tokens_that_may_be_guessed_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        std::fs::write(&path, "# two are short\nx\n0123456789abcde\n0123456789abcdef\n").unwrap();
        assert_eq!(read_tokens(&path).unwrap_or(TokenList(Vec::new())).short(), 2);
    }

    proptest! {
        #[test]
        fn a_token_is_found_if_it_is_there(
            valid in proptest::collection::vec("[!-~]{1,8}", 1..4), shown in "[!-~]{0,8}", pick in 0..4_usize,
        ) {
            let holder = Holder { role: Role::Admin, name: String::new() };
            let of = |t: &String| Valid { token: fill(t.as_bytes()), holder: holder.clone() };
            let list = TokenList(valid.iter().map(of).collect());
            prop_assert_eq!(list.contain(shown.as_bytes()), valid.contains(&shown));
            let known = &valid[pick % valid.len()];
            prop_assert!(list.contain(known.as_bytes()));
            let longer = format!("{known}\0");
            prop_assert!(!list.contain(longer.as_bytes()));
        }
    }

    #[test]
    fn files_of_tokens() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        let said = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_tokens(&path).map(|list| list.0.len()).map_err(|e| e.to_string())
        };
        assert_eq!(said("# shippers\nfirst\r\n\n  second \n"), Ok(2));
        assert!(said("# none\n").unwrap_err().ends_with("holds no token"));
        assert!(said("good\ntwo words\n").unwrap_err().contains("line 2"));
        assert!(said("boss me 0123\n").unwrap_err().contains("ROLE NAME TOKEN"));
        std::fs::write(&path, "viewer ann secret-1\nalone\n  operator  bob  secret-2\n").unwrap();
        let list = read_tokens(&path).unwrap();
        let holder = |shown: &str| list.holder(shown.as_bytes()).map(|h| (h.role, h.name.as_str()));
        assert_eq!(holder("secret-1"), Some((Role::Viewer, "ann")));
        assert_eq!(holder("secret-2"), Some((Role::Operator, "bob")));
        assert_eq!(holder("alone"), Some((Role::Admin, "")));
        assert_eq!((holder("ann"), holder("viewer ann secret-1")), (None, None));
        // What asks for no role takes nobody who has less than all.
        assert!(list.contain(b"alone") && !list.contain(b"secret-1") && !list.contain(b"secret-2"));
        assert!(said(&"x".repeat(513)).unwrap_err().contains("512"));
        assert!(read_tokens(&dir.path().join("absent")).is_err());
        let long = format!("{}\n", "x".repeat(512));
        std::fs::write(&path, &long).unwrap();
        let list = read_tokens(&path).unwrap();
        assert!(list.contain(long.trim().as_bytes()) && !list.contain("x".repeat(600).as_bytes()));
    }
}
