//! The way to a server, encrypted or not.
//!
//! The server here only shakes hands, and then says that it knows nobody.

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

/// What a client says that wants to be encrypted.
const WISH: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// A server that encrypts, for as many connections as come.
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
                    if first != WISH {
                        refuse(stream, "in the clear").await;
                    } else if stream.write_all(b"S").await.is_ok()
                        && let Ok(stream) = acceptor.accept(stream).await
                    {
                        refuse(stream, "encrypted").await;
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

    /// What is said to who connects in some way.
    fn answer(&self, parameters: &str) -> String {
        let port = self.port;
        let address = format!("postgres://me:KoZ8w@localhost:{port}/runs?{parameters}");
        let error = open(&address.parse().expect("an address"), Access::Make);
        let error = error.expect_err("it knows nobody");
        let mut told = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            told = format!("{told}: {error}");
            cause = error.source();
        }
        assert!(!told.contains("KoZ8w"), "{told}");
        told
    }
}

/// Says that nobody is let in, and how it was heard of them.
async fn refuse(mut stream: impl AsyncRead + AsyncWrite + Unpin, how: &str) {
    let said = format!("SFATAL\0C28000\0Mnobody is let in {how}\0\0");
    let length = u32::try_from(said.len() + 4).expect("it is short");
    let mut message = vec![b'E'];
    message.extend(length.to_be_bytes());
    message.extend(said.as_bytes());
    // Who is gone by now does not want to know.
    let _ = stream.write_all(&message).await;
    let _ = stream.shutdown().await;
}

#[test]
fn what_is_encrypted_is_as_the_address_says() {
    let server = Server::start();
    let certificate = server.certificate.display();
    let known = format!("sslmode=require&sslrootcert={certificate}");
    for (parameters, how) in [
        ("sslmode=disable", "nobody is let in in the clear"),
        ("sslmode=prefer", "nobody is let in encrypted"),
        ("", "nobody is let in encrypted"),
        (&*known, "nobody is let in encrypted"),
    ] {
        let answer = server.answer(parameters);
        assert!(answer.contains(how), "{parameters}: {answer}");
    }
}

#[test]
fn a_server_that_nobody_vouches_for_is_told_nothing() {
    let server = Server::start();
    let answer = server.answer("sslmode=require");
    assert!(answer.contains("certificate"), "{answer}");
    assert!(!answer.contains("nobody is let in"), "{answer}");
}
