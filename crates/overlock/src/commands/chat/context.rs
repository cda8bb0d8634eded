//! `overlock chat context`: builds the context of a persona's next answer.

use std::path::PathBuf;

use clap::Args;
use overlock_budget::{Extras, Memory, MessageCountOptions, PlanOptions, safe_message_count};
use overlock_llm::wire::chat::ChatRequest;
use overlock_llm::{RoomMessage, RoomQuestion, age_in_days, remembered_since};
use overlock_runs::{FitReport, FitRequest, Fitted};
use overlock_store::{Importance, Message, Recall, Store};
use serde::Serialize;
use serde_json::json;

use super::{StorageArgs, parse_name};
use crate::commands::fit::{no_model, refusal};
use crate::commands::models::note_unknown;
use crate::commands::parse_tokens;
use crate::counter::EncodingArgs;
use crate::draw::{self, FAINT, STRONG, WindowDrawing};
use crate::ending::{Ending, Failure};
use crate::input;
use crate::output::{Notes, Results};
use crate::runs;

/// Show the context of a persona's next answer in a room
///
/// Takes the last messages of the room and the important, recent memories of the persona (0.6 or
/// more, from the last 7 days), and fits both into the model's context window together with the
/// answer. A message that does not fit is left out, and so are all older ones; memories stay.
///
/// With --json, `metadata.message_count` is the length of `conversation_history`: it includes
/// messages posted as `system`, but not the prompt given with --system. `fit.message_count` counts
/// no system messages.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock chat context garden --persona helper --model gpt-4o --json\n\n\
    Exit codes: 0 fits; 1 does not fit, or the room is empty; 2 bad usage, or no such store.")]
pub(super) struct Context {
    /// The room
    #[arg(value_name = "ROOM", value_parser = parse_name)]
    room: String,
    /// The persona that answers; its own messages count as answers of the model
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    persona: String,
    /// The model [default: `budget.model` of the configuration]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Load at most this many messages [default: as many as the window can hold]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), allow_negative_numbers = true)]
    max_messages: Option<u64>,
    /// Tokens for the answer [default: `budget.max_tokens`, else 3000]
    #[arg(long, value_name = "N", value_parser = parse_tokens, allow_negative_numbers = true)]
    max_tokens: Option<u64>,
    /// A file with the system prompt
    #[arg(long, value_name = "FILE")]
    system: Option<PathBuf>,
    #[command(flatten)]
    encoding: EncodingArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    storage: StorageArgs,
}

/// The output of `--json`.
#[derive(Serialize)]
struct ContextReport<'a> {
    room: &'a str,
    persona: &'a str,
    model: &'a str,
    /// The largest number of messages that was loaded.
    safe_message_count: u64,
    conversation_history: Vec<HistoryEntry<'a>>,
    /// The most important first.
    private_memories: Vec<MemoryEntry<'a>>,
    metadata: Metadata,
    /// The calculation and the fitted request.
    fit: FitReport<'a>,
}

#[derive(Serialize)]
struct HistoryEntry<'a> {
    sender: &'a str,
    role: &'static str,
    text: &'a str,
    at: u64,
}

#[derive(Serialize)]
struct MemoryEntry<'a> {
    text: &'a str,
    importance: f64,
    age_days: f64,
}

#[derive(Serialize)]
struct Metadata {
    /// The length of `conversation_history`, including messages posted as `system`. The plan counts
    /// those separately, since they are never trimmed.
    message_count: usize,
    memory_count: usize,
    adjusted_max_tokens: u64,
    input_token_count: u64,
}

impl Context {
    pub(super) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let config = self.storage.config.load(&mut notes)?;
        let model = self.model.as_deref().or(config.budget.model.as_deref());
        let model = model.ok_or_else(no_model)?;
        let models = config.models();
        let found = models.find(model);
        note_unknown(model, &models, &mut notes);
        let (counter, files) = self.encoding.counter_for(model, &found, &config)?;
        counter.note(&mut notes);
        let template = counter.template(files)?;
        let chat = counter.of_requests(&found, template.as_ref());
        let mut options = config.budget.plan_options(&found.model);
        options.requested = self.max_tokens.unwrap_or(options.requested);
        let system = self.system.as_deref().map(input::text).transpose()?;
        let system_tokens = system.as_deref().map(|text| counter.tokens.count(text));
        let default = MessageCountOptions::default();
        let most = safe_message_count(&MessageCountOptions {
            max_messages: self.max_messages,
            window: Some(options.window),
            requested: options.requested,
            system: system_tokens.unwrap_or(default.system),
        });
        let Some(store) = runs::open_to_read(self.storage.store.as_deref(), &config)? else {
            return self.empty_room(&mut notes);
        };
        let last = u32::try_from(most).unwrap_or(u32::MAX);
        let messages = store.messages(&self.room, last).map_err(failed)?;
        if messages.is_empty() {
            return self.empty_room(&mut notes);
        }
        let recalled = self.recalled(&*store, &options)?;
        let memories: Vec<Memory<'_>> = recalled
            .iter()
            .map(|(text, importance, age_days)| Memory {
                text,
                importance: *importance,
                age_days: *age_days,
            })
            .collect();
        let room_messages: Vec<RoomMessage<'_>> = messages.iter().map(room_message).collect();
        let question = RoomQuestion {
            persona: &self.persona,
            model,
            system: system.as_deref(),
            messages: &room_messages,
            max_tokens: options.requested,
        };
        let request = question.request();
        let text = request.to_string();
        let request = ChatRequest::from_value(request).map_err(|source| Failure::Request {
            name: format!("the room `{}`", self.room),
            source,
        })?;
        let extras = Extras {
            memories: &memories,
            ..Extras::default()
        };
        let asked = FitRequest {
            model,
            found: &found,
            request: &request,
            extras: &extras,
            text: &text,
            counter: &chat,
        };
        let before = usize::from(system.is_some());
        match asked.fit(options) {
            Ok(Ok(fitted)) => self.print(&fitted, most, &messages, before, &memories),
            Ok(Err(refused)) => refusal::fail(self.json, *refused, &mut notes),
            Err(error) => Err(refusal::contradiction(&error)),
        }
    }

    fn empty_room(&self, notes: &mut Notes) -> Result<Ending, Failure> {
        if self.json {
            let (room, persona) = (&self.room, &self.persona);
            let empty = json!({ "room": room, "persona": persona, "conversation_history": [] });
            Results::new().object(&empty)?;
        }
        notes.note(format!("the room `{}` is empty", self.room));
        notes.hint("post a message with `overlock chat post ROOM TEXT --as NAME`");
        Ok(Ending::Partial)
    }

    /// The memories that the plan may choose from: text, importance, age in days.
    fn recalled(
        &self,
        store: &dyn Store,
        options: &PlanOptions,
    ) -> Result<Vec<(String, f64, f64)>, Failure> {
        let now = runs::now();
        let importance = options.memory.importance.clamp(0.0, 1.0);
        let recall = Recall {
            persona: &self.persona,
            importance: Importance::new(importance).unwrap_or_default(),
            since: remembered_since(&options.memory, now),
            limit: u32::try_from(options.memory.count).unwrap_or(u32::MAX),
        };
        let memories = store.memories(&recall).map_err(failed)?;
        let recalled = memories.into_iter().map(|memory| {
            let age_days = age_in_days(memory.at, now);
            (memory.text, memory.importance.get(), age_days)
        });
        Ok(recalled.collect())
    }

    fn print(
        &self,
        fitted: &Fitted<'_>,
        most: u64,
        messages: &[Message],
        before: usize,
        memories: &[Memory<'_>],
    ) -> Result<Ending, Failure> {
        let plan = &fitted.plan;
        let places = plan.kept_messages.iter();
        let kept = places.filter_map(|place| messages.get(place.checked_sub(before)?));
        let kept: Vec<&Message> = kept.collect();
        // The store returns the most important first, and the least important are dropped first.
        let memories = &memories[..plan.memory_count.min(memories.len())];
        let mut results = Results::new();
        if self.json {
            let history = kept.iter().map(|message| HistoryEntry {
                sender: &message.sender,
                role: room_message(message).role_for(&self.persona).name(),
                text: &message.text,
                at: message.at,
            });
            let memories = memories.iter().map(|memory| MemoryEntry {
                text: memory.text,
                importance: memory.importance,
                age_days: memory.age_days,
            });
            results.object(&ContextReport {
                room: &self.room,
                persona: &self.persona,
                model: fitted.asked.model,
                safe_message_count: most,
                conversation_history: history.collect(),
                private_memories: memories.collect(),
                metadata: Metadata {
                    message_count: kept.len(),
                    memory_count: plan.memory_count,
                    adjusted_max_tokens: plan.adjusted_max_tokens,
                    input_token_count: plan.input_token_count,
                },
                fit: fitted.report(),
            })?;
            return Ok(Ending::Done);
        }
        for memory in memories {
            let text = draw::plain(memory.text);
            results.line(&format!(
                "{FAINT}remembers ({:.2}){FAINT:#}  {text}",
                memory.importance
            ))?;
        }
        for message in kept {
            let (sender, text) = (draw::plain(&message.sender), draw::plain(&message.text));
            results.line(&format!("{STRONG}{sender}{STRONG:#}  {text}"))?;
        }
        results.line("")?;
        for line in WindowDrawing::of(fitted.asked.model, plan).lines(draw::terminal_width()) {
            results.line(&line)?;
        }
        Ok(Ending::Done)
    }
}

fn room_message(message: &Message) -> RoomMessage<'_> {
    RoomMessage {
        sender: &message.sender,
        role: &message.role,
        text: &message.text,
    }
}

fn failed(source: overlock_store::StoreError) -> Failure {
    Failure::Store { source }
}
