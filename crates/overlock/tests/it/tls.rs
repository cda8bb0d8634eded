//! A model behind TLS with a self-signed certificate.

use std::net::SocketAddr;
use std::sync::Arc;

use overlock_llm::testing::Behaviour;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::complete::Model;
use crate::program::{Run, TemporaryFile, command, run};

/// Starts a TLS proxy for a model. Returns its address and its certificate.
fn before(model: &Model) -> (SocketAddr, String) {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()])
        .expect("a certificate can be made");
    let key = PrivateKeyDer::Pkcs8(signed.signing_key.serialize_der().into());
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![signed.cert.der().clone()], key)
        .expect("the key is that of the certificate");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = model.runtime.block_on(TcpListener::bind("127.0.0.1:0"));
    let listener = listener.expect("a free port");
    let address = listener.local_addr().expect("it has one");
    let base = model.server.base();
    let behind = base
        .trim_start_matches("http://")
        .trim_end_matches("/v1")
        .to_owned();
    model.runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, behind) = (acceptor.clone(), behind.clone());
            tokio::spawn(async move {
                // A client that does not trust the certificate closes the connection.
                let Ok(mut outside) = acceptor.accept(stream).await else {
                    return;
                };
                if let Ok(mut inside) = TcpStream::connect(behind).await {
                    let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
                }
            });
        }
    });
    (address, signed.cert.pem())
}

fn complete(model: &Model, port: u16, certificate: Option<&str>) -> Run {
    let upstream = format!("https://localhost:{port}/v1");
    let store = model.store();
    let mut command = command(&[
        "complete",
        "Write about rivers.",
        "--model",
        "gpt-4o",
        "--upstream",
        &upstream,
        "--store",
        &store,
    ]);
    if let Some(certificate) = certificate {
        command.env("SSL_CERT_FILE", certificate);
    }
    run(&mut command, "")
}

#[test]
fn refuses_a_self_signed_certificate_unless_it_is_trusted() {
    let model = Model::new("complete-tls", &Behaviour::AS_ASKED, &[]);
    let (address, certificate) = before(&model);
    let refused = complete(&model, address.port(), None);
    assert_eq!(refused.code, 1);
    let host = format!(
        "the certificate of localhost:{} is not trusted",
        address.port()
    );
    assert!(refused.stderr.contains(&host), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("SSL_CERT_FILE"),
        "{}",
        refused.stderr
    );
    assert_eq!(
        model.server.asked().len(),
        0,
        "it is not asked, however often"
    );

    let file = TemporaryFile::new("certificate.pem", certificate);
    let trusted = complete(&model, address.port(), Some(file.path()));
    assert_eq!(trusted.code, 0, "{}", trusted.stderr);
    assert_eq!(trusted.stdout, model.document);
}
