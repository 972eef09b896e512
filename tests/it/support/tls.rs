//! Authorities, certificates, and a client that speaks TLS.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// An authority that signs certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate and its key, as PEM.
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    /// A certificate for this machine, which servers and clients show alike.
    pub fn sign(&self) -> Identity {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["localhost", "127.0.0.1"].map(str::to_owned)).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity { certificate: certificate.pem(), key: key.serialize_pem() }
    }

    /// Writes the authority's own certificate.
    pub fn write(&self, path: &Path) -> PathBuf {
        std::fs::write(path, &self.pem).unwrap();
        path.to_owned()
    }
}

impl Identity {
    /// Writes `NAME.pem` and `NAME.key`.
    pub fn write(&self, dir: &Path, name: &str) {
        std::fs::write(dir.join(format!("{name}.pem")), &self.certificate).unwrap();
        std::fs::write(dir.join(format!("{name}.key")), &self.key).unwrap();
    }

    pub fn der(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap()
    }
}

/// A connection of a client that trusts one authority.
pub struct Client {
    pub stream: StreamOwned<ClientConnection, TcpStream>,
}

impl Client {
    /// Connects; the handshake is done by the first use.
    pub fn connect(address: SocketAddr, trusted: &Authority, own: Option<&Identity>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(trusted.pem.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match own {
            None => builder.with_no_client_auth(),
            Some(own) => {
                let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(vec![own.der()], key).unwrap()
            }
        };
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Client { stream: StreamOwned::new(connection, stream) }
    }

    /// Sends, and reads what is answered until the other side closes; what went wrong instead, if anything did.
    pub fn exchange(&mut self, bytes: &[u8]) -> Result<String, std::io::Error> {
        self.stream.write_all(bytes)?;
        let mut answer = Vec::new();
        match self.stream.read_to_end(&mut answer) {
            Err(error) if answer.is_empty() => Err(error),
            _ => Ok(String::from_utf8_lossy(&answer).into_owned()),
        }
    }

    /// The certificate that the server showed.
    pub fn shown(&mut self) -> CertificateDer<'static> {
        self.stream.conn.complete_io(&mut self.stream.sock).unwrap();
        self.stream.conn.peer_certificates().unwrap()[0].clone().into_owned()
    }
}
