//! What a plan goes by: the model, who gives way to whom, and what else wants into the prompt.

use crate::models::{DEFAULT_WINDOW, Model, Sharing};
use crate::negotiate::{ANSWER_FLOOR, NegotiateOptions};

/// A part of a prompt, or the answer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The messages of whoever runs the conversation.
    SystemPrompt,
    /// The last message of the user.
    Question,
    /// The other messages of the open turn: tool calls, their results, a begun answer.
    OpenTurn,
    /// What precedes the answer, and the schema that it is held to.
    Frame,
    /// The tools that may be called.
    Tools,
    /// All other messages.
    History,
    /// What was looked up for the question.
    Context,
    /// What is remembered of earlier conversations.
    Memories,
    /// The answer.
    Completion,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::SystemPrompt,
        Self::Question,
        Self::OpenTurn,
        Self::Frame,
        Self::Tools,
        Self::History,
        Self::Context,
        Self::Memories,
        Self::Completion,
    ];

    /// The name in messages and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::SystemPrompt => "system prompt",
            Self::Question => "last user message",
            Self::OpenTurn => "open turn",
            Self::Frame => "frame",
            Self::Tools => "tools",
            Self::History => "history",
            Self::Context => "retrieved context",
            Self::Memories => "memories",
            Self::Completion => "completion",
        }
    }
}

/// What happens to messages that do not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trim {
    /// Nothing of the request goes; only the answer and what is added give way.
    Off,
    /// The oldest messages go.
    #[default]
    Oldest,
    /// The oldest messages go, and one line tells of each.
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

/// Who made a model, as far as a protocol names parameters by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Maker {
    /// `OpenAI`.
    OpenAi,
    /// Another one, or nobody knows.
    #[default]
    Other,
}

/// When a part gives way, and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartOptions {
    /// A higher one gives way later.
    pub priority: i32,
    /// The weight with which it gives way to others of its priority; 0 is all or nothing.
    pub shrink: u32,
    /// What it keeps while others of any priority give way, as far as whole pieces fit into it.
    pub min: u64,
    /// What it takes at most.
    pub max: Option<u64>,
    /// Whether all of it must stay, whatever its bounds.
    pub required: bool,
}

impl PartOptions {
    const fn new(priority: i32, shrink: u32) -> Self {
        Self {
            priority,
            shrink,
            min: 0,
            max: None,
            required: false,
        }
    }
}

/// Which memories are worth telling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryOptions {
    /// How important one must be at least.
    pub importance: f64,
    /// How old one may be.
    pub days: f64,
    /// How many are told at most.
    pub count: usize,
}

/// What a plan goes by.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanOptions {
    /// The tokens of the model's window.
    pub window: u64,
    /// Whether the answer takes its room from the window.
    pub sharing: Sharing,
    /// How many tokens the model says at most.
    pub answer_cap: Option<u64>,
    /// How long the answer should be if the request does not say so.
    pub requested: u64,
    /// What an answer needs to be of use; less if less is requested.
    pub answer_floor: u64,
    /// Who made the model.
    pub maker: Maker,
    /// Let the answer take all the room there is.
    pub grow: bool,
    /// What is left free, unless that follows from what the count rests on.
    pub margin: Option<u64>,
    /// What happens to messages that do not fit.
    pub trim: Trim,
    /// What a summary of dropped messages takes at most.
    pub summary_tokens: u64,
    /// Drop messages so many at a time, so that the beginning of the prompt stays the same for
    /// several turns and a provider's cache still knows it; 1 keeps as many as fit.
    pub drop_step: usize,
    /// Cut the first block of context that does not fit, instead of leaving it out.
    pub truncate_context: bool,
    /// Let smaller things that matter less into room that is too small for the next in line. More
    /// is used that way, but a larger window may then lose what a smaller one kept.
    pub fill_gaps: bool,
    /// Which memories are told.
    pub memory: MemoryOptions,
    /// When tools give way.
    pub tools: PartOptions,
    /// When earlier messages give way.
    pub history: PartOptions,
    /// When retrieved context gives way.
    pub context: PartOptions,
    /// When memories give way.
    pub memories: PartOptions,
    /// When the answer gives way: down to its floor, whatever its `min`, and it is always there.
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
            fill_gaps: false,
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
    /// The usual options for a model.
    pub fn for_model(model: &Model) -> Self {
        Self::default().of_model(model)
    }

    /// The same options with what a model can take.
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

/// What wants into the prompt besides the request itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras<'a> {
    /// What is remembered, in any order.
    pub memories: &'a [Memory<'a>],
    /// What was looked up, the best first.
    pub context: &'a [ContextBlock<'a>],
    /// How important each tool is, in the order of the tools; without it the earlier matters more.
    pub tool_importance: &'a [f64],
}

/// Something that is remembered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory<'a> {
    /// What it says.
    pub text: &'a str,
    /// From 0 to 1.
    pub importance: f64,
    /// How long ago it was made.
    pub age_days: f64,
}

/// Something that was looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextBlock<'a> {
    /// Where it is from.
    pub name: &'a str,
    /// What it says.
    pub text: &'a str,
}
