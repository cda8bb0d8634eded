use std::fs;

use crate::program::{Run, TemporaryFolder, overlock};

/// A command that reads a store, and one that creates it.
const LOOKING: &[&str] = &["search", "orders"];
const MAKING: &[&str] = &["chat", "post", "garden", "Hello.", "--as", "ana"];

struct StoreFolder {
    folder: TemporaryFolder,
}

impl StoreFolder {
    fn new(name: &str) -> Self {
        let folder = TemporaryFolder::new(name);
        folder.write("src/Orders.cs", "class Orders { }");
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn run(&self, arguments: &[&str], store: &str) -> Run {
        let store = format!("sqlite://{}", self.path(store));
        overlock(&[arguments, &["--store", &store]].concat(), "")
    }

    /// Every command that uses a store gives this error and hint.
    #[track_caller]
    fn check_refused(&self, store: &str, expected: &str, hint: &str) {
        let sources = self.path("src");
        for arguments in [LOOKING, MAKING, &["index", &sources]] {
            let run = self.run(arguments, store);
            assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
            let lines: Vec<&str> = run.stderr.lines().collect();
            let [error, help] = lines[..] else {
                panic!("{arguments:?}: {}", run.stderr);
            };
            assert!(
                error.starts_with("error: ")
                    && error.contains(expected)
                    && error.contains(&self.path(store)),
                "{arguments:?}: {error}"
            );
            assert!(
                help.starts_with("hint: ") && help.contains(hint),
                "{arguments:?}: {help}"
            );
        }
    }
}

#[test]
fn a_folder_as_store_has_a_hint() {
    let place = StoreFolder::new("stores-folder");
    let hint = format!("sqlite://{}", place.path("src/runs.db"));
    place.check_refused("src", "is a folder", &hint);
}

#[cfg(unix)]
#[test]
fn an_inaccessible_store_is_not_reported_as_missing() {
    let place = StoreFolder::new("stores-hidden");
    place.check_refused(
        "src/Orders.cs/runs.db",
        "could not look for the store",
        "permissions of the file and its folders",
    );
    // A symbolic link to itself, which even root cannot follow.
    std::os::unix::fs::symlink("round.db", place.path("round.db")).expect("it can be linked");
    place.check_refused(
        "round.db",
        "could not look for the store",
        "permissions of the file and its folders",
    );
    let missing = place.run(LOOKING, "none.db");
    assert!(
        missing.stderr.contains("there is no store") && missing.stderr.contains("overlock index"),
        "{}",
        missing.stderr
    );
}

#[test]
fn reports_a_damaged_store() {
    let place = StoreFolder::new("stores-damaged");
    assert_eq!(place.run(MAKING, "good.db").code, 0);
    let good = fs::read(place.path("good.db")).expect("bytes");
    for (name, damage) in [("first page", 100..4096), ("other pages", 4096..good.len())] {
        let mut bytes = good.clone();
        bytes[damage].fill(0x55);
        fs::write(place.path("bad.db"), &bytes).expect("the folder is ours");
        place.check_refused("bad.db", "is damaged", "choose another store with --store");
        let after = fs::read(place.path("bad.db")).expect("bytes");
        assert!(after == bytes, "nothing is written to it: {name}");
    }
    fs::write(place.path("half.db"), &good[..5000]).expect("the folder is ours");
    place.check_refused("half.db", "is damaged", ".recover");
    fs::write(place.path("text.db"), "This is not a database at all.").expect("it is ours");
    place.check_refused("text.db", "file is not a database", "is a store, and that");
}
