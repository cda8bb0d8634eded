//! Turns the vocabularies of a build dependency into tables that need no work at run time.
//!
//! Nothing fetched is committed: `tiktoken-rs` carries the vocabularies, `regex-syntax` the classes
//! of characters, in the version that tiktoken itself reads them with.

mod characters;
mod perfect;
mod vocabulary;

#[path = "../src/count/encoding/hash.rs"]
mod hash;

use std::path::PathBuf;
use std::{env, fs};

use vocabulary::Vocabulary;

fn main() {
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=src/count/encoding/hash.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets the folder"));
    let write = |name: &str, bytes: &[u8]| {
        fs::write(out.join(name), bytes).expect("the folder of the build can be written to");
    };

    let classes = characters::classes();
    write("classes.blocks", &classes.blocks);
    write("classes.index", &classes.index);

    let r50k = Vocabulary::read(tiktoken_rs::r50k_base(), 0..50_256);
    let p50k = Vocabulary::read(tiktoken_rs::p50k_base(), (0..50_256).chain(50_257..50_281));
    // One table serves both encodings; the counter relies on this prefix to distinguish them.
    assert!(p50k.tokens.starts_with(&r50k.tokens));
    assert!(
        !r50k
            .tokens
            .iter()
            .any(|(bytes, _)| bytes.starts_with(b"  "))
    );
    let added = &p50k.tokens[r50k.tokens.len()..];
    assert!(
        added
            .iter()
            .all(|(bytes, _)| bytes.len() > 1 && bytes.iter().all(|byte| *byte == b' '))
    );

    let vocabularies = [
        ("p50k", p50k),
        (
            "cl100k",
            Vocabulary::read(tiktoken_rs::cl100k_base(), 0..100_256),
        ),
        (
            "o200k",
            Vocabulary::read(tiktoken_rs::o200k_base(), 0..199_998),
        ),
    ];
    for (name, vocabulary) in vocabularies {
        for (part, bytes) in vocabulary.tables() {
            write(&format!("{name}.{part}"), &bytes);
        }
    }
}
