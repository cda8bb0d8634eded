//! `overlock chat`: rooms, what is said in them, and what personas remember.

mod context;

use clap::{Args, Subcommand};
use overlock_store::{Access, Importance, NewMemory, NewMessage};
use serde_json::json;

use crate::config::ConfigSource;
use crate::ending::{Ending, Failure};
use crate::input::Source;
use crate::output::{Notes, Results};
use crate::runs;

/// Keep conversations and memories, and build the context of an answer from them
///
/// Rooms hold messages, personas hold memories. The context for the next answer of a persona takes
/// the last messages of a room and what the persona remembers, and makes them fit the window of a
/// model.
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

/// Say something in a room, which is made if there is none
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  $ overlock chat post garden 'Which rake is right for moss?' --as ana"
)]
struct Post {
    /// The room
    #[arg(value_name = "ROOM", value_parser = parse_name)]
    room: String,
    /// What is said; standard input if it is `-`
    #[arg(value_name = "TEXT")]
    text: String,
    /// Who says it
    #[arg(long = "as", value_name = "NAME", value_parser = parse_name)]
    sender: String,
    /// As what; a persona's own messages are its answers in its own context
    #[arg(long, value_name = "ROLE", default_value = "user", value_parser = ["user", "assistant", "system"])]
    role: String,
    /// Answer with one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

/// Have a persona remember something
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  $ overlock chat remember helper 'Ana is tall' --importance 0.8"
)]
struct Remember {
    /// Who remembers it
    #[arg(value_name = "PERSONA", value_parser = parse_name)]
    persona: String,
    /// What is remembered; standard input if it is `-`
    #[arg(value_name = "TEXT")]
    text: String,
    /// How important it is, from 0 to 1
    #[arg(long, value_name = "NUMBER", value_parser = parse_importance, allow_negative_numbers = true)]
    importance: Importance,
    /// Answer with one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

/// Where conversations and memories are kept.
#[derive(Args, Debug)]
struct Place {
    /// Where it is kept [default: `store.url`, else runs.db in the user's data folder]
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
        let config = self.place.config.load(&mut notes)?;
        let text = said(self.text, &mut notes)?;
        let store = runs::open(self.place.store.as_deref(), &config, Access::Make)?;
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
            let told = json!({ "room": self.room, "sender": sender, "role": role, "at": at });
            Results::new().object(&told)?;
        }
        Ok(Ending::Whole)
    }
}

impl Remember {
    fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let config = self.place.config.load(&mut notes)?;
        let text = said(self.text, &mut notes)?;
        let store = runs::open(self.place.store.as_deref(), &config, Access::Make)?;
        let memory = NewMemory {
            persona: &self.persona,
            text: &text,
            importance: self.importance,
            at: runs::now(),
        };
        let kept = store.remember(&memory);
        kept.map_err(|source| Failure::Store { source })?;
        if self.json {
            let NewMemory {
                persona,
                importance,
                at,
                ..
            } = memory;
            let importance = importance.get();
            let told = json!({ "persona": persona, "importance": importance, "at": at });
            Results::new().object(&told)?;
        }
        Ok(Ending::Whole)
    }
}

/// A text that was given, or the one on standard input.
fn said(text: String, notes: &mut Notes) -> Result<String, Failure> {
    let text = if text == "-" {
        let read = Source::from(None).read_text(notes)?;
        read.trim_end_matches(['\r', '\n']).to_owned()
    } else {
        text
    };
    let can_be_seen = |character: char| !character.is_whitespace() && !character.is_control();
    if !text.chars().any(can_be_seen) {
        return Err(Failure::Usage {
            message: "there is nothing in the text".into(),
            hint: "give a text with at least one character that can be seen".into(),
        });
    }
    Ok(text)
}

fn parse_name(argument: &str) -> Result<String, String> {
    let name = argument.trim();
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err("must have a character that can be seen, and no line break".to_owned());
    }
    Ok(name.to_owned())
}

fn parse_importance(argument: &str) -> Result<Importance, String> {
    let number: f64 = argument
        .parse()
        .map_err(|_| "must be a number from 0 to 1, as in 0.8".to_owned())?;
    Importance::new(number).map_err(|error| error.to_string())
}
