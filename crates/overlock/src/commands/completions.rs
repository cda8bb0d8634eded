//! `overlock completions`: prints shell completions.

use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::{Shell, generate};

use super::Cli;
use crate::ending::{Ending, Failure};
use crate::output::Results;

/// Print shell completions
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock completions bash > ~/.local/share/bash-completion/completions/overlock")]
pub(crate) struct Completions {
    /// The shell
    shell: KnownShell,
}

/// The shells that are supported.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum KnownShell {
    Bash,
    Zsh,
    Fish,
}

impl Completions {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let shell = match self.shell {
            KnownShell::Bash => Shell::Bash,
            KnownShell::Zsh => Shell::Zsh,
            KnownShell::Fish => Shell::Fish,
        };
        // Into memory first: the generator panics when it cannot write.
        let mut script = Vec::new();
        generate(shell, &mut Cli::command(), "overlock", &mut script);
        Results::new().document(&[&script])?;
        Ok(Ending::Done)
    }
}
