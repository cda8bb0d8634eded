//! `overlock serve`: starts the gateway.

mod chosen_upstream;
mod conflicts;
mod counters;
mod keys;
mod open_files;
mod startup;

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use overlock_gateway::{Gateway, GatewayError, Settings, Upstream};
use overlock_llm::wire::Protocol;
use overlock_llm::{ContinuationOptions, Kpi};
use overlock_pipeline::RecordedDefinitions;
use overlock_runs::Record;
use overlock_store::{Access, Store};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::oneshot;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt};

use super::choice_parser;
use crate::config::{Api, Config, ConfigSource, Log};
use crate::ending::{Ending, Failure};
use crate::output::Notes;
use crate::runs;
use crate::signals::Signals;
use crate::traces;
use crate::upstream;
use chosen_upstream::ChosenUpstream;
use keys::Keys;
use startup::{ConnectionLimit, StartupMessage};

/// Start the gateway
///
/// Accepts the requests of OpenAI and Anthropic clients and forwards them to an upstream. Requests are made to fit
/// the context window, and answers that were cut are continued until they are complete; the client
/// sees one answer.
///
/// Open its address in a browser to watch runs live, with costs for models that have prices in
/// overlock.toml.
///
/// Without an upstream it uses OpenAI if `OPENAI_API_KEY` is set, or Anthropic if `ANTHROPIC_API_KEY`
/// is set, else the first of Ollama, llama.cpp, LM Studio and vLLM that answers on its usual local
/// port.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock serve --upstream http://127.0.0.1:11434/v1\n\n\
    Exit codes: 0 stopped; 2 bad usage, or the address is not available.")]
pub(crate) struct Serve {
    /// The address to listen on [default: `serve.listen`, else 127.0.0.1:8484]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// The base URL of the upstream, including /v1 [default: `upstream.url`, else discovered]
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// The environment variable with the upstream's API key [default: `upstream.key_variable`]
    #[arg(long, value_name = "NAME")]
    key_variable: Option<String>,
    /// The environment variable with the API keys that clients must send [default:
    /// `serve.keys_variable`]
    #[arg(long, value_name = "NAME", conflicts_with = "keys_file")]
    keys_variable: Option<String>,
    /// The file with the API keys that clients must send, one per line [default: `serve.keys_file`]
    #[arg(long, value_name = "FILE")]
    keys_file: Option<PathBuf>,
    /// The store for runs, `sqlite://FILE` or `postgres://…` [default: `store.url`, else runs.db in
    /// the user's data folder]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// The format of the request log on standard error [default: `serve.log`, else text]
    #[arg(long, value_name = "HOW", value_parser = choice_parser(Log::ALL, Log::name))]
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
                    "other machines can reach `{address}`, and no API keys are configured"
                ),
                hint: "listen on 127.0.0.1, or set keys with --keys-variable NAME or --keys-file \
                       FILE"
                    .into(),
            });
        }
        let upstream = self.upstream(&config, address)?;
        conflicts::check_upstream(upstream.url(), address)?;
        let store = self.store(&config)?;
        let mut settings = settings(&config, &upstream, &keys);
        let store_address = self.store.as_deref().or(config.store.url.as_deref());
        settings.store_shown = store_address.map(runs::absolute_address);
        settings.counters = counters::read(&config)?;
        settings.traces = traces::collector(&config, &mut notes)?;
        let collector = settings.traces.clone();
        let configured = settings.limits;
        let files = open_files::raise_limit();
        settings.limits = files.map_or(configured, |files| configured.within(files));
        let connections = settings.limits.connections;
        let gateway = Gateway::new(settings, store);
        let gateway = gateway.map_err(|error| match error {
            GatewayError::Upstream(source) => Failure::Upstream { source },
            GatewayError::Traces(source) => Failure::Traces { source },
        })?;
        let gateway = gateway.with_definitions(RecordedDefinitions);
        start_log(self.log.unwrap_or(config.serve.log));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        let listener = runtime.block_on(async { listen(address) })?;
        let server = runtime.block_on(gateway.ask_upstream());
        let known = server.as_deref().ok();
        StartupMessage {
            warnings: conflicts::warnings(&config, upstream.url().is_some(), known),
            server: server.as_deref(),
            address: listener.local_addr()?,
            upstream: &upstream,
            keys: &keys,
            record: config.serve.record,
            traces: collector.as_ref().map(|it| traces::host(&it.url)),
            connection_limit: files
                .filter(|_| connections < configured.connections)
                .map(|files| ConnectionLimit { files, connections }),
        }
        .print(&mut notes);
        runtime.block_on(serve(gateway, listener, &mut notes))?;
        // Does not wait for tasks that exceeded the shutdown timeout.
        runtime.shutdown_background();
        Ok(Ending::Done)
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
                hint: "remove one of them".into(),
            }),
        }
    }

    fn address(&self, config: &Config) -> Result<SocketAddr, Failure> {
        let given = self.listen.as_deref().unwrap_or(&config.serve.listen);
        let addresses = given.to_socket_addrs().ok();
        let first = addresses.and_then(|mut addresses| addresses.next());
        first.ok_or_else(|| Failure::Usage {
            message: format!("`{given}` is not a valid listen address"),
            hint: "give a host and a port, such as 127.0.0.1:8484".into(),
        })
    }

    fn upstream(&self, config: &Config, own: SocketAddr) -> Result<ChosenUpstream, Failure> {
        let settings = &config.upstream;
        let Some(url) = self.upstream.as_deref().or(settings.url.as_deref()) else {
            return Ok(ChosenUpstream::discover(own));
        };
        let variable = self
            .key_variable
            .as_deref()
            .or(settings.key_variable.as_deref());
        Ok(ChosenUpstream::Configured {
            url: url.to_owned(),
            key: upstream::own_key(variable, url)?,
            api: match settings.api {
                Api::ChatCompletions => Protocol::ChatCompletions,
                Api::Responses => Protocol::Responses,
                Api::Messages => Protocol::Messages,
            },
        })
    }

    fn store(&self, config: &Config) -> Result<Option<Arc<dyn Store>>, Failure> {
        match config.serve.record {
            Record::Off => Ok(None),
            Record::Full | Record::Metadata => {
                let store = runs::open(self.store.as_deref(), config, Access::Create)?;
                // Fails at the start instead of at the first request.
                let work = store.work_on(&runs::new_id());
                work.map_err(|source| Failure::Store { source })?;
                Ok(Some(store))
            }
        }
    }
}

fn settings(config: &Config, upstream: &ChosenUpstream, keys: &Keys) -> Settings {
    let upstream = Upstream {
        base: upstream.url().map(str::to_owned),
        api: upstream.api(),
        key: upstream.key().map(str::to_owned),
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
            // A model's estimate of its progress must not end an answer that still grows.
            kpi: Kpi::Off,
            ..config.complete.options_for_any()
        },
        ..Settings::new(upstream)
    })
}

/// The backlog of connections. With the usual 128, clients that connect at the same moment have to
/// retry after a second.
const BACKLOG: u32 = 4096;

fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    let listen = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // On Windows this would let other programs take the port.
        #[cfg(unix)]
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    listen().map_err(|source| Failure::Listen { address, source })
}

/// Writes the log of the gateway to standard error. Other crates are not logged, because their
/// messages may contain keys.
fn start_log(format: Log) {
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_target(false)
        .log_internal_errors(false);
    let lines = match format {
        Log::Off => return,
        Log::Text => lines.boxed(),
        Log::Json => lines.json().flatten_event(true).boxed(),
    };
    let of_gateway = Targets::new().with_target("overlock_gateway", LevelFilter::INFO);
    let log = tracing_subscriber::registry().with(lines.with_filter(of_gateway));
    tracing::subscriber::set_global_default(log).expect("it is set once");
}

/// Serves until the first signal, then until the running requests are done or a second signal comes.
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
    notes.note("stopping after the running requests; press Ctrl-C again to force quit");
    let _ = stop.send(());
    tokio::select! {
        served = &mut serving => Ok(served?),
        _ = signals.next() => Ok(()),
    }
}
