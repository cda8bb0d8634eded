//! `overlock index` and `overlock search`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, thread};

use serde_json::{Value, json};

use crate::program::{Run, TemporaryFolder, overlock};

/// A folder with source code, and a store.
struct Shop {
    folder: TemporaryFolder,
    store: String,
}

impl Shop {
    fn new(name: &str) -> Self {
        let folder = TemporaryFolder::new(name);
        let store = format!("sqlite://{}", folder.path().join("store.db").display());
        let shop = Self { folder, store };
        shop.write(
            "Orders.cs",
            "namespace Shop;\n\n/// <summary>Keeps orders.</summary>\nclass Orders(Log log)\n{\n    public void Close(int id)\n    {\n        log.Note(id);\n        Run(\"UPDATE dbo.Orders SET Closed = 1\");\n    }\n}\n",
        );
        shop.write(
            "Log.cs",
            "namespace Shop;\nclass Log\n{\n    public void Note(int id) { }\n}\n",
        );
        shop.write(
            "orders.sql",
            "CREATE TABLE dbo.Orders (Id int PRIMARY KEY)\nGO\n",
        );
        shop.write("docs/guide.md", "# Closing\nCall `Orders.Close()`.\n");
        shop
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        self.folder.write(&format!("src/{path}"), content);
    }

    fn sources(&self) -> String {
        self.folder.path().join("src").display().to_string()
    }

    fn index(&self, more: &[&str]) -> Run {
        let sources = self.sources();
        let arguments = [
            "index",
            &sources,
            "--repository",
            "shop",
            "--store",
            &self.store,
        ];
        overlock(&[&arguments, more].concat(), "")
    }

    fn search(&self, more: &[&str]) -> Run {
        let arguments = ["search", "--store", &self.store];
        overlock(&[&arguments, more].concat(), "")
    }
}

#[test]
fn finds_indexed_code_with_its_lines() {
    let shop = Shop::new("index-found");
    let run = shop.index(&[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(
        run.stdout.starts_with(
            "shop: 4 files = 4 changed + 0 unchanged + 0 left out; 0 removed\nstored: "
        ),
        "{}",
        run.stdout
    );
    assert!(run.stdout.trim_end().ends_with("nodes/s"), "{}", run.stdout);

    let found = shop.search(&["close orders"]);
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert!(
        found
            .stdout
            .contains("Orders.cs:9  method Shop.Orders.Close"),
        "{}",
        found.stdout
    );
    assert!(
        found.stdout.contains("      6  public void Close(int id)"),
        "{}",
        found.stdout
    );
    assert!(!found.stdout.contains('\u{1b}'), "there is no terminal");
}

#[test]
fn json_has_all_figures_and_hits() {
    let shop = Shop::new("index-json");
    shop.write("logo.png", b"\x89PNG\0");
    let run = shop.index(&["--json"]);
    assert_eq!(
        run.keys(),
        [
            "repository",
            "files",
            "changed",
            "unchanged",
            "left_out",
            "removed",
            "skipped",
            "stopped",
            "nodes_written",
            "edges_made",
            "nodes",
            "edges",
            "seconds",
            "nodes_per_second"
        ]
    );
    let answer = run.json();
    assert_eq!(
        (&answer["files"], &answer["changed"]),
        (&json!(5), &json!(4))
    );
    assert_eq!(
        answer["skipped"],
        json!([{"path": "logo.png", "reason": "not text", "indexed": false}])
    );
    assert!(answer["edges"].as_u64() > Some(3), "{answer}");

    let found = shop.search(&["--json", "--limit", "1", "Note"]).json();
    let hit = &found["hits"][0];
    assert_eq!(
        (&hit["path"], &hit["line"], &hit["kind"]),
        (&json!("Log.cs"), &json!(4), &json!("method"))
    );
    assert_eq!(
        (&hit["qualified"], &hit["language"]),
        (&json!("Shop.Log.Note"), &json!("dotnet"))
    );
    assert_eq!(
        hit["matches"],
        json!([{"line": 4, "text": "public void Note(int id) { }"}])
    );
    assert_eq!(found["hits"].as_array().map(Vec::len), Some(1));
}

#[cfg(target_os = "linux")]
#[test]
fn the_figures_of_an_index_add_up() {
    use std::os::unix::ffi::OsStrExt;
    let shop = Shop::new("index-sums");
    shop.index(&[]);
    shop.write("logo.png", b"\x89PNG\0");
    shop.write("data.txt", "x".repeat(3000));
    shop.write("old.sql", b"-- M\xfcller\nSELECT 1;\n");
    shop.write("broken.cs", "class Broken { void ((( }");
    shop.write("Log.cs", "class Journal { }\n");
    let nameless = std::ffi::OsStr::from_bytes(b"caf\xe9.cs");
    let nameless = std::path::Path::new(&shop.sources()).join(nameless);
    fs::write(nameless, "class Cafe { }").expect("the folder is ours");
    shop.write("docs/.gitignore", "[z-a].md\n");

    let run = shop.index(&["--largest", "2000"]);
    let sum = "9 files = 3 changed + 3 unchanged + 3 left out \
               (1 binary, 1 too large, 1 unreadable); 0 removed\n";
    assert!(run.stdout.contains(sum), "{}", run.stdout);
    assert!(
        run.stderr.contains("could not be scanned"),
        "{}",
        run.stderr
    );
    assert_eq!(run.code, 1);
    let answer = shop.index(&["--largest", "2000", "--json"]).json();
    let figure = |name: &str| answer[name].as_u64().expect("a figure");
    assert_eq!(
        figure("files"),
        figure("changed") + figure("unchanged") + figure("left_out")
    );
}

#[test]
fn indexes_only_changed_files_again() {
    let shop = Shop::new("index-again");
    shop.index(&[]);
    shop.write("Log.cs", "class Journal { }\n");
    fs::remove_file(shop.folder.path().join("src/orders.sql")).expect("it is there");
    let again = shop.index(&["--json"]).json();
    assert_eq!(
        (&again["changed"], &again["unchanged"], &again["removed"]),
        (&json!(1), &json!(2), &json!(1))
    );
    assert_eq!(shop.search(&["Journal"]).code, 0);
    assert_eq!(shop.search(&["--language", "sql", "orders"]).code, 1);
}

#[test]
fn searches_can_be_narrowed() {
    let shop = Shop::new("index-filters");
    shop.index(&[]);
    let other = shop.folder.path().join("src/docs").display().to_string();
    overlock(&["index", &other, "--store", &shop.store], "");
    let paths = |more: &[&str]| -> Vec<String> {
        let found = shop.search(&[&["--json", "orders"], more].concat()).json();
        let mut paths: Vec<String> = found["hits"]
            .as_array()
            .expect("there are hits")
            .iter()
            .map(|hit| {
                format!(
                    "{}/{}",
                    hit["repository"].as_str().unwrap_or_default(),
                    hit["path"].as_str().unwrap_or_default()
                )
            })
            .collect();
        paths.sort();
        paths.dedup();
        paths
    };
    assert_eq!(paths(&["--language", "sql"]), ["shop/orders.sql"]);
    assert_eq!(paths(&["--path", "docs"]), ["shop/docs/guide.md"]);
    assert_eq!(paths(&["--path", "*.cs"]), ["shop/Orders.cs"]);
    assert_eq!(paths(&["--repository", "docs"]), ["docs/guide.md"]);
    assert!(
        shop.search(&["orders", "--limit", "50"])
            .stdout
            .contains("docs: guide.md:")
    );
}

#[test]
fn folders_with_the_same_name_do_not_replace_each_other() {
    let folder = TemporaryFolder::new("index-two-folders");
    folder.write("a/src/One.cs", "class One { }");
    folder.write("b/src/Two.cs", "class Two { }");
    let store = format!("sqlite://{}", folder.path().join("store.db").display());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let index = |name: &str, more: &[&str]| {
        let arguments = ["index", &path(name), "--store", &store];
        overlock(&[&arguments, more].concat(), "")
    };
    let finds = |word: &str| overlock(&["search", word, "--store", &store], "").code == 0;
    assert_eq!(index("a/src", &[]).code, 0);
    let refused = index("b/src", &[]);
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
    let stderr = &refused.stderr;
    assert!(
        stderr.contains(&path("a/src")) && stderr.contains(&path("b/src")),
        "{stderr}"
    );
    assert!(
        stderr.contains("hint: ")
            && stderr.contains("--repository NAME")
            && stderr.contains("--replace"),
        "{stderr}"
    );
    assert!(finds("One") && !finds("Two"));

    // Another name, a replacement, or a folder that was moved.
    assert_eq!(index("b/src", &["--repository", "b"]).code, 0);
    assert!(finds("One") && finds("Two"));
    let replaced = index("b/src", &["--replace"]);
    assert_eq!(replaced.code, 0, "{}", replaced.stderr);
    assert!(replaced.stderr.contains("` was `"), "{}", replaced.stderr);
    assert!(!finds("One"));
    fs::rename(path("b/src"), path("b/code")).expect("it can be moved");
    let moved = index("b/code", &["--repository", "src", "--json"]);
    assert_eq!(moved.json()["unchanged"], json!(1), "{}", moved.stderr);
}

#[test]
fn refuses_a_repository_without_a_name() {
    let shop = Shop::new("index-nameless");
    for name in ["", " ", "a\nb"] {
        let sources = shop.sources();
        let arguments = ["index", &sources, "--store", &shop.store];
        let run = overlock(&[&arguments[..], &["--repository", name]].concat(), "");
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(run.stderr.contains("visible character"), "{}", run.stderr);
    }
}

#[test]
fn finding_nothing_ends_with_1() {
    let shop = Shop::new("index-nothing");
    shop.index(&[]);
    let run = shop.search(&["zeppelin"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert!(run.stderr.contains("nothing found"), "{}", run.stderr);
    let run = shop.search(&["zeppelin", "--json"]);
    assert_eq!((run.code, run.json()), (1, json!({"hits": []})));
}

#[test]
fn an_unknown_path_has_a_hint() {
    let shop = Shop::new("index-paths");
    shop.index(&[]);
    for (path, hint) in [
        ("[", "`*`, `?` and `**` are wildcards"),
        ("src/{a,b}.cs", "`*`, `?` and `**` are wildcards"),
        ("/nowhere/Orders.cs", "no indexed folder contains this path"),
        ("nowhere", "relative to the indexed folder"),
    ] {
        let run = shop.search(&["orders", "--path", path]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{path}");
        assert!(
            run.stderr.contains(&format!("matches the path `{path}`")) && run.stderr.contains(hint),
            "{}",
            run.stderr
        );
    }
    // Nothing found in a path that exists is no error.
    let run = shop.search(&["zeppelin", "--path", "docs"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
}

#[test]
fn accepts_an_absolute_path() {
    let shop = Shop::new("index-whole-path");
    shop.index(&[]);
    let whole = shop.folder.path().join("src/docs").display().to_string();
    let hits = |path: &str| {
        let run = shop.search(&["orders", "--path", path, "--json"]);
        assert_eq!(run.code, 0, "{path}: {}", run.stderr);
        run.json()
    };
    assert_eq!(hits(&whole), hits("docs"));
    assert_eq!(hits(&format!("{whole}/*.md")), hits("docs/*.md"));
}

#[test]
fn indexing_a_file_has_a_hint() {
    let shop = Shop::new("index-file");
    let file = shop.folder.path().join("alone.cs");
    shop.folder.write("alone.cs", "class Alone {}");
    let file = file.display().to_string();
    let run = overlock(&["index", &file, "--store", &shop.store], "");
    assert_eq!(run.code, 2);
    assert!(
        run.stderr.contains("is a file, not a folder")
            && run.stderr.contains("hint: index its folder with"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_folder_without_files_makes_no_repository() {
    let shop = Shop::new("index-bare");
    let bare = shop.folder.path().join("bare");
    fs::create_dir_all(&bare).expect("a folder");
    let bare = bare.display().to_string();
    let run = overlock(&["index", &bare, "--store", &shop.store], "");
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(
        run.stderr.contains("there is no repository `bare`"),
        "{}",
        run.stderr
    );
    let run = shop.search(&["orders", "--repository", "bare"]);
    assert_eq!(run.code, 2);
    assert!(
        run.stderr.contains("there is no repository `bare`"),
        "{}",
        run.stderr
    );
}

#[test]
fn an_unknown_repository_has_a_hint() {
    let shop = Shop::new("index-unknown");
    shop.index(&[]);
    let run = shop.search(&["orders", "--repository", "shpo"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(
        run.stderr.contains("there is no repository `shpo`")
            && run.stderr.contains("hint: the only one is `shop`"),
        "{}",
        run.stderr
    );
    let docs = shop.folder.path().join("src/docs").display().to_string();
    overlock(&["index", &docs, "--store", &shop.store], "");
    for (asked, expected) in [
        ("zeppelin", "hint: available: `docs`, `shop`\n"),
        (
            "shpo",
            "hint: did you mean `shop`? available: `docs`, `shop`\n",
        ),
    ] {
        let run = shop.search(&["orders", "--repository", asked, "--json"]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""));
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
    // Finding nothing in a repository that exists is no error.
    let run = shop.search(&["zeppelin", "--repository", "docs"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let help = overlock(&["search", "--help"], "").stdout;
    assert!(help.contains("from 1 to 1000"), "{help}");
    assert_eq!(shop.search(&["orders", "--limit", "1001"]).code, 2);
}

#[test]
fn bad_usage_has_a_hint() {
    let shop = Shop::new("index-usage");
    let missing = overlock(&["index", "/no/such/folder", "--store", &shop.store], "");
    assert_eq!(missing.code, 2);
    assert!(
        missing.stderr.contains("no such folder: `/no/such/folder`"),
        "{}",
        missing.stderr
    );
    let file = shop.folder.path().join("src/Log.cs").display().to_string();
    assert_eq!(
        overlock(&["index", &file, "--store", &shop.store], "").code,
        2
    );
    let unnamed = shop.search(&["--type", "semantic", "orders"]);
    assert_eq!(unnamed.code, 2);
    assert!(
        unnamed.stderr.contains("--embed MODEL"),
        "{}",
        unnamed.stderr
    );
    assert_eq!(shop.search(&["?!"]).code, 2);
    let nobody = shop.index(&["--embed", "tiny"]);
    assert!(
        nobody.code == 2 && nobody.stderr.contains("--upstream URL"),
        "{}",
        nobody.stderr
    );
    let no_store = overlock(
        &["search", "x", "--store", "sqlite:///no/such/store.db"],
        "",
    );
    assert_eq!(no_store.code, 2, "{}", no_store.stderr);
}

#[test]
fn notes_files_that_are_skipped_or_decoded() {
    let shop = Shop::new("index-notes");
    shop.write(
        "old.sql",
        b"-- M\xfcller\nCREATE VIEW old_view AS SELECT 1 AS a;\n",
    );
    shop.write("data.txt", "x".repeat(3000));
    let run = shop.index(&["--largest", "2000"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(
        run.stderr.contains("note: data.txt: too large: 3000 bytes"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr
            .contains("note: old.sql: not UTF-8, read as Windows-1252"),
        "{}",
        run.stderr
    );
    assert!(
        run.stdout
            .contains("6 files = 5 changed + 0 unchanged + 1 left out (1 too large)"),
        "{}",
        run.stdout
    );
}

#[cfg(unix)]
#[test]
fn a_stopped_index_resumes() {
    use rustix::process::Signal;
    use std::process::Stdio;
    for (name, signal, code) in [("Ctrl-C", Signal::INT, 130), ("SIGTERM", Signal::TERM, 143)] {
        let shop = Shop::new(&format!("index-stopped-{code}"));
        for number in 0..1500 {
            shop.write(
                &format!("many/{number}.cs"),
                format!("class Many{number} {{ void A() {{ B(); }} }}\n").repeat(15),
            );
        }
        let sources = shop.sources();
        let arguments = ["index", &sources, "--repository", "shop"];
        let child = crate::program::command(&[&arguments[..], &["--store", &shop.store]].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built with the tests");
        // Stops after the first batch is stored, when much is left to do.
        let look = || shop.search(&["Many1"]);
        overlock_llm::testing::eventually_blocking("the first batch", look, |found| {
            found.code == 0
        });
        crate::program::signal(&child, signal);
        let output = crate::program::output_of(child);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert!(
            stderr.contains(&format!("stopped by {name}: "))
                && stderr.contains("of 1,504 files are stored")
                && stderr.contains("repeat the command to resume"),
            "{stderr}"
        );
        let rest = shop.index(&["--json"]).json();
        assert_eq!(rest["files"], json!(1504));
        let unchanged = rest["unchanged"].as_u64().expect("a figure");
        assert!((1..1504).contains(&unchanged), "{rest}");
        let whole = shop.index(&["--json"]).json();
        assert_eq!(whole["unchanged"], json!(1504));
        assert_eq!(shop.search(&["Many1499"]).code, 0);
    }
}

/// An embedding server: a vector counts some words in a text. One of its calls fails.
struct Vectors {
    address: String,
    calls: Arc<AtomicUsize>,
}

impl Vectors {
    fn new(fails_at: usize) -> Self {
        Self::answering(fails_at, None)
    }

    /// A server that returns the same vector for every text.
    fn always(vector: Value) -> Self {
        Self::answering(0, Some(vector))
    }

    fn answering(fails_at: usize, always: Option<Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("http://{}/v1", listener.local_addr().expect("it has one"));
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let call = counted.fetch_add(1, Ordering::Relaxed) + 1;
                answer(stream, call == fails_at, always.as_ref());
            }
        });
        Self { address, calls }
    }
}

fn answer(mut stream: TcpStream, fails: bool, always: Option<&Value>) {
    let mut reader = BufReader::new(stream.try_clone().expect("it can be cloned"));
    let mut length = 0;
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("it is a number");
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("it is sent whole");
    let asked: Value = serde_json::from_slice(&body).expect("it is JSON");
    let texts = asked["input"].as_array().expect("there are texts");
    let vectors: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let text = text.as_str().unwrap_or_default().to_lowercase();
            let count = |word: &str| text.matches(word).count();
            let counted = || json!([1, count("close"), count("note"), count("table")]);
            let vector = always.cloned().unwrap_or_else(counted);
            json!({ "index": index, "embedding": vector })
        })
        .collect();
    let (status, body) = if fails {
        (
            "400 Bad Request",
            json!({ "error": { "message": "not now" } }),
        )
    } else {
        ("200 OK", json!({ "data": vectors }))
    };
    let body = body.to_string();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
}

#[test]
fn reports_unusable_vectors_with_their_server() {
    let shop = Shop::new("index-unfit");
    let good = Vectors::new(0);
    let embed = ["--embed", "tiny", "--upstream"];
    let run = shop.index(&[&embed[..], &[&good.address]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    for (vector, expected) in [
        (
            json!([1, 2, 3]),
            "for the model `tiny`: it has 3 numbers, but the vectors of the model have 4",
        ),
        (json!([0, 0, 0, 0]), "is zero"),
    ] {
        let server = Vectors::always(vector);
        let embed = [&embed[..], &[&server.address]].concat();
        shop.write("New.cs", format!("class New {{ }} // {expected}"));
        let host = server.address.replace("http://", "").replace("/v1", "");
        for run in [
            shop.index(&embed),
            shop.search(&[&embed[..], &["orders"]].concat()),
        ] {
            assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
            assert!(
                run.stderr.contains(expected) && run.stderr.contains(&host),
                "{}",
                run.stderr
            );
            let hint = run.stderr.lines().find(|line| line.starts_with("hint: "));
            assert!(
                hint.is_some_and(|hint| hint.contains("--embed")),
                "{}",
                run.stderr
            );
        }
    }
}

#[test]
fn makes_vectors_once_and_searches_by_meaning() {
    let shop = Shop::new("index-vectors");
    for number in 0..80 {
        shop.write(
            &format!("docs/{number}.md"),
            format!("# Page {number}\nNothing of that kind.\n"),
        );
    }
    // The second batch fails, but the first one stays stored.
    let server = Vectors::new(2);
    let embed = ["--embed", "tiny", "--upstream", &server.address];
    let failed = shop.index(&embed);
    assert_eq!(failed.code, 2);
    assert!(
        failed.stderr.contains("answered 400: not now"),
        "{}",
        failed.stderr
    );
    let rest = shop.index(&[&embed, &["--json"][..]].concat()).json();
    let all = rest["nodes"].as_u64().expect("there are some");
    assert_eq!(rest["vectors_made"].as_u64(), Some(all - 64), "{rest}");
    let calls = server.calls.load(Ordering::Relaxed);
    let again = shop.index(&[&embed, &["--json"][..]].concat()).json();
    assert_eq!(
        (&again["vectors_made"], server.calls.load(Ordering::Relaxed)),
        (&json!(0), calls)
    );

    let semantic = [&embed, &["--type", "semantic", "--json", "table"][..]].concat();
    let found = shop.search(&semantic).json();
    let first = &found["hits"][0];
    assert_eq!(
        (&first["path"], &first["semantic_rank"]),
        (&json!("orders.sql"), &json!(1)),
        "{found}"
    );
    let hybrid = [&embed, &["--json", "note"][..]].concat();
    let found = shop.search(&hybrid).json();
    let first = &found["hits"][0];
    assert!(
        first["keyword_rank"].is_number() && first["semantic_rank"].is_number(),
        "{found}"
    );
}
