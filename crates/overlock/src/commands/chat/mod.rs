//! `overlock chat`: messages in rooms, and memories of personas.

mod context;

use clap::{Args, Subcommand};
use overlock_store::{Access, Importance, NewMemory, NewMessage};
use serde_json::json;

use crate::config::ConfigSource;
use crate::ending::{Ending, Failure};
use crate::input::Source;
use crate::output::{Notes, Results};
use crate::runs;

/// Store conversations and memories, and build the context of an answer
///
/// Rooms have messages, personas have memories. The context for a persona's next answer is made of
/// the last messages of a room and the persona's memories, and fits the context window of a model.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock chat post garden 'Which rake is right for moss?' --as ana\n  \
    $ overlock chat remember helper 'Ana is tall' --importance 0.8\n  \
    $ overlock chat context garden --persona helper --model gpt-4o")]
pub(crate) struct Chat {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Post(Post),
    Remember(Remember),
    Context(context::Context),
}

/// Post a message to a room
///
/// The room is created if it does not exist.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  $ overlock chat post garden 'Which rake is right for moss?' --as ana"
)]
struct Post {
    /// The room
    #[arg(value_name = "ROOM", value_parser = parse_name)]
    room: String,
    /// The message; `-` reads standard input
    #[arg(value_name = "TEXT")]
    text: String,
    /// The sender
    #[arg(long = "as", value_name = "NAME", value_parser = parse_name)]
    sender: String,
    /// The role of the sender; in a persona's context its own messages always count as answers
    #[arg(long, value_name = "ROLE", default_value = "user", value_parser = ["user", "assistant", "system"])]
    role: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    storage: StorageArgs,
}

/// Add a memory to a persona
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  $ overlock chat remember helper 'Ana is tall' --importance 0.8"
)]
struct Remember {
    /// The persona
    #[arg(value_name = "PERSONA", value_parser = parse_name)]
    persona: String,
    /// The memory; `-` reads standard input
    #[arg(value_name = "TEXT")]
    text: String,
    /// Its importance, from 0 to 1
    #[arg(long, value_name = "NUMBER", value_parser = parse_importance, allow_negative_numbers = true)]
    importance: Importance,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    storage: StorageArgs,
}

#[derive(Args, Debug)]
struct StorageArgs {
    /// The store, `sqlite://FILE` or `postgres://…` [default: `store.url`, else runs.db in the
    /// user's data folder]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    #[command(flatten)]
    config: ConfigSource,
}

impl Chat {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        match self.command {
            Command::Post(post) => post.run(),
            Command::Remember(remember) => remember.run(),
            Command::Context(context) => context.run(),
        }
    }
}

impl Post {
    fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let config = self.storage.config.load(&mut notes)?;
        let text = read_text(self.text, &mut notes)?;
        let store = runs::open(self.storage.store.as_deref(), &config, Access::Create)?;
        let message = NewMessage {
            sender: &self.sender,
            role: &self.role,
            text: &text,
            at: runs::now(),
        };
        let posted = store.post(&self.room, &[message]);
        posted.map_err(|source| Failure::Store { source })?;
        if self.json {
            let NewMessage {
                sender, role, at, ..
            } = message;
            let posted = json!({ "room": self.room, "sender": sender, "role": role, "at": at });
            Results::new().object(&posted)?;
        }
        Ok(Ending::Done)
    }
}

impl Remember {
    fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let config = self.storage.config.load(&mut notes)?;
        let text = read_text(self.text, &mut notes)?;
        let store = runs::open(self.storage.store.as_deref(), &config, Access::Create)?;
        let memory = NewMemory {
            persona: &self.persona,
            text: &text,
            importance: self.importance,
            at: runs::now(),
        };
        let added = store.remember(&memory);
        added.map_err(|source| Failure::Store { source })?;
        if self.json {
            let NewMemory {
                persona,
                importance,
                at,
                ..
            } = memory;
            let importance = importance.get();
            let added = json!({ "persona": persona, "importance": importance, "at": at });
            Results::new().object(&added)?;
        }
        Ok(Ending::Done)
    }
}

/// The given text, or standard input for `-`.
fn read_text(text: String, notes: &mut Notes) -> Result<String, Failure> {
    let text = if text == "-" {
        let input = Source::from(None).read_text(notes)?;
        input.trim_end_matches(['\r', '\n']).to_owned()
    } else {
        text
    };
    let is_visible = |character: char| !character.is_whitespace() && !character.is_control();
    if !text.chars().any(is_visible) {
        return Err(Failure::Usage {
            message: "the text is empty".into(),
            hint: "give a text with at least one visible character".into(),
        });
    }
    Ok(text)
}

pub(super) const NAME_RULE: &str = "must have a visible character and no line break";

fn parse_name(argument: &str) -> Result<String, String> {
    let name = argument.trim();
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(NAME_RULE.to_owned());
    }
    Ok(name.to_owned())
}

fn parse_importance(argument: &str) -> Result<Importance, String> {
    let number: f64 = argument
        .parse()
        .map_err(|_| "must be a number from 0 to 1, as in 0.8".to_owned())?;
    Importance::new(number).map_err(|error| error.to_string())
}
