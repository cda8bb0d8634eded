//! Chooses the upstream, if none is configured.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use overlock_llm::wire::Protocol;

use crate::upstream::non_empty_variable;

/// An upstream, and why it was chosen.
pub(super) enum ChosenUpstream {
    Configured {
        url: String,
        key: Option<String>,
        api: Protocol,
    },
    /// The variable with its key is set.
    Provider {
        provider: &'static Provider,
        key: String,
    },
    /// It answers on this machine.
    Local {
        name: &'static str,
        url: String,
    },
    None,
}

/// A provider, and the variable that its clients read the key from.
pub(super) struct Provider {
    variable: &'static str,
    url: &'static str,
    api: Protocol,
}

/// In the order of preference.
const PROVIDERS: [Provider; 2] = [
    Provider {
        variable: "OPENAI_API_KEY",
        url: "https://api.openai.com/v1",
        api: Protocol::ChatCompletions,
    },
    Provider {
        variable: "ANTHROPIC_API_KEY",
        url: "https://api.anthropic.com/v1",
        api: Protocol::Messages,
    },
];

/// A model server with its usual port.
struct LocalServer {
    name: &'static str,
    port: u16,
}

/// In the order of preference.
const LOCAL_SERVERS: [LocalServer; 4] = [
    LocalServer {
        name: "Ollama",
        port: 11434,
    },
    LocalServer {
        name: "llama.cpp",
        port: 8080,
    },
    LocalServer {
        name: "LM Studio",
        port: 1234,
    },
    LocalServer {
        name: "vLLM",
        port: 8000,
    },
];

const TIMEOUT: Duration = Duration::from_millis(500);

impl ChosenUpstream {
    /// Looks for an upstream; `own` is the address of the gateway itself.
    pub(super) fn discover(own: SocketAddr) -> Self {
        for provider in &PROVIDERS {
            if let Some(key) = non_empty_variable(provider.variable) {
                return Self::Provider { provider, key };
            }
        }
        let others = LOCAL_SERVERS.into_iter();
        first_that_answers(others.filter(|server| server.port != own.port()))
    }

    pub(super) fn url(&self) -> Option<&str> {
        match self {
            Self::Configured { url, .. } | Self::Local { url, .. } => Some(url),
            Self::Provider { provider, .. } => Some(provider.url),
            Self::None => None,
        }
    }

    pub(super) fn key(&self) -> Option<&str> {
        match self {
            Self::Configured { key, .. } => key.as_deref(),
            Self::Provider { key, .. } => Some(key),
            Self::Local { .. } | Self::None => None,
        }
    }

    /// The protocol of its model calls.
    pub(super) fn api(&self) -> Protocol {
        match self {
            Self::Configured { api, .. } => *api,
            Self::Provider { provider, .. } => provider.api,
            Self::Local { .. } | Self::None => Protocol::ChatCompletions,
        }
    }
}

impl fmt::Display for ChosenUpstream {
    /// Shows no key.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A query string may contain a key.
        let shown = |url: &str| url.split('?').next().unwrap_or_default().to_owned();
        match self {
            Self::Configured {
                url, key: Some(_), ..
            } => {
                write!(formatter, "{}, with the configured API key", shown(url))
            }
            Self::Configured { url, key: None, .. } => {
                write!(formatter, "{}, forwarding each client's API key", shown(url))
            }
            Self::Provider { provider, .. } => {
                let Provider { variable, url, .. } = provider;
                write!(formatter, "{url}, because {variable} is set")
            }
            Self::Local { name, url } => {
                write!(formatter, "{url}, found on the usual port of {name}")
            }
            Self::None => formatter.write_str(
                "none, only the built-in model `overlock-demo` answers; set one with --upstream URL",
            ),
        }
    }
}

fn first_that_answers(servers: impl Iterator<Item = LocalServer>) -> ChosenUpstream {
    let threads: Vec<_> = servers
        .map(|server| thread::spawn(move || answers(server.port).then_some(server)))
        .collect();
    let found = threads.into_iter().find_map(|thread| thread.join().ok()?);
    found.map_or(ChosenUpstream::None, |server| ChosenUpstream::Local {
        name: server.name,
        url: format!("http://127.0.0.1:{}/v1", server.port),
    })
}

/// Whether a server on this port lists models and is not another gateway of ours.
fn answers(port: u16) -> bool {
    let response = models_response(port).unwrap_or_default();
    let is_ok = response.starts_with("HTTP/1.") && response.get(8..13) == Some(" 200 ");
    is_ok && response.contains("\"data\"") && !response.contains("\"overlock-demo\"")
}

fn models_response(port: u16) -> io::Result<String> {
    let deadline = Instant::now() + TIMEOUT;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    write!(
        stream,
        "GET /v1/models HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"
    )?;
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || text.len() > LONGEST_RESPONSE {
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

/// More is not read.
const LONGEST_RESPONSE: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// A server that sends this response to its first client.
    fn server(response: &'static str) -> LocalServer {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let (mut head, mut piece) = (Vec::new(), [0; 1024]);
            // Closing before the whole request was read would reset the connection.
            while !head.ends_with(b"\r\n\r\n") {
                let length = stream.read(&mut piece).expect("a request");
                head.extend_from_slice(&piece[..length]);
            }
            let _ = stream.write_all(response.as_bytes());
        });
        LocalServer { name: "it", port }
    }

    #[test]
    fn chooses_the_first_server_that_lists_models() {
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
    fn never_shows_a_key() {
        let upstreams = [
            ChosenUpstream::Provider {
                provider: &PROVIDERS[1],
                key: "sk-1".into(),
            },
            ChosenUpstream::Configured {
                url: "http://127.0.0.1:1/v1".into(),
                key: Some("sk-1".into()),
                api: Protocol::ChatCompletions,
            },
        ];
        for upstream in upstreams {
            assert!(!upstream.to_string().contains("sk-1"));
        }
    }
}
