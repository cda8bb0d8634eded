//! Kills a gateway at random times: stored answers are not requested again, and what clients have
//! received is sent again.

use std::collections::BTreeMap;

use overlock_llm::testing::{ScriptedServer, eventually, eventually_blocking};
use rusqlite::Connection;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::crowd::{Broken, ClientRequest, Clients, Received, cutting, model, report};
use crate::program::{TemporaryFolder, overlock};
use crate::serving::Serving;
use crate::shared::{QUIET, shared_store};

/// The number of idempotency keys that are used at once, every second one with a stream.
const KEYS: usize = 16;

/// A report takes about six answers of this many bytes.
const REPORT: usize = 6000;
const BREATH: usize = 800;

/// Gateways that run one after the other on one store, and the state of each key.
struct GatewayLives {
    runtime: Runtime,
    store: String,
    /// The folder of the store, if it is a file.
    folder: Option<TemporaryFolder>,
    keys: Vec<Key>,
    /// The seed of all random choices.
    state: u64,
}

/// When a gateway is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KillTime {
    /// After this many calls.
    Calls(usize),
    /// After this many clients have received the end of their answer.
    Ends(usize),
    Never,
}

/// The state of a key.
struct Key {
    question: ClientRequest,
    document: String,
    /// The answer that its client received completely.
    given: Option<Received>,
    kept: StoredRun,
    /// The calls whose answers are stored.
    answered: Vec<Value>,
}

/// What the store has of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct StoredRun {
    steps: usize,
    bytes: usize,
    has_ended: bool,
}

/// What a client has received.
type ClientAnswer = (Received, Result<(), Broken>);

#[test]
fn a_killed_gateway_loses_nothing_stored_or_sent() {
    for seed in 1..=3 {
        let folder = TemporaryFolder::new(&format!("killed-{seed}"));
        let store = format!("sqlite://{}", folder.path().join("runs.db").display());
        GatewayLives::new(seed, store, Some(folder)).go_by();
    }
}

#[test]
#[ignore = "needs PostgreSQL: run cargo xtask test postgres"]
fn a_killed_gateway_loses_nothing_stored_in_postgresql() {
    for seed in 1..=3 {
        GatewayLives::new(seed, shared_store(&format!("killed_{seed}")), None).go_by();
    }
}

impl GatewayLives {
    fn new(seed: u64, store: String, folder: Option<TemporaryFolder>) -> Self {
        let keys = (0..KEYS).map(|number| Key {
            question: ClientRequest {
                model: model(number),
                streams: number % 2 == 0,
                key: Some(format!("key-{number}")),
            },
            document: report(number, REPORT),
            given: None,
            kept: StoredRun::default(),
            answered: Vec::new(),
        });
        Self {
            runtime: Runtime::new().expect("a runtime"),
            store,
            folder,
            keys: keys.collect(),
            state: seed,
        }
    }

    fn go_by(&mut self) {
        for most in [KEYS, 3 * KEYS] {
            let moment = KillTime::Calls(1 + self.below(most));
            self.live(moment);
        }
        // A client may receive the end of its answer after the kill.
        for _ in 0..2 {
            let given = self.keys.iter().filter(|key| key.given.is_some()).count();
            let moment = KillTime::Ends(given + 1 + self.below(KEYS / 3));
            self.live(moment);
        }
        self.live(KillTime::Never);
        for key in &self.keys {
            assert!(key.given.is_some(), "{:?}", key.question);
        }
        // Now everything is stored, and no call is made.
        assert_eq!(self.live(KillTime::Never), 0);
    }

    /// A random number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        self.state = self
            .state
            .wrapping_mul(0x5851_F42D_4C95_7F2D)
            .wrapping_add(1);
        usize::try_from(self.state >> 33).expect("31 bits") % bound
    }

    /// Starts a gateway and sends a request for every key, until it is killed or all are answered.
    /// Returns the number of calls it made.
    fn live(&mut self, moment: KillTime) -> usize {
        let scripts = self.keys.iter().enumerate();
        let scripts = scripts.map(|(number, key)| cutting(number, &key.document, BREATH));
        // A new server, so that late calls of a killed gateway are not counted for the next one.
        let upstream = ScriptedServer::start_named(scripts, 2);
        let upstream = self.runtime.block_on(upstream).expect("a server");
        let arguments = ["--upstream", &upstream.base(), "--store", &self.store];
        let mut serving = Serving::start("killed", &arguments, &QUIET);
        let crowd = Clients::new(&serving.address);
        let clients = self.clients(&crowd);
        let has_come = || match moment {
            KillTime::Calls(calls) => upstream.calls() >= calls,
            KillTime::Ends(ends) => crowd.ends() >= ends,
            KillTime::Never => false,
        };
        let look = || has_come() || clients.iter().all(JoinHandle::is_finished);
        eventually_blocking("the moment to kill the gateway", look, |is_now| *is_now);
        let is_killed = moment != KillTime::Never;
        if is_killed {
            serving.kill();
        }
        let left: Vec<ClientAnswer> = clients
            .into_iter()
            .map(|client| self.runtime.block_on(client).expect("no panic"))
            .collect();
        if !is_killed {
            assert_eq!(serving.stop().code(), Some(0), "{}", serving.stderr);
        }
        let kept = self.read_store();
        let asked = upstream.asked();
        for (number, (key, left)) in self.keys.iter_mut().zip(&left).enumerate() {
            let own = asked.iter().filter(|call| call["model"] == model(number));
            let own: Vec<&Value> = own.collect();
            key.check_calls(&own);
            key.check_left(left, &own, is_killed);
            let kept = kept.get(&model(number)).copied().unwrap_or_default();
            key.check_kept(kept, &own);
        }
        asked.len()
    }

    fn clients(&self, crowd: &Clients) -> Vec<JoinHandle<ClientAnswer>> {
        // The database has to notice first that the process with the claim is dead.
        let may_be_held = self.folder.is_none();
        let clients = self.keys.iter().map(|key| {
            let (crowd, question) = (crowd.clone(), key.question.clone());
            self.runtime.spawn(async move {
                let ask = async || {
                    let mut seen = Received::default();
                    let end = crowd.ask(&question, usize::MAX, &mut seen).await;
                    (seen, end)
                };
                let is_answered = |(_, end): &ClientAnswer| {
                    let is_held = matches!(end, Err(broken) if broken.starts_with("409"));
                    !(may_be_held && is_held)
                };
                eventually("an answer", ask, is_answered).await
            })
        });
        clients.collect()
    }

    /// What the store has of each key, as `overlock inspect` shows it. The file is intact, and each
    /// key has one run.
    fn read_store(&self) -> BTreeMap<String, StoredRun> {
        if let Some(folder) = &self.folder {
            let connection = Connection::open(folder.path().join("runs.db")).expect("the store");
            let check = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0));
            let check: String = check.expect("an answer");
            assert_eq!(check, "ok");
        }
        let inspect = |arguments: &[&str]| {
            let arguments = [&["inspect", "--json", "--store", &self.store], arguments].concat();
            let inspected = overlock(&arguments, "");
            assert_eq!(inspected.code, 0, "{}", inspected.stderr);
            inspected.json()
        };
        let runs = inspect(&["--last", "1000"]);
        let ids = runs.as_array().expect("a list").iter();
        let ids = ids.map(|run| run["id"].as_str().expect("a name"));
        let mut kept = BTreeMap::new();
        for id in ids {
            let run = inspect(&[id]);
            // A run without steps has no document length.
            let number = |name: &str| usize::try_from(run[name].as_u64().unwrap_or_default());
            let one = StoredRun {
                steps: number("iterations").expect("it is small"),
                bytes: number("bytes").expect("it is small"),
                has_ended: run["outcome"] == "complete",
            };
            let model = run["model"].as_str().expect("a name").to_owned();
            assert_eq!(kept.insert(model, one), None, "two runs for one key");
        }
        kept
    }
}

impl Key {
    /// No stored call was repeated, and the first call continued exactly where the store ends.
    fn check_calls(&self, calls: &[&Value]) {
        for call in calls {
            assert!(!self.answered.contains(call), "it was answered: {call}");
        }
        let Some(first) = calls.first() else {
            return;
        };
        assert!(self.given.is_none(), "it was given: {first}");
        assert_eq!(
            self.asked_from(first),
            self.kept.bytes,
            "the store has {:?}: {first}",
            self.kept
        );
    }

    /// The byte of the document where a call continues.
    fn asked_from(&self, call: &Value) -> usize {
        let messages = call["messages"].as_array().expect("messages");
        let prompt = messages.last().and_then(|last| last["content"].as_str());
        let prompt = prompt.expect("a prompt");
        // The opening line ends with a digest.
        let Some((_, quoted)) = prompt.rsplit_once("[[overlap-") else {
            return 0;
        };
        let (_, quoted) = quoted.split_once("]]\n").expect("the end of the line");
        let (overlap, _) = quoted.split_once("\n[[/overlap-").expect("an end");
        let at = self.document.find(overlap);
        let at = at.unwrap_or_else(|| panic!("{overlap:?} is not in the document"));
        at + overlap.len()
    }

    /// A client with an end has the complete answer; a repeated key gets the same answer; and only a
    /// killed gateway leaves clients without an answer.
    fn check_left(&mut self, (seen, end): &ClientAnswer, calls: &[&Value], is_killed: bool) {
        assert!(is_killed || end.is_ok(), "{:?}: {end:?}", self.question);
        if seen.finishes.is_empty() {
            return;
        }
        if end.is_ok() {
            assert_eq!(seen.fault(&self.document), None, "{:?}", self.question);
        } else {
            assert_eq!(seen.content, self.document, "{:?}", self.question);
        }
        if let Some(given) = &self.given {
            assert!(calls.is_empty());
            assert_eq!((&seen.ids, &seen.finishes), (&given.ids, &given.finishes));
            if seen.ends == 1 && given.ends == 1 {
                assert_eq!(seen.usages, given.usages);
            }
        } else {
            self.given = Some(seen.clone());
        }
    }

    /// Nothing stored is lost, and everything sent is stored.
    fn check_kept(&mut self, kept: StoredRun, calls: &[&Value]) {
        let new = kept.steps.checked_sub(self.kept.steps);
        let new = new.unwrap_or_else(|| panic!("{:?} became {kept:?}", self.kept));
        assert!(
            kept.bytes >= self.kept.bytes,
            "{:?} became {kept:?}",
            self.kept
        );
        assert!(kept.has_ended || self.given.is_none(), "{kept:?}");
        // Each call is one step, in order.
        assert!(new <= calls.len(), "{new} steps, {} calls", calls.len());
        self.answered
            .extend(calls[..new].iter().map(|call| (*call).clone()));
        self.kept = kept;
    }
}
