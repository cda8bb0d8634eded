//! Context budgets for language models.
//!
//! The input and the answer share the context window of a model. This crate knows the windows of
//! models, counts tokens, negotiates the length of an answer, and decides which parts of a prompt
//! shrink or are dropped if not everything fits.
//!
//! It is pure computation: no I/O, no clock, no tasks, no panic on any input.
//!
//! ```
//! use overlock_budget::{FlexOptions, How, Item, Models, flex};
//!
//! let models = Models::default();
//! let found = models.find("openai/gpt-4-0613");
//! assert_eq!((found.model.window, found.how), (8192, How::Alias));
//!
//! let items = [
//!     Item { min: 900, ..Item::required("system prompt", 900) },
//!     Item { priority: 60, shrink: 3, ..Item::droppable("history", 9000) },
//!     Item { min: 500, max: Some(3000), priority: 30, shrink: 1, ..Item::required("answer", 3000) },
//! ];
//! let solution = flex(&items, &FlexOptions { window: found.model.window, gap: 50 })?;
//! let given: Vec<_> = solution.shares.iter().map(|share| share.given).collect();
//! assert_eq!(given, [900, 6742, 500]);
//! # Ok::<(), overlock_budget::FlexError>(())
//! ```

// Model limits.
mod models;

// Counting texts and requests.
mod chat;
mod count;

// Dividing the window.
mod flex;
mod history;
mod negotiate;
mod plan;

pub use chat::{
    ChatCount, ChatCounter, ChatRole, Content, CountChats, Function, MessageKind, Outline, Request,
    Scale, SentMessage, Tool, ToolChoice,
};
#[cfg(feature = "tokenizer-files")]
pub use chat::{ChatTemplate, ChatTemplateError, RenderError, RenderOptions, Rendered};
pub use count::{Approximate, Cached, CountTokens, Encoding, Keep, Provenance, StandIn};
#[cfg(feature = "tokenizer-files")]
pub use count::{TokenizerFile, TokenizerFileError};
pub use flex::{Blocker, Change, FlexError, FlexOptions, Help, Item, Share, Solution, flex};
pub use history::{
    CountMessages, Message, Role, Summary, TrimError, Trimmed, Units, summarise, trim,
};
pub use models::{
    Cost, DEFAULT_WINDOW, Found, How, Model, Models, Price, PriceError, Prices, Sharing,
    TableError, WindowSource,
};
pub use negotiate::{
    ANSWER_FLOOR, Adjustment, History, MessageCountOptions, NegotiateOptions, Negotiation,
    TOKENS_PER_MESSAGE, adjusted_max_tokens, safe_message_count,
};
pub use plan::{
    ContextBlock, Extras, Insertion, Maker, Margin, Memory, MemoryOptions, Part, PartOptions, Plan,
    PlanError, PlanOptions, PlannedPart, ResultOptions, ShortenedResult, Trim, least_parts, plan,
    plan_least,
};
