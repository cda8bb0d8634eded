//! A pipeline file, read and checked.

use std::fs;
use std::path::{Path, PathBuf};

use overlock_pipeline::{Checked, Pipeline, Problem, Prompts, ReadOptions, Severity};
use serde::Serialize;
use serde_json::{Map, Value};

use super::measures::ConfiguredMeasures;
use crate::config::Config;
use crate::ending::{Ending, Failure};
use crate::input;
use crate::output::{Notes, Results};

const LONGEST_PROMPT: u64 = 4 << 20;

/// A pipeline file with its problems.
pub(super) struct PipelineFile {
    /// Its name in messages.
    pub(super) name: String,
    pub(super) text: String,
    pub(super) checked: Checked,
}

/// The output of `--json`.
#[derive(Serialize)]
struct CheckReport<'a> {
    file: &'a str,
    ok: bool,
    problems: &'a [Problem],
}

impl PipelineFile {
    /// Reads a file. `settings` override its own.
    pub(super) fn read(
        path: &Path,
        settings: &Map<String, Value>,
        config: &Config,
        notes: &mut Notes,
    ) -> Result<Self, Failure> {
        let read = input::read(path, notes)?;
        let text = String::from_utf8(read.bytes).map_err(|error| Failure::Usage {
            message: format!(
                "{} is not UTF-8: invalid byte at offset {}",
                read.name,
                error.utf8_error().valid_up_to()
            ),
            hint: "save the file as UTF-8".into(),
        })?;
        // Without quotes, as compilers write it, so that editors recognise the location.
        let name = match path.to_str() {
            Some("-") => "standard input".to_owned(),
            _ => path.display().to_string(),
        };
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        let prompt = |directory: &str, key: &str| read_prompt(&folder, directory, key);
        Ok(Self::check(name, text, settings, config, &prompt))
    }

    /// Checks a recorded text with its recorded prompts.
    pub(super) fn recorded(
        name: &str,
        text: &str,
        prompts: &Prompts,
        settings: &Map<String, Value>,
        config: &Config,
    ) -> Self {
        let prompt = |_: &str, key: &str| {
            let prompt = prompts.get(key).cloned();
            prompt.ok_or_else(|| "not recorded".to_owned())
        };
        Self::check(name.to_owned(), text.to_owned(), settings, config, &prompt)
    }

    fn check(
        name: String,
        text: String,
        settings: &Map<String, Value>,
        config: &Config,
        prompt: &dyn Fn(&str, &str) -> Result<String, String>,
    ) -> Self {
        let known = ConfiguredMeasures::new(config);
        let options = ReadOptions {
            settings,
            model: config.budget.model.as_deref(),
            prompt,
            measures: &known,
        };
        let checked = overlock_pipeline::read(&name, &text, &options);
        Self {
            name,
            text,
            checked,
        }
    }

    /// Prints all problems. Returns the pipeline if it is valid.
    pub(super) fn pipeline(&self, notes: &mut Notes) -> Option<&Pipeline> {
        self.note_problems(notes);
        self.checked.pipeline.as_ref()
    }

    pub(super) fn note_problems(&self, notes: &mut Notes) {
        for problem in &self.checked.problems {
            notes.block(&problem.render_coloured(&self.name, &self.text));
        }
    }

    pub(super) fn print_json(&self) -> Result<(), Failure> {
        Results::new().object(&CheckReport {
            file: &self.name,
            ok: self.is_valid(),
            problems: &self.checked.problems,
        })
    }

    fn is_valid(&self) -> bool {
        self.checked.pipeline.is_some()
    }

    /// The number of errors and of warnings.
    pub(super) fn counts(&self) -> (usize, usize) {
        let problems = &self.checked.problems;
        let errors = problems
            .iter()
            .filter(|problem| problem.severity == Severity::Error)
            .count();
        (errors, problems.len() - errors)
    }

    pub(super) fn ending(&self) -> Ending {
        Ending::done_if(self.is_valid())
    }
}

/// The prompt of a key, from a folder next to the pipeline file.
fn read_prompt(folder: &Path, directory: &str, key: &str) -> Result<String, String> {
    let path: PathBuf = folder.join(directory).join(format!("{key}.txt"));
    let shown = path.display();
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("there is no file `{shown}`"),
        _ => format!("`{shown}` cannot be read: {error}"),
    };
    let metadata = fs::metadata(&path).map_err(failed)?;
    if !metadata.is_file() {
        return Err(format!("`{shown}` is not a file"));
    }
    if metadata.len() > LONGEST_PROMPT {
        return Err(format!("`{shown}` is larger than 4 MiB"));
    }
    let bytes = fs::read(&path).map_err(failed)?;
    String::from_utf8(bytes).map_err(|_| format!("`{shown}` is not UTF-8"))
}
