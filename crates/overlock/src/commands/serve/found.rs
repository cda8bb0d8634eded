//! Who answers where nobody was named.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::upstream::held;

/// An upstream, and how it was found.
pub(super) enum Found {
    /// It was named.
    Named { url: String, key: Option<String> },
    /// There is a key for it.
    OpenAi { key: String },
    /// It answers on this machine.
    Local { name: &'static str, url: String },
    /// There is none.
    Nobody,
}

/// A server that people have on their machines.
struct Usual {
    name: &'static str,
    port: u16,
}

/// In the order in which they are taken.
const USUAL: [Usual; 4] = [
    Usual {
        name: "Ollama",
        port: 11434,
    },
    Usual {
        name: "llama.cpp",
        port: 8080,
    },
    Usual {
        name: "LM Studio",
        port: 1234,
    },
    Usual {
        name: "vLLM",
        port: 8000,
    },
];

/// A server on the same machine that takes longer is not there.
const PATIENCE: Duration = Duration::from_millis(500);

const OPENAI: &str = "https://api.openai.com/v1";

impl Found {
    /// Looks for somebody, who is not the gateway itself.
    pub(super) fn look(own: SocketAddr) -> Self {
        match held("OPENAI_API_KEY") {
            Some(key) => Self::OpenAi { key },
            None => first_that_answers(USUAL.into_iter().filter(|usual| usual.port != own.port())),
        }
    }

    pub(super) fn url(&self) -> Option<&str> {
        match self {
            Self::Named { url, .. } | Self::Local { url, .. } => Some(url),
            Self::OpenAi { .. } => Some(OPENAI),
            Self::Nobody => None,
        }
    }

    pub(super) fn key(&self) -> Option<&str> {
        match self {
            Self::Named { key, .. } => key.as_deref(),
            Self::OpenAi { key } => Some(key),
            Self::Local { .. } | Self::Nobody => None,
        }
    }
}

impl fmt::Display for Found {
    /// Without the key.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A query may hold one too.
        let shown = |url: &str| url.split('?').next().unwrap_or_default().to_owned();
        match self {
            Self::Named { url, key: Some(_) } => {
                write!(formatter, "{}, with its own key", shown(url))
            }
            Self::Named { url, key: None } => {
                write!(formatter, "{}, with each client's key", shown(url))
            }
            Self::OpenAi { .. } => {
                write!(formatter, "{OPENAI}, since OPENAI_API_KEY is set")
            }
            Self::Local { name, url } => {
                write!(formatter, "{url}, since {name}'s usual port answers")
            }
            Self::Nobody => formatter.write_str(
                "none; only the model `overlock-demo` answers until one is named with --upstream \
                 URL",
            ),
        }
    }
}

fn first_that_answers(usual: impl Iterator<Item = Usual>) -> Found {
    let asked: Vec<_> = usual
        .map(|usual| thread::spawn(move || answers(usual.port).then_some(usual)))
        .collect();
    let found = asked.into_iter().find_map(|thread| thread.join().ok()?);
    found.map_or(Found::Nobody, |usual| Found::Local {
        name: usual.name,
        url: format!("http://127.0.0.1:{}/v1", usual.port),
    })
}

/// Whether something with a list of models listens on a port, and is no gateway like this one.
fn answers(port: u16) -> bool {
    let text = list_of_models(port).unwrap_or_default();
    let is_found = text.starts_with("HTTP/1.") && text.get(8..13) == Some(" 200 ");
    is_found && text.contains("\"data\"") && !text.contains("\"overlock-demo\"")
}

fn list_of_models(port: u16) -> io::Result<String> {
    let deadline = Instant::now() + PATIENCE;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "GET /v1/models HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"
    )?;
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || text.len() > LONGEST_LIST {
            break;
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(length) => text.extend_from_slice(&piece[..length]),
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// What a list of models is recognised by comes earlier.
const LONGEST_LIST: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// A server that says one thing to the first who asks.
    fn server(says: &'static str) -> Usual {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let (mut head, mut piece) = (Vec::new(), [0; 1024]);
            // Whoever hangs up on half a request takes the answer along.
            while !head.ends_with(b"\r\n\r\n") {
                let length = stream.read(&mut piece).expect("a request");
                head.extend_from_slice(&piece[..length]);
            }
            let _ = stream.write_all(says.as_bytes());
        });
        Usual { name: "it", port }
    }

    #[test]
    fn the_first_in_line_that_has_models_is_taken() {
        let refuses = server("HTTP/1.1 404 Not Found\r\n\r\n{\"data\":[]}");
        let other = server("SSH-2.0-OpenSSH_9.7\r\n");
        let page = server("HTTP/1.1 200 OK\r\n\r\n<html></html>");
        let ourselves = server("HTTP/1.1 200 OK\r\n\r\n{\"data\":[{\"id\":\"overlock-demo\"}]}");
        let right = server("HTTP/1.1 200 OK\r\n\r\n{\"object\":\"list\",\"data\":[]}");
        let url = format!("http://127.0.0.1:{}/v1", right.port);
        let found = first_that_answers([refuses, other, page, ourselves, right].into_iter());
        assert_eq!(found.url(), Some(url.as_str()));
        assert_eq!(found.key(), None);
    }

    #[test]
    fn a_key_is_never_told() {
        let told = [
            Found::OpenAi { key: "sk-1".into() },
            Found::Named {
                url: "http://127.0.0.1:1/v1".into(),
                key: Some("sk-1".into()),
            },
        ];
        for found in told {
            assert!(!found.to_string().contains("sk-1"));
        }
    }
}
