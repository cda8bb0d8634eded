//! Options of a plan: the model, the priorities of parts, and additions to the prompt.

use crate::models::{DEFAULT_WINDOW, Model, Sharing};
use crate::negotiate::{ANSWER_FLOOR, NegotiateOptions};

/// A part of a prompt, or the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The system messages.
    SystemPrompt,
    /// The last message of the user.
    LastUserMessage,
    /// The other messages of the open turn: tool calls, their results, a begun answer.
    OpenTurn,
    /// The tokens before the answer, and the schema of the answer.
    Frame,
    /// The tools.
    Tools,
    /// All other messages.
    History,
    /// Retrieved context.
    Context,
    /// Memories of earlier conversations.
    Memories,
    /// What old tool results take beyond their marks, in the history and in the open turn.
    Results,
    /// The answer.
    Completion,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::SystemPrompt,
        Self::LastUserMessage,
        Self::OpenTurn,
        Self::Frame,
        Self::Tools,
        Self::History,
        Self::Context,
        Self::Memories,
        Self::Results,
        Self::Completion,
    ];

    /// The name in messages and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::SystemPrompt => "system prompt",
            Self::LastUserMessage => "last user message",
            Self::OpenTurn => "open turn",
            Self::Frame => "frame",
            Self::Tools => "tools",
            Self::History => "history",
            Self::Context => "retrieved context",
            Self::Memories => "memories",
            Self::Results => "old tool results",
            Self::Completion => "completion",
        }
    }
}

/// What happens to messages that do not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trim {
    /// No message is dropped or shortened; only the answer and additions shrink.
    Off,
    /// The oldest messages are dropped.
    #[default]
    Oldest,
    /// The oldest messages are replaced by a summary with one line for each.
    Summary,
}

impl Trim {
    /// The name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Oldest => "oldest",
            Self::Summary => "summary",
        }
    }

    /// The setting with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Off, Self::Oldest, Self::Summary];
        all.into_iter().find(|trim| trim.name() == name)
    }
}

/// The maker of a model, which decides the names of some parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Maker {
    /// `OpenAI`.
    OpenAi,
    /// Another or unknown maker.
    #[default]
    Other,
}

/// When a part shrinks, and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartOptions {
    /// A part with a higher priority shrinks later.
    pub priority: i32,
    /// Its weight when it shrinks together with others of its priority; 0 is all or nothing.
    pub shrink: u32,
    /// The tokens it keeps while others of any priority shrink, as far as whole pieces fit.
    pub min: u64,
    /// The maximum number of tokens.
    pub max: Option<u64>,
    /// Whether all of it must stay, regardless of its bounds.
    pub required: bool,
}

impl PartOptions {
    pub(super) const fn new(priority: i32, shrink: u32) -> Self {
        Self {
            priority,
            shrink,
            min: 0,
            max: None,
            required: false,
        }
    }
}

/// Which memories to include.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryOptions {
    /// The minimum importance.
    pub importance: f64,
    /// The maximum age in days.
    pub days: f64,
    /// The maximum number.
    pub count: usize,
}

/// How tool results are shortened.
///
/// A mark is one line in place of an old result. Marks are set before anything but the answer
/// shrinks, and in batches, so that the beginning of the prompt changes rarely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultOptions {
    /// The results of this many last exchanges never become marks. An exchange is a message with
    /// tool calls and their results.
    pub keep: usize,
    /// How many exchanges get their marks together, counted from the first of the conversation.
    pub batch: usize,
    /// Results become marks if the input would have more tokens than this, even if they fit.
    pub trigger: Option<u64>,
    /// The tokens to which a result of the open turn is truncated at most, if nothing else helps.
    pub floor: u64,
}

impl Default for ResultOptions {
    fn default() -> Self {
        Self {
            keep: 3,
            batch: 4,
            trigger: None,
            floor: 200,
        }
    }
}

/// Options of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanOptions {
    /// The tokens of the model's window.
    pub window: u64,
    /// Whether the answer takes its room from the window.
    pub sharing: Sharing,
    /// The maximum tokens of an answer of the model.
    pub answer_cap: Option<u64>,
    /// The length of the answer if the request has none.
    pub requested: u64,
    /// The minimum useful length of an answer; less if less is requested.
    pub answer_floor: u64,
    /// The maker of the model.
    pub maker: Maker,
    /// Let the answer take all available tokens.
    pub grow: bool,
    /// The tokens that stay free; by default, they depend on how exact the counts are.
    pub margin: Option<u64>,
    /// What happens to messages that do not fit.
    pub trim: Trim,
    /// The maximum tokens of a summary of dropped messages.
    pub summary_tokens: u64,
    /// Drop this many messages at a time, so that the beginning of the prompt stays the same for
    /// several turns and stays in the provider's cache; 1 keeps as many as fit.
    pub drop_step: usize,
    /// Truncate the first context block that does not fit, instead of leaving it out.
    pub truncate_context: bool,
    /// Fill gaps that are too small for the next piece with smaller pieces of lower priority, so that
    /// a part gives way only to what fits in its place. Without this, everything after the first
    /// piece that does not fit is dropped, and a larger window keeps everything a smaller one keeps.
    pub fill_gaps: bool,
    /// How tool results are shortened; not at all with [`Trim::Off`].
    pub results: ResultOptions,
    /// Which memories are included.
    pub memory: MemoryOptions,
    /// When tools shrink.
    pub tools: PartOptions,
    /// When earlier messages shrink.
    pub history: PartOptions,
    /// When retrieved context shrinks.
    pub context: PartOptions,
    /// When memories shrink.
    pub memories: PartOptions,
    /// When the answer shrinks: down to its floor, regardless of its `min`. It is never dropped.
    pub completion: PartOptions,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            window: DEFAULT_WINDOW,
            sharing: Sharing::Shared,
            answer_cap: None,
            requested: NegotiateOptions::default().requested,
            answer_floor: ANSWER_FLOOR,
            maker: Maker::default(),
            grow: false,
            margin: None,
            trim: Trim::default(),
            summary_tokens: 500,
            drop_step: 1,
            truncate_context: false,
            fill_gaps: true,
            results: ResultOptions::default(),
            memory: MemoryOptions {
                importance: 0.6,
                days: 7.0,
                count: 10,
            },
            tools: PartOptions::new(70, 1),
            history: PartOptions::new(60, 3),
            context: PartOptions::new(50, 2),
            memories: PartOptions {
                max: Some(3000),
                ..PartOptions::new(40, 2)
            },
            completion: PartOptions::new(30, 1),
        }
    }
}

impl PlanOptions {
    /// The default options for a model.
    pub fn for_model(model: &Model) -> Self {
        Self::default().of_model(model)
    }

    /// These options with the limits of a model.
    #[must_use]
    pub fn of_model(self, model: &Model) -> Self {
        let maker = match model.tokenizer.as_deref() {
            Some("cl100k_base" | "o200k_base") => Maker::OpenAi,
            _ => Maker::Other,
        };
        Self {
            window: model.window,
            sharing: model.sharing,
            answer_cap: model.answer_cap,
            maker,
            ..self
        }
    }
}

/// Additions to the prompt.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras<'a> {
    /// Memories, in any order.
    pub memories: &'a [Memory<'a>],
    /// Retrieved context, the best first.
    pub context: &'a [ContextBlock<'a>],
    /// The importance of each tool, in their order; without it, earlier tools are more important.
    pub tool_importance: &'a [f64],
}

/// A memory of an earlier conversation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory<'a> {
    /// Its text.
    pub text: &'a str,
    /// Its importance, from 0 to 1.
    pub importance: f64,
    /// Its age in days.
    pub age_days: f64,
}

/// A block of retrieved context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextBlock<'a> {
    /// Its source.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}
