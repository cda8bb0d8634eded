//! The processes that read and write one file, and what becomes of it when one is killed.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;

use overlock_llm::testing::{PATIENCE, eventually_blocking};
use overlock_store::{
    Access, EdgeKind, Filter, NewFile, NodeId, NodeKind, Query, Search, Store, StoreAddress, open,
};
use rusqlite::Connection;

use crate::sketch::{Sketch, edges};

/// Where another process finds the store, what it calls its repository, and how often it writes.
const FILE: &str = "OVERLOCK_TEST_FILE";
const REPOSITORY: &str = "OVERLOCK_TEST_REPOSITORY";
const TIMES: &str = "OVERLOCK_TEST_TIMES";

const FILES_AT_ONCE: usize = 20;

#[test]
fn what_was_written_survives_a_kill_and_the_next_index_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    for round in 0..6 {
        let mut child = Other::start(&path, "shop", usize::MAX);
        for _ in 0..=round {
            child.wait_for_a_write();
        }
        // It is in the middle of the next one.
        child.process.kill().expect("it can be killed");
        child.process.wait().expect("it ends");
        let acknowledged = FILES_AT_ONCE * (round + 1);
        check_whole(&path);
        let store = store(&path);
        let kept = store.files("shop").expect("files").len();
        assert!(
            kept >= acknowledged,
            "{kept} of {acknowledged} files are left"
        );
        assert_eq!(
            kept % FILES_AT_ONCE,
            0,
            "a write is there as a whole, or not at all"
        );
    }
    let left = store(&path);
    let files: Vec<Sketch> = (0..300).map(sketch).collect();
    let put: Vec<NewFile<'_>> = files.iter().map(Sketch::file).collect();
    left.put_files("shop", &put).expect("it goes on");
    let others: Vec<String> = left
        .files("shop")
        .expect("files")
        .into_iter()
        .map(|file| file.path)
        .filter(|path| files.iter().all(|sketch| sketch.path != *path))
        .collect();
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    left.remove_files("shop", &others).expect("they go");
    left.resolve("shop").expect("edges");

    let anew = overlock_store::in_memory().expect("a store");
    anew.put_files("shop", &put).expect("they are kept");
    anew.resolve("shop").expect("edges");
    let ids: Vec<NodeId> = files.iter().flat_map(Sketch::ids).collect();
    assert_eq!(edges(&*left, &ids), edges(&*anew, &ids));
    check_whole(&path);
}

#[test]
fn two_processes_write_while_a_third_one_looks() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let mut others = ["one", "two"].map(|repository| Other::start(&path, repository, 8));
    others[0].wait_for_a_write();
    let store = store(&path);
    let look = || {
        let query = Query {
            search: Search::Keyword("method"),
            filter: Filter::default(),
            limit: 5,
        };
        assert!(!store.search(&query).expect("hits").is_empty());
        assert_eq!(store.files("one").expect("files").len() % FILES_AT_ONCE, 0);
        others[0].process.try_wait().expect("a process")
    };
    eventually_blocking("the first process to end", look, Option::is_some);
    for other in &mut others {
        let look = || other.process.try_wait().expect("a process");
        let ended = eventually_blocking("a process to end", look, Option::is_some);
        assert!(ended.is_some_and(|status| status.success()));
    }
    for repository in store.repositories().expect("a list") {
        assert_eq!(
            repository.files,
            8 * FILES_AT_ONCE as u64,
            "{}",
            repository.name
        );
    }
    check_whole(&path);
}

/// What the other process does.
#[test]
#[ignore = "it is the other process of the tests above"]
fn writes_again_and_again() {
    // Run with all the others it is nobody's other process.
    let Some(path) = env::var_os(FILE) else {
        return;
    };
    let repository = env::var(REPOSITORY).expect("a repository");
    let times: usize = env::var(TIMES)
        .expect("a number")
        .parse()
        .expect("a number");
    let store = store(Path::new(&path));
    // Whoever comes after a killed one goes on behind what that one left.
    let begun = store.files(&repository).expect("files").len() / FILES_AT_ONCE;
    for time in (begun..).take(times) {
        let files: Vec<Sketch> = (0..FILES_AT_ONCE)
            .map(|number| sketch(time * FILES_AT_ONCE + number))
            .collect();
        let files: Vec<NewFile<'_>> = files.iter().map(Sketch::file).collect();
        store.put_files(&repository, &files).expect("they are kept");
        store.resolve(&repository).expect("edges");
        println!("\nwritten");
    }
}

/// A file whose nodes speak of those in the files around it.
fn sketch(number: usize) -> Sketch {
    let mut sketch = Sketch::new(&format!("{number}.cs"));
    for place in 0..10 {
        let text = "void Method() { } ".repeat(20);
        sketch = sketch
            .node(
                NodeKind::Method,
                &format!("Type{number}.Method{place}"),
                &text,
            )
            .mentions(
                EdgeKind::Calls,
                &format!("Type{}.Method{place}", number + 1),
            )
            .mentions(EdgeKind::Calls, &format!("Type{}.Method3", number / 2));
    }
    sketch
}

fn store(path: &Path) -> Arc<dyn Store> {
    open(&StoreAddress::Sqlite(path.to_owned()), Access::Make).expect("a store")
}

/// Has SQLite look at every page of a file, and FTS5 at every word.
fn check_whole(path: &Path) {
    let connection = Connection::open(path).expect("a file");
    let found: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("an answer");
    assert_eq!(found, "ok");
    connection
        .execute("INSERT INTO words (words) VALUES ('integrity-check')", [])
        .expect("the index is whole");
}

/// Another process.
struct Other {
    process: Child,
    /// The lines that it says.
    said: mpsc::Receiver<String>,
}

impl Other {
    fn start(path: &Path, repository: &str, times: usize) -> Self {
        let mut process = Command::new(env::current_exe().expect("this program"))
            .args(["--ignored", "--exact", "--nocapture"])
            .arg("processes::writes_again_and_again")
            .env(FILE, path)
            .env(REPOSITORY, repository)
            .env(TIMES, times.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let stdout = BufReader::new(process.stdout.take().expect("it is a pipe"));
        let (sender, said) = mpsc::channel();
        thread::spawn(move || {
            let lines = stdout.lines().map_while(Result::ok);
            // Until the process ends, or nobody listens any more.
            lines.map(|line| sender.send(line)).find(Result::is_err)
        });
        Self { process, said }
    }

    fn wait_for_a_write(&mut self) {
        let mut line = String::new();
        while line.trim() != "written" {
            line = self.said.recv_timeout(PATIENCE).expect("it writes");
        }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
