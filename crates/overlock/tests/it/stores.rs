use std::fs;

use crate::program::{Run, TemporaryFolder, overlock};

/// What looks into a store, and what makes one.
const LOOKING: &[&str] = &["search", "orders"];
const MAKING: &[&str] = &["chat", "post", "garden", "Hello.", "--as", "ana"];

struct Place {
    folder: TemporaryFolder,
}

impl Place {
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

    /// Every command that uses a store says the same of one that it cannot use.
    #[track_caller]
    fn check_refused(&self, store: &str, told: &str, hint: &str) {
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
                    && error.contains(told)
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
fn a_folder_is_no_store_and_a_file_in_it_could_be_one() {
    let place = Place::new("stores-folder");
    let hint = format!("sqlite://{}", place.path("src/runs.db"));
    place.check_refused("src", "is a folder", &hint);
}

#[cfg(unix)]
#[test]
fn a_store_that_nobody_can_look_for_is_not_said_to_be_missing() {
    let place = Place::new("stores-hidden");
    place.check_refused(
        "src/Orders.cs/runs.db",
        "could not look for the store",
        "every folder on the way",
    );
    // A link that leads to itself, which nobody can follow, whatever their rights.
    std::os::unix::fs::symlink("round.db", place.path("round.db")).expect("it can be linked");
    place.check_refused(
        "round.db",
        "could not look for the store",
        "every folder on the way",
    );
    let missing = place.run(LOOKING, "none.db");
    assert!(
        missing.stderr.contains("there is no store") && missing.stderr.contains("overlock index"),
        "{}",
        missing.stderr
    );
}

#[test]
fn a_damaged_store_is_told_to_be_damaged() {
    let place = Place::new("stores-damaged");
    assert_eq!(place.run(MAKING, "good.db").code, 0);
    let good = fs::read(place.path("good.db")).expect("bytes");
    for (name, damage) in [("first page", 100..4096), ("other pages", 4096..good.len())] {
        let mut bytes = good.clone();
        bytes[damage].fill(0x55);
        fs::write(place.path("bad.db"), &bytes).expect("the folder is ours");
        place.check_refused("bad.db", "is damaged", "name another store with --store");
        let after = fs::read(place.path("bad.db")).expect("bytes");
        assert!(after == bytes, "nothing is written to it: {name}");
    }
    fs::write(place.path("half.db"), &good[..5000]).expect("the folder is ours");
    place.check_refused("half.db", "is damaged", ".recover");
    fs::write(place.path("text.db"), "This is not a database at all.").expect("it is ours");
    place.check_refused("text.db", "file is not a database", "whether it is a store");
}
