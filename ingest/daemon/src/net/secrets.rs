//! Files of secrets: certificates, keys, tokens.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use subtle::{Choice, ConstantTimeEq as _};

use super::error::SecurityError;
use demi_formats::secret_file::{self, Holds};

/// Longest token, in bytes.
const LONGEST: usize = 512;
/// Length from which a token is not guessed, in bytes: 96 bits where each character is one of 64.
const LONG_ENOUGH: u64 = 16;

/// Valid tokens, each filled up to one length, so that comparing takes the same time for all.
pub(super) struct TokenList(Vec<(u64, [u8; LONGEST])>);

fn fill(token: &[u8]) -> (u64, [u8; LONGEST]) {
    let mut filled = [0; LONGEST];
    let length = token.len().min(LONGEST);
    filled[..length].copy_from_slice(&token[..length]);
    (token.len() as u64, filled)
}

impl TokenList {
    /// Whether the token is one of these. The time it takes depends on how many tokens there are, and on nothing else.
    pub(super) fn contain(&self, shown: &[u8]) -> bool {
        let (length, bytes) = fill(shown);
        let mut found = Choice::from(0);
        for (valid_length, valid) in &self.0 {
            found |= valid_length.ct_eq(&length) & valid.ct_eq(&bytes);
        }
        found.into()
    }

    /// How many tokens are so short that they may be guessed.
    fn short(&self) -> usize {
        self.0.iter().filter(|(length, _)| *length < LONG_ENOUGH).count()
    }
}

fn refuse(path: &Path, reason: impl Into<String>) -> SecurityError {
    SecurityError::Secret { path: path.to_owned(), reason: reason.into() }
}

fn read(path: &Path, holds: Holds) -> Result<Vec<u8>, SecurityError> {
    secret_file::read(path, holds).map_err(|reason| refuse(path, reason))
}

/// Tokens of a file, one a line.
pub(super) fn read_tokens(path: &Path) -> Result<TokenList, SecurityError> {
    let bytes = read(path, Holds::Secret)?;
    let lines = bytes.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).enumerate();
    let mut tokens = Vec::new();
    for (n, token) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with(b"#")) {
        if token.len() > LONGEST || !token.iter().all(u8::is_ascii_graphic) {
            let rule = format!("is not a token: at most {LONGEST} visible ASCII characters without spaces");
            return Err(refuse(path, format!("line {} {rule}", n + 1)));
        }
        tokens.push(fill(token));
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
            let list = TokenList(valid.iter().map(|t| fill(t.as_bytes())).collect());
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
        assert!(said(&"x".repeat(513)).unwrap_err().contains("512"));
        assert!(read_tokens(&dir.path().join("absent")).is_err());
        let long = format!("{}\n", "x".repeat(512));
        std::fs::write(&path, &long).unwrap();
        let list = read_tokens(&path).unwrap();
        assert!(list.contain(long.trim().as_bytes()) && !list.contain("x".repeat(600).as_bytes()));
    }
}
