//! Claude Code, whose calls are cut in the middle: the file is written at once, whole.

use std::path::Path;
use std::process::{Command, Stdio};

use overlock_gateway::Settings;
use overlock_llm::testing::ScriptedServer;
use overlock_llm::wire::Protocol;
use serde_json::json;

use super::{asks_for_rest, base, cutting, folder, run_blocking};
use crate::door::{Door, serve};

/// Claude Code calls its tool `Write` with a long file, and every answer is cut.
#[tokio::test]
#[ignore = "needs clients from npm: run cargo xtask test clients"]
async fn claude_code_writes_the_whole_file_in_one_turn() {
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("notes.txt");
    let notes: Vec<String> = (0..150)
        .map(|line| format!("{line}: a “note” \\ of the day.\n"))
        .collect();
    let notes = notes.concat();
    let call = json!({ "file_path": file, "content": notes }).to_string();
    let start = || ScriptedServer::start_calling("Write", cutting(&call));
    let direct = start().await.expect("a server");
    claude_code(home.path(), direct.base()).await;
    assert!(!file.exists(), "the calls are cut");
    let upstream = start().await.expect("a server");
    let set = |settings: &mut Settings| settings.upstream.api = Protocol::Messages;
    let address = serve(&upstream.base(), set).await;
    let door = Door { address, upstream };
    let said = claude_code(home.path(), base(&door)).await;
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    let asked = door.upstream.asked();
    let by_client = asked
        .iter()
        .filter(|request| !asks_for_rest(request))
        .count();
    println!(
        "Claude Code: {} calls, {by_client} of them by the client",
        asked.len()
    );
    assert_eq!(written, notes, "{said}");
    // One for the call, and one for its result.
    assert_eq!(by_client, 2, "{said}");
    assert!(asked.len() > 3);
}

/// Has Claude Code write the notes. Returns what it prints.
async fn claude_code(home: &Path, base: String) -> String {
    let program = "node/node_modules/@anthropic-ai/claude-code-linux-x64/claude";
    let mut claude = Command::new(folder().join(program));
    claude
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("ANTHROPIC_BASE_URL", base.trim_end_matches("/v1"))
        .env("ANTHROPIC_API_KEY", "sk-test-0123456789")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("DISABLE_AUTOUPDATER", "1")
        .current_dir(home)
        .stdin(Stdio::null())
        .args([
            "-p",
            "Write the notes to notes.txt",
            "--allowedTools",
            "Write",
        ])
        .args([
            "--permission-mode",
            "acceptEdits",
            "--model",
            "claude-sonnet-4-5",
        ]);
    let output = run_blocking(move || claude.output().expect("Claude Code starts")).await;
    let said = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&said).into_owned()
}
