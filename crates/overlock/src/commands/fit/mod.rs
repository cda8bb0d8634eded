//! `overlock fit`: fits a request into the context window.

mod estimate;
mod extras;
pub(super) mod refusal;
mod request;

use std::path::PathBuf;

use clap::Args;
use overlock_budget::{Model, PlanOptions, Trim};

use super::{choice_parser, parse_tokens};
use crate::config::{Config, ConfigSource, TRIMS};
use crate::counter::EncodingArgs;
use crate::ending::{Ending, Failure};
use crate::output::Notes;

/// Fit a request into the context window of its model
///
/// Reads an OpenAI chat request (messages, tools, `max_tokens`), counts its tokens, drops the oldest
/// turns if necessary, and adjusts the answer length, so that input, answer and margin never exceed
/// the window. The fitted request goes to standard output and the calculation to standard error. On
/// a terminal, or with -o FILE, the calculation goes to standard output instead.
///
/// With --messages N no request is read: N messages are estimated at 250 tokens each, and nothing
/// is trimmed. The answer keeps at least 500 tokens, and the excess is reported.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock fit request.json > fitted.json\n  \
    $ overlock fit --model gpt-3.5-turbo --messages 50 --max-tokens 5000\n\n\
    Exit codes: 0 fits; 1 does not fit; 2 bad usage or unreadable input.")]
pub(crate) struct Fit {
    /// The request; standard input if it is `-` or not given
    #[arg(value_name = "FILE")]
    request: Option<PathBuf>,
    /// The model [default: the model of the request, else `budget.model` of the configuration]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Tokens for the answer [default: as in the request, else `budget.max_tokens`]
    #[arg(long, value_name = "N", value_parser = parse_tokens, allow_negative_numbers = true)]
    max_tokens: Option<u64>,
    /// Tokens left free for inexact counts [default: `budget.margin`, else depends on the counter]
    #[arg(long, value_name = "N", value_parser = parse_tokens, allow_negative_numbers = true)]
    margin: Option<u64>,
    /// Let the answer use all free tokens
    #[arg(long)]
    grow: bool,
    #[command(flatten)]
    encoding: EncodingArgs,
    /// The `tokenizer_config.json` with the chat template [default: in the tokenizer's folder]
    #[arg(long, value_name = "FILE", conflicts_with = "messages")]
    tokenizer_config: Option<PathBuf>,
    /// What to do with a conversation that is too long [default: `budget.trim`, else oldest]
    #[arg(long, value_name = "HOW", conflicts_with = "messages", value_parser = choice_parser(TRIMS, Trim::name))]
    trim: Option<Trim>,
    /// A JSON list of memories to include: objects with text, importance (0 to 1) and `age_days`
    #[arg(long, value_name = "FILE", conflicts_with = "messages")]
    memories: Option<PathBuf>,
    /// A text to put before the last user message; can be repeated, the most important first
    #[arg(long, value_name = "FILE", conflicts_with = "messages")]
    context: Vec<PathBuf>,
    /// Write the fitted request to this file
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["messages", "json"])]
    output: Option<PathBuf>,
    /// Estimate for this many messages instead of reading a request
    #[arg(long, value_name = "N", value_parser = parse_tokens, allow_negative_numbers = true,
          conflicts_with_all = ["request", "encoding", "tokenizer"], help_heading = "Estimate")]
    messages: Option<u64>,
    /// Tokens of the system prompt
    #[arg(long, value_name = "N", value_parser = parse_tokens, allow_negative_numbers = true,
          requires = "messages", help_heading = "Estimate", default_value_t = 500)]
    system_tokens: u64,
    /// Use at most this many of the messages
    #[arg(long, value_name = "N", value_parser = parse_tokens, allow_negative_numbers = true,
          requires = "messages", help_heading = "Estimate")]
    max_messages: Option<u64>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigSource,
}

impl Fit {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let config = self.config.load(&mut notes)?;
        match self.messages {
            Some(messages) => estimate::run(&self, messages, &config, &mut notes),
            None => request::run(&self, &config, &mut notes),
        }
    }

    /// How the window of a model is divided; flags override the configuration.
    fn plan_options(&self, model: &Model, config: &Config) -> PlanOptions {
        let options = config.budget.plan_options(model);
        PlanOptions {
            margin: self.margin.or(options.margin),
            trim: self.trim.unwrap_or(options.trim),
            grow: self.grow || options.grow,
            ..options
        }
    }
}

pub(super) fn no_model() -> Failure {
    Failure::Usage {
        message: "no model given".into(),
        hint: "give one with --model NAME, or set `budget.model` in overlock.toml".into(),
    }
}
