//! Encrypted connections to a server.
//!
//! The server here only does the handshake, and then rejects every user.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use overlock_store::{Access, open};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// The message of a client that requests encryption.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// A server that supports encryption.
struct Server {
    port: u16,
    certificate: PathBuf,
    _folder: TempDir,
}

impl Server {
    fn start() -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
        let made = made.expect("a certificate");
        let folder = TempDir::new().expect("a folder");
        let certificate = folder.path().join("root.pem");
        std::fs::write(&certificate, made.cert.pem()).expect("a file");
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("a certificate");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        thread::spawn(move || {
            runtime.block_on(async {
                while let Ok((mut stream, _)) = listener.accept().await {
                    let mut first = [0; 8];
                    if stream.read_exact(&mut first).await.is_err() {
                        continue;
                    }
                    if first != SSL_REQUEST {
                        reject(stream, "a plain connection").await;
                    } else if stream.write_all(b"S").await.is_ok()
                        && let Ok(stream) = acceptor.accept(stream).await
                    {
                        reject(stream, "an encrypted connection").await;
                    }
                }
            });
        });
        Self {
            port,
            certificate,
            _folder: folder,
        }
    }

    /// The error of a connection with these parameters.
    fn error(&self, parameters: &str) -> String {
        let port = self.port;
        let address = format!("postgres://me:KoZ8w@localhost:{port}/runs?{parameters}");
        let error = open(&address.parse().expect("an address"), Access::Create);
        let error = error.expect_err("a rejected user");
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message = format!("{message}: {error}");
            cause = error.source();
        }
        assert!(!message.contains("KoZ8w"), "{message}");
        message
    }
}

/// Rejects the user over a kind of connection.
async fn reject(mut stream: impl AsyncRead + AsyncWrite + Unpin, connection: &str) {
    let fields = format!("SFATAL\0C28000\0Mrejected over {connection}\0\0");
    let length = u32::try_from(fields.len() + 4).expect("a short message");
    let mut message = vec![b'E'];
    message.extend(length.to_be_bytes());
    message.extend(fields.as_bytes());
    // The client may have disconnected.
    let _ = stream.write_all(&message).await;
    let _ = stream.shutdown().await;
}

#[test]
fn the_address_decides_about_encryption() {
    let server = Server::start();
    let certificate = server.certificate.display();
    let known = format!("sslmode=require&sslrootcert={certificate}");
    for (parameters, expected) in [
        ("sslmode=disable", "rejected over a plain connection"),
        ("sslmode=prefer", "rejected over an encrypted connection"),
        ("", "rejected over an encrypted connection"),
        (&*known, "rejected over an encrypted connection"),
    ] {
        let error = server.error(parameters);
        assert!(error.contains(expected), "{parameters}: {error}");
    }
}

#[test]
fn an_untrusted_certificate_ends_the_connection() {
    let server = Server::start();
    let error = server.error("sslmode=require");
    assert!(error.contains("certificate"), "{error}");
    assert!(!error.contains("rejected over"), "{error}");
}
