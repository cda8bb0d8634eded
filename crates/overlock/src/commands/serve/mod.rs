//! `overlock serve`: a gateway that any client of `OpenAI` can point at.

mod conflicts;
mod counters;
mod files;
mod found;
mod greeting;
mod keys;

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use overlock_gateway::{Gateway, GatewayError, Settings, Upstream};
use overlock_llm::{ContinuationOptions, Kpi};
use overlock_pipeline::RecordedDefinitions;
use overlock_runs::Record;
use overlock_store::{Access, Store};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::oneshot;

use crate::config::{Api, Config, ConfigSource, Log};
use crate::ending::{Ending, Failure};
use crate::output::Notes;
use crate::runs;
use crate::signals::Signals;
use crate::traces;
use crate::upstream;
use found::Found;
use greeting::{Crowd, Greeting};
use keys::Keys;

/// Give every OpenAI client whole answers
///
/// Listens for the requests of OpenAI clients and passes them on to an upstream. What does not fit
/// the window is trimmed, answers that were cut are continued until they are whole, and the client
/// sees one answer.
///
/// Its address in a browser shows every run as it happens, with what it cost where `overlock.toml`
/// has the prices of its model.
///
/// Without an upstream it takes OpenAI if `OPENAI_API_KEY` is set, else what it finds on this
/// machine: Ollama, llama.cpp, LM Studio or vLLM on their usual ports.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock serve --upstream http://127.0.0.1:11434/v1\n\n\
    Exit codes: 0 stopped; 2 bad usage, or the address cannot be listened on.")]
pub(crate) struct Serve {
    /// Where to listen [default: `serve.listen`, else 127.0.0.1:8484]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Who answers, up to the version [default: `upstream.url`, else what is found]
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// The environment variable that holds the upstream's key [default: `upstream.key_variable`]
    #[arg(long, value_name = "NAME")]
    key_variable: Option<String>,
    /// The environment variable that holds the keys clients must show [default:
    /// `serve.keys_variable`]
    #[arg(long, value_name = "NAME", conflicts_with = "keys_file")]
    keys_variable: Option<String>,
    /// The file that holds the keys clients must show, one a line [default: `serve.keys_file`]
    #[arg(long, value_name = "FILE")]
    keys_file: Option<PathBuf>,
    /// Where to record runs, `sqlite://FILE` or `postgres://…` [default: `store.url`, else
    /// runs.db in the user's data folder]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// How to tell of each request on standard error [default: `serve.log`, else text]
    #[arg(long, value_name = "HOW", value_parser = log_parser())]
    log: Option<Log>,
    #[command(flatten)]
    config: ConfigSource,
}

impl Serve {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let config = self.config.load(&mut notes)?;
        conflicts::check(&config)?;
        let keys = self.keys(&config)?;
        let address = self.address(&config)?;
        if !address.ip().is_loopback() && keys.is_empty() {
            return Err(Failure::Usage {
                message: format!(
                    "`{address}` can be reached from elsewhere, and clients would need no key"
                ),
                hint: "listen on 127.0.0.1, or give keys with --keys-variable NAME or --keys-file \
                       FILE"
                    .into(),
            });
        }
        let found = self.found(&config, address)?;
        conflicts::check_upstream(found.url(), address)?;
        let store = self.store(&config)?;
        let mut settings = settings(&config, &found, &keys);
        let named = self.store.as_deref().or(config.store.url.as_deref());
        settings.store_shown = named.map(runs::shown_anywhere);
        let traces_url = config.serve.traces_url.as_deref();
        settings.counters = counters::read(&config)?;
        let traces_url = traces_url.filter(|_| traces::may_be_sent(&mut notes));
        settings.traces = traces_url.map(traces::traces).transpose()?;
        let wanted = settings.limits;
        let files = files::allowed();
        settings.limits = files.map_or(wanted, |files| wanted.within(files));
        let connections = settings.limits.connections;
        let gateway = Gateway::new(settings, store);
        let gateway = gateway.map_err(|error| match error {
            GatewayError::Upstream(source) => Failure::Upstream { source },
            GatewayError::Traces(source) => Failure::Traces { source },
        })?;
        let gateway = gateway.with_definitions(RecordedDefinitions);
        let gateway = match self.log.unwrap_or(config.serve.log) {
            Log::Off => gateway,
            Log::Text => gateway.with_log(|entry| Notes::new().line(entry)),
            Log::Json => gateway.with_log(|entry| {
                let entry = serde_json::to_string(entry).expect("an entry is plain data");
                Notes::new().line(entry);
            }),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        let listener = runtime.block_on(async { listen(address) })?;
        let server = runtime.block_on(gateway.ask_upstream());
        let known = server.as_deref().ok();
        Greeting {
            warnings: conflicts::warnings(&config, found.url().is_some(), known),
            server: server.as_deref(),
            address: listener.local_addr()?,
            found: &found,
            keys: &keys,
            record: config.serve.record,
            traces: traces_url.map(traces::host),
            crowd: files
                .filter(|_| connections < wanted.connections)
                .map(|files| Crowd { files, connections }),
        }
        .tell(&mut notes);
        runtime.block_on(serve(gateway, listener, &mut notes))?;
        // Who did not finish in time is not waited for any longer.
        runtime.shutdown_background();
        Ok(Ending::Whole)
    }

    fn keys(&self, config: &Config) -> Result<Keys, Failure> {
        if let Some(variable) = &self.keys_variable {
            return Keys::from_variable(variable);
        }
        if let Some(file) = &self.keys_file {
            return Keys::from_file(file);
        }
        match (&config.serve.keys_variable, &config.serve.keys_file) {
            (None, None) => Ok(Keys::none()),
            (Some(variable), None) => Keys::from_variable(variable),
            (None, Some(file)) => Keys::from_file(file),
            (Some(_), Some(_)) => Err(Failure::Usage {
                message: "both `serve.keys_variable` and `serve.keys_file` are set".into(),
                hint: "keep the one that holds the keys".into(),
            }),
        }
    }

    fn address(&self, config: &Config) -> Result<SocketAddr, Failure> {
        let given = self.listen.as_deref().unwrap_or(&config.serve.listen);
        let addresses = given.to_socket_addrs().ok();
        let first = addresses.and_then(|mut addresses| addresses.next());
        first.ok_or_else(|| Failure::Usage {
            message: format!("`{given}` is no address to listen on"),
            hint: "give a host and a port, such as 127.0.0.1:8484".into(),
        })
    }

    fn found(&self, config: &Config, own: SocketAddr) -> Result<Found, Failure> {
        let settings = &config.upstream;
        let Some(url) = self.upstream.as_deref().or(settings.url.as_deref()) else {
            return Ok(Found::look(own));
        };
        if settings.api == Api::Messages {
            return Err(Failure::Usage {
                message: "the gateway speaks to its upstream as OpenAI's clients do, and \
                          `upstream.api` is `messages`"
                    .into(),
                hint: "name an upstream with chat completions, and set `upstream.api` to \
                       `chat-completions`"
                    .into(),
            });
        }
        let variable = self
            .key_variable
            .as_deref()
            .or(settings.key_variable.as_deref());
        Ok(Found::Named {
            url: url.to_owned(),
            key: upstream::own_key(variable, url)?,
        })
    }

    fn store(&self, config: &Config) -> Result<Option<Arc<dyn Store>>, Failure> {
        match config.serve.record {
            Record::Off => Ok(None),
            Record::Full | Record::Metadata => {
                let store = runs::open(self.store.as_deref(), config, Access::Make)?;
                // Whether runs can be worked on is told now, and not to the first client.
                let work = store.work_on(&runs::new_id());
                work.map_err(|source| Failure::Store { source })?;
                Ok(Some(store))
            }
        }
    }
}

fn settings(config: &Config, found: &Found, keys: &Keys) -> Settings {
    let upstream = Upstream {
        base: found.url().map(str::to_owned),
        key: found.key().map(str::to_owned),
        prefill: config.upstream.prefill.style(),
        discovery: config.upstream.discovery,
        timeouts: config.upstream.timeouts(),
        retries: config.upstream.retry_policy(),
    };
    config.serve.over(Settings {
        keys: keys.to_keys(),
        models: config.models(),
        plan: config.budget.plan().clone(),
        continuation: ContinuationOptions {
            // An answer that grows is not stopped by a guess about its length.
            kpi: Kpi::Off,
            ..config.complete.options_for_any()
        },
        ..Settings::new(upstream)
    })
}

/// So many clients may wait to be let in, if the system lets them. With the usual 128 those that
/// come together have to knock again after a second.
const WAITING: u32 = 4096;

fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    let listen = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // Elsewhere that would let others take the port.
        #[cfg(unix)]
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(WAITING)
    };
    listen().map_err(|source| Failure::Listen { address, source })
}

/// Serves until the first signal, and then until the running requests are done or a second comes.
async fn serve(gateway: Gateway, listener: TcpListener, notes: &mut Notes) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let (stop, stopped) = oneshot::channel();
    let serving = Arc::new(gateway).serve(listener, async {
        let _ = stopped.await;
    });
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        served = &mut serving => return Ok(served?),
        _ = signals.next() => {}
    }
    notes.note("stopping; running requests may finish, and another signal ends them");
    let _ = stop.send(());
    tokio::select! {
        served = &mut serving => Ok(served?),
        _ = signals.next() => Ok(()),
    }
}

fn log_parser() -> impl TypedValueParser<Value = Log> {
    PossibleValuesParser::new(Log::ALL.map(Log::name)).map(|name| {
        let found = Log::ALL.into_iter().find(|log| log.name() == name);
        found.expect("only these names are possible")
    })
}
