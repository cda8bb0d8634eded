//! Files of other versions, of other programs, locked, read-only, full and damaged ones.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::Sqlite;
use crate::*;

fn begin(store: &dyn Store, at: u64) -> Claim {
    let id = RunId::new(at, at);
    let run = NewRun {
        id: &id,
        at,
        model: "a-model",
        request: r#"{"messages": []}"#,
        options: "{}",
        conditions: r#"{"upstream": "here"}"#,
    };
    store.begin(&run).expect("a run begins")
}

fn read(store: &dyn Store, id: &RunId) -> Run {
    store
        .run(id)
        .expect("a readable store")
        .expect("a recorded run")
}

fn path(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("runs.db")
}

fn at(folder: &tempfile::TempDir) -> StoreAddress {
    StoreAddress::Sqlite(path(folder))
}

#[cfg(unix)]
#[test]
fn opening_a_store_deletes_the_locks_of_killed_processes() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(&at(&folder), Access::Create).expect("a store");
    let [id, dead] = [1, 2].map(|at| RunId::new(at, at));
    let work = store.work_on(&id).expect("a lock");
    let live = folder.path().join("runs.db-live");
    fs::write(live.join(dead.as_str()), "").expect("a file");
    open(&at(&folder), Access::Create).expect("a store");
    assert!(!live.join(dead.as_str()).exists());
    assert!(live.join(id.as_str()).exists());
    drop(work);
    assert_eq!(fs::read_dir(&live).expect("a folder").count(), 0);
}

#[cfg(unix)]
#[test]
fn a_link_to_a_store_shares_its_locks() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(&at(&folder), Access::Create).expect("a store");
    let link = folder.path().join("link.db");
    std::os::unix::fs::symlink(folder.path().join("runs.db"), &link).expect("a link");
    let other = open(&StoreAddress::Sqlite(link), Access::Create).expect("a store");
    let id = RunId::new(1000, 7);
    let work = store.work_on(&id).expect("a lock");
    assert!(work.is_some());
    assert!(other.work_on(&id).expect("a lock").is_none());
    drop(work);
    assert!(other.work_on(&id).expect("a lock").is_some());
}

/// Opens a file in every way: its bytes do not change, and no further files are created.
#[track_caller]
fn check_untouched(folder: &tempfile::TempDir, is_expected: fn(&StoreError) -> bool) {
    let listed = || -> Vec<(String, Vec<u8>)> {
        let files = fs::read_dir(folder.path()).expect("a folder");
        let files = files.map(|file| file.expect("a file").path());
        files
            .map(|file| (file.display().to_string(), fs::read(&file).expect("bytes")))
            .collect()
    };
    let before = listed();
    for access in [Access::Create, Access::Write, Access::Read] {
        let error = open(&at(folder), access).expect_err("another kind of file");
        assert!(is_expected(&error), "{error}");
        assert!(listed() == before, "{access:?} changed a file");
    }
}

#[test]
fn a_file_of_a_later_version_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = path(&folder);
    drop(open(&at(&folder), Access::Create).expect("a store"));
    let connection = Connection::open(&path).expect("a file");
    connection
        .pragma_update(None, "journal_mode", "delete")
        .expect("a mode");
    connection
        .pragma_update(None, "user_version", 99)
        .expect("a version");
    drop(connection);
    check_untouched(&folder, |error| {
        matches!(error, StoreError::Newer { found: 99, .. })
    });
}

#[test]
fn the_database_of_another_program_is_left_alone() {
    for version in [0, 1, 2] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = path(&folder);
        let connection = Connection::open(&path).expect("a file");
        connection
            .execute_batch("CREATE TABLE runs (id TEXT, distance REAL)")
            .expect("a table");
        connection
            .pragma_update(None, "user_version", version)
            .expect("a version");
        drop(connection);
        check_untouched(&folder, |error| matches!(error, StoreError::Foreign { .. }));
    }
}

#[test]
fn a_file_that_is_not_a_database_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = path(&folder);
    fs::write(&path, "hello, this is not a database at all").expect("a file");
    check_untouched(&folder, |error| error.to_string().contains("runs.db"));
}

#[test]
fn a_missing_store_is_not_created_for_reading() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = StoreAddress::Sqlite(folder.path().join("deep/runs.db"));
    for access in [Access::Read, Access::Write] {
        let error = open(&address, access).expect_err("no store");
        assert!(matches!(error, StoreError::Missing { .. }), "{error}");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn a_file_name_may_look_like_a_uri() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = StoreAddress::Sqlite(folder.path().join("a?mode=memory&b#c%20.db"));
    let claim = begin(&*open(&address, Access::Create).expect("a store"), 1);
    let store = open(&address, Access::Read).expect("a file");
    read(&*store, claim.id());
}

#[cfg(unix)]
mod on_unix {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("a file").permissions().mode() & 0o777
    }

    fn permit(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permission");
    }

    #[test]
    fn new_files_are_readable_only_by_their_owner() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deep/er/runs.db");
        let store = open(&StoreAddress::Sqlite(path.clone()), Access::Create);
        let store = store.expect("a store");
        begin(&*store, 1);
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(&folder.path().join("deep/er/runs.db-wal")), 0o600);
        for made in ["deep", "deep/er"] {
            assert_eq!(mode(&folder.path().join(made)), 0o700);
        }
    }

    #[test]
    fn opens_a_read_only_file_for_reading() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = path(&folder);
        let claim = begin(&*open(&at(&folder), Access::Create).expect("a store"), 1);
        permit(&path, 0o400);
        permit(folder.path(), 0o500);
        let store = open(&at(&folder), Access::Read).expect("a store");
        read(&*store, claim.id());
        permit(folder.path(), 0o700);
    }
}

fn put_order(store: &dyn Store) -> Result<(), StoreError> {
    let node = NewNode {
        kind: NodeKind::Type,
        name: "Order".to_owned(),
        qualified: "Order".to_owned(),
        parent: None,
        language: "csharp".to_owned(),
        lines: (1, 1),
        span: 0..5,
        text: "class Order".repeat(100),
        metadata: "{}".to_owned(),
    };
    let file = NewFile {
        path: "Order.cs",
        hash: "1",
        nodes: &[node],
        imports: &[],
        mentions: &[],
    };
    store.put_files("shop", &[file])
}

fn found(store: &dyn Store, text: &str) -> Vec<String> {
    let query = Query {
        search: Search::Keyword(text),
        filter: Filter::default(),
        limit: 9,
    };
    let hits = store.search(&query).expect("hits");
    hits.into_iter().map(|hit| hit.node.name).collect()
}

#[test]
fn a_full_disk_is_reported_and_nothing_is_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Sqlite::open(&folder.path().join("runs.db"), Access::Create).expect("a store");
    put_order(&store).expect("a stored file");
    let pages: i64 = store
        .connection()
        .pragma_query_value(None, "page_count", |row| row.get(0))
        .expect("a number");
    store
        .connection()
        .pragma_update_and_check(None, "max_page_count", pages + 4, |_| Ok(()))
        .expect("a limit");
    let text = "many words ".repeat(1_000);
    let message = NewMessage {
        sender: "ann",
        role: "user",
        text: &text,
        at: 1,
    };
    let error = (0..100)
        .find_map(|_| store.post("hall", &[message]).err())
        .expect("a full disk");
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    let error = error.to_string();
    assert!(
        error.contains("runs.db") && error.contains("free some space"),
        "{error}"
    );
    assert_eq!(found(&store, "order"), ["Order"]);
    let messages = store.messages("hall", 100).expect("messages");
    assert!(messages.iter().all(|message| message.text == text));
}

#[test]
fn a_write_to_a_read_only_store_names_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(open(&at(&folder), Access::Create).expect("a store"));
    let store = open(&at(&folder), Access::Read).expect("a store");
    let error = put_order(&*store).expect_err("a read-only store");
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
    let error = error.to_string();
    assert!(
        error.contains("runs.db") && error.contains("grant write permission"),
        "{error}"
    );
}

#[test]
fn an_error_of_a_damaged_store_names_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = path(&folder);
    let store = open(&at(&folder), Access::Create).expect("a store");
    put_order(&*store).expect("a stored file");
    drop(store);
    let mut bytes = fs::read(&path).expect("bytes");
    for page in bytes.chunks_mut(4096).skip(1) {
        page.fill(0x55);
    }
    fs::write(&path, bytes).expect("a file");
    let store = open(&at(&folder), Access::Read).expect("an undamaged first page");
    let error = store.files("shop").expect_err("a damaged store");
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains("runs.db"), "{error}");
}
