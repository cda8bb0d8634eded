//! Several processes with one file, some of which are killed.

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

/// Variables for the other process: the store, its repository, and how often it writes.
const FILE: &str = "OVERLOCK_TEST_FILE";
const REPOSITORY: &str = "OVERLOCK_TEST_REPOSITORY";
const TIMES: &str = "OVERLOCK_TEST_TIMES";

const FILES_AT_ONCE: usize = 20;

#[test]
fn writes_survive_a_kill_and_indexing_continues() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    for round in 0..6 {
        let mut child = Other::start(&path, "shop", usize::MAX);
        for _ in 0..=round {
            child.wait_for_a_write();
        }
        // It is in the middle of the next write.
        child.process.kill().expect("a running process");
        child.process.wait().expect("an ended process");
        let acknowledged = FILES_AT_ONCE * (round + 1);
        check_integrity(&path);
        let store = store(&path);
        let kept = store.files("shop").expect("files").len();
        assert!(
            kept >= acknowledged,
            "{kept} of {acknowledged} files are left"
        );
        assert_eq!(kept % FILES_AT_ONCE, 0, "a write is complete or missing");
    }
    let left = store(&path);
    let files: Vec<Sketch> = (0..300).map(sketch).collect();
    let put: Vec<NewFile<'_>> = files.iter().map(Sketch::file).collect();
    left.put_files("shop", &put).expect("stored files");
    let others: Vec<String> = left
        .files("shop")
        .expect("files")
        .into_iter()
        .map(|file| file.path)
        .filter(|path| files.iter().all(|sketch| sketch.path != *path))
        .collect();
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    left.remove_files("shop", &others).expect("a removal");
    left.resolve("shop").expect("edges");

    let anew = overlock_store::in_memory().expect("a store");
    anew.put_files("shop", &put).expect("stored values");
    anew.resolve("shop").expect("edges");
    let ids: Vec<NodeId> = files.iter().flat_map(Sketch::ids).collect();
    assert_eq!(edges(&*left, &ids), edges(&*anew, &ids));
    check_integrity(&path);
}

#[test]
fn two_processes_write_while_a_third_one_reads() {
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
    check_integrity(&path);
}

/// The other process.
#[test]
#[ignore = "the other process of the tests above"]
fn writes_again_and_again() {
    // Without the variables it is not run by another test.
    let Some(path) = env::var_os(FILE) else {
        return;
    };
    let repository = env::var(REPOSITORY).expect("a repository");
    let times: usize = env::var(TIMES)
        .expect("a number")
        .parse()
        .expect("a number");
    let store = store(Path::new(&path));
    // Continues after the files of a killed process.
    let begun = store.files(&repository).expect("files").len() / FILES_AT_ONCE;
    for time in (begun..).take(times) {
        let files: Vec<Sketch> = (0..FILES_AT_ONCE)
            .map(|number| sketch(time * FILES_AT_ONCE + number))
            .collect();
        let files: Vec<NewFile<'_>> = files.iter().map(Sketch::file).collect();
        store.put_files(&repository, &files).expect("stored values");
        store.resolve(&repository).expect("edges");
        println!("\nwritten");
    }
}

/// A file whose nodes mention those of its neighbours.
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
    open(&StoreAddress::Sqlite(path.to_owned()), Access::Create).expect("a store")
}

/// Checks every page of a file, and every word of its index.
fn check_integrity(path: &Path) {
    let connection = Connection::open(path).expect("a file");
    let found: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("an answer");
    assert_eq!(found, "ok");
    connection
        .execute("INSERT INTO words (words) VALUES ('integrity-check')", [])
        .expect("a consistent index");
}

/// Another process.
struct Other {
    process: Child,
    /// Its output.
    lines: mpsc::Receiver<String>,
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
            .expect("a process");
        let stdout = BufReader::new(process.stdout.take().expect("a pipe"));
        let (sender, received) = mpsc::channel();
        thread::spawn(move || {
            let lines = stdout.lines().map_while(Result::ok);
            // Ends with the process or with the receiver.
            lines.map(|line| sender.send(line)).find(Result::is_err)
        });
        Self {
            process,
            lines: received,
        }
    }

    fn wait_for_a_write(&mut self) {
        let mut line = String::new();
        while line.trim() != "written" {
            line = self.lines.recv_timeout(PATIENCE).expect("a write");
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
