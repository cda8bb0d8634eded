//! A thousand streams at once, through the release build.
//!
//! Every answer of the upstream is cut, so that each stream is joined from several calls, and each
//! client checks every event. `cargo xtask test load` builds the program, sets an environment
//! variable to its path, and runs this test; a plain `cargo test` ignores it.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use overlock_llm::testing::ScriptedServer;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::crowd::{ClientRequest, Clients, Received, cutting, model, report};
use crate::program::TemporaryFolder;
use crate::serving::Serving;

/// The minimum number of streams that are open at once.
const STREAMS: usize = 1000;

/// A few more clients than streams, because a client between two streams has none open. The default
/// limit of the gateway is 1024.
const CLIENTS: usize = STREAMS + 20;

/// The duration: two rounds of streams, or a minute in a long test.
fn load_time() -> Duration {
    match std::env::var_os("OVERLOCK_LONG") {
        Some(_) => Duration::from_mins(1),
        None => Duration::from_secs(35),
    }
}

/// The number of different documents.
const DOCUMENTS: usize = 50;

/// A document takes about five answers of this many bytes.
const DOCUMENT: usize = 5000;
const BREATH: usize = 800;

/// The milliseconds before every event: a stream takes about a quarter of a minute.
const PAUSE: u64 = 250;

/// How much the memory of the gateway may grow during two thousand streams, in KiB. One stream takes
/// more than 100; fragmentation grows ever more slowly, to about 25 MiB after ten thousand streams.
const GROWTH: usize = 32 << 10;

/// Nothing takes this long unless it hangs.
const PATIENCE: Duration = Duration::from_mins(3);

/// An upstream, the gateway, and its clients.
struct Load {
    upstream: ScriptedServer,
    serving: Serving,
    crowd: Clients,
    documents: Arc<Vec<String>>,
    tally: Arc<Tally>,
    _folder: TemporaryFolder,
}

/// The totals of all clients.
#[derive(Default)]
struct Tally {
    streams: AtomicUsize,
    events: AtomicUsize,
    /// The number of clients that have had at least one stream.
    clients: AtomicUsize,
    is_over: AtomicBool,
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes and the released program: run cargo xtask test load"]
async fn a_thousand_streams_at_once_are_complete() {
    let mut load = Load::start().await;
    let (before, after, open) = load.streams_for_a_while().await;
    let left = load.clients_leave().await;
    let Tally {
        streams, events, ..
    } = &*load.tally;
    println!(
        "{} streams of {} events, {open} open at once, joined from {} calls; 0 errors; memory \
         {before} KiB after the first round, {after} KiB at the end; {left} left in the middle, 0 \
         still worked on",
        streams.load(Ordering::Relaxed),
        events.load(Ordering::Relaxed),
        load.upstream.calls(),
    );
    assert!(
        after <= before + GROWTH,
        "the memory grew from {before} KiB to {after} KiB"
    );
    assert_eq!(
        load.serving.stop().code(),
        Some(0),
        "{}",
        load.serving.stderr
    );
    assert!(
        !load.serving.stderr.contains("panicked"),
        "{}",
        load.serving.stderr
    );
}

impl Load {
    async fn start() -> Self {
        raise_limit();
        let documents: Vec<String> = (0..DOCUMENTS)
            .map(|number| report(number, DOCUMENT))
            .collect();
        let scripts = documents.iter().enumerate();
        let scripts = scripts.map(|(number, document)| cutting(number, document, BREATH));
        let upstream = ScriptedServer::start_named(scripts, PAUSE).await;
        let upstream = upstream.expect("a server");
        let program = std::env::var_os("OVERLOCK_RELEASED");
        let program = program.expect("`cargo xtask test load` builds the program and names it");
        let folder = TemporaryFolder::new("load");
        let store = format!("sqlite://{}/runs.db", folder.path().display());
        let arguments = [
            "--upstream",
            &upstream.base(),
            "--store",
            &store,
            "--log",
            "off",
        ];
        let serving = Serving::start_as(Command::new(program), "load", &arguments, &[]);
        Self {
            crowd: Clients::new(&serving.address),
            upstream,
            serving,
            documents: Arc::new(documents),
            tally: Arc::default(),
            _folder: folder,
        }
    }

    /// Keeps a thousand streams open. Returns the memory of the gateway after the first round and at
    /// the end, and the usual number of open streams.
    async fn streams_for_a_while(&self) -> (usize, usize, usize) {
        let clients: Vec<JoinHandle<()>> = (0..CLIENTS).map(|client| self.client(client)).collect();
        self.wait_for("all streams to be open", async || {
            self.open().await >= STREAMS
        })
        .await;
        let begun = Instant::now();
        let (mut first_round, mut open) = (None, Vec::new());
        let time = load_time();
        while begun.elapsed() < time || first_round.is_none() {
            assert!(
                begun.elapsed() < PATIENCE,
                "there are clients without a stream"
            );
            sleep(Duration::from_secs(1)).await;
            // A client that fails has printed why, and the others can stop.
            if clients.iter().any(JoinHandle::is_finished) {
                break;
            }
            open.push(self.open().await);
            if self.tally.clients.load(Ordering::Relaxed) == CLIENTS {
                first_round.get_or_insert_with(|| self.memory());
            }
            if open.len() % 5 == 0 {
                self.tell(begun, open[open.len() - 1]);
            }
        }
        let after = self.memory();
        self.tally.is_over.store(true, Ordering::Relaxed);
        for client in clients {
            client.await.expect("a client has its document");
        }
        self.wait_for("all requests to be done", async || self.open().await == 0)
            .await;
        open.sort_unstable();
        let usual = open[open.len() / 2];
        assert!(usual >= STREAMS, "only {usual} streams were open at once");
        (first_round.expect("all had a stream"), after, usual)
    }

    /// A client that requests one document after the other.
    fn client(&self, client: usize) -> JoinHandle<()> {
        let (crowd, documents) = (self.crowd.clone(), Arc::clone(&self.documents));
        let tally = Arc::clone(&self.tally);
        tokio::spawn(async move {
            for round in 0.. {
                let number = (client + round) % DOCUMENTS;
                let mut seen = Received::default();
                let end = crowd.ask(&question(number), usize::MAX, &mut seen).await;
                assert_eq!(end, Ok(()));
                assert_eq!(seen.fault(&documents[number]), None);
                tally.streams.fetch_add(1, Ordering::Relaxed);
                tally.events.fetch_add(seen.events, Ordering::Relaxed);
                tally
                    .clients
                    .fetch_add(usize::from(round == 0), Ordering::Relaxed);
                if tally.is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
        })
    }

    /// Clients disconnect in the middle of their streams, each after another number of events.
    /// Returns their number. Their calls are cancelled, and no other calls are made for them.
    async fn clients_leave(&self) -> usize {
        println!("{STREAMS} clients leave in the middle");
        let given_up = self.upstream.given_up();
        let clients = (0..STREAMS).map(|client| {
            let crowd = self.crowd.clone();
            tokio::spawn(async move {
                let mut seen = Received::default();
                let end = crowd
                    .ask(&question(client % DOCUMENTS), 1 + client % 8, &mut seen)
                    .await;
                assert_eq!(end, Ok(()));
                assert_eq!((seen.finishes.len(), seen.ends), (0, 0));
            })
        });
        for client in clients.collect::<Vec<_>>() {
            client.await.expect("a client has a part of its document");
        }
        self.wait_for("what was left to be given up", async || {
            self.open().await == 0 && self.upstream.under_way() == 0
        })
        .await;
        let given_up = self.upstream.given_up() - given_up;
        // A few were between two calls.
        assert!(
            given_up >= STREAMS * 9 / 10,
            "only {given_up} calls were given up"
        );
        let calls = self.upstream.calls();
        sleep(Duration::from_millis(4 * PAUSE)).await;
        assert_eq!(
            self.upstream.calls(),
            calls,
            "a request is still running without a client"
        );
        STREAMS
    }

    async fn wait_for(&self, what: &str, is_so: impl AsyncFn() -> bool) {
        let begun = Instant::now();
        while !is_so().await {
            assert!(begun.elapsed() < PATIENCE, "waited too long for {what}");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// The number of running requests that the gateway reports.
    async fn open(&self) -> usize {
        let metrics = self.crowd.get("/metrics").await;
        let figure = metrics
            .lines()
            .find_map(|line| line.strip_prefix("overlock_requests_in_progress "));
        figure
            .and_then(|figure| figure.parse().ok())
            .unwrap_or_else(|| panic!("{metrics}"))
    }

    /// The memory of the gateway in KiB.
    fn memory(&self) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.serving.child.id()));
        let status = status.expect("it is running");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let figure = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        figure.unwrap_or_else(|| panic!("{status}"))
    }

    fn tell(&self, begun: Instant, open: usize) {
        println!(
            "{:>3} s: {open} open, {} streams done, {} KiB",
            begun.elapsed().as_secs(),
            self.tally.streams.load(Ordering::Relaxed),
            self.memory(),
        );
    }
}

fn question(number: usize) -> ClientRequest {
    ClientRequest {
        model: model(number),
        streams: true,
        key: None,
    }
}

/// The clients and the upstream are in this process, which has three connections per stream.
fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised).expect("the limit can be raised");
    let needed = 4 * CLIENTS as u64;
    assert!(
        limit.maximum.is_none_or(|most| most >= needed),
        "{needed} files must be open at once: raise the hard limit (ulimit -Hn)"
    );
}
