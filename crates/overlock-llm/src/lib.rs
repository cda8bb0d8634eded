//! Complete answers from language models.
//!
//! A model may need several calls for a long answer. A [`Continuation`] decides what to ask next,
//! joins the answers, and decides when to stop. The caller gets the complete document, or its
//! longest valid part and the reason why it is incomplete.
//!
//! ```
//! use overlock_llm::{ModelOutput, Continuation, ContinuationOptions, Outcome};
//!
//! let mut run = Continuation::new(ContinuationOptions::default());
//! let ask = run.next().expect("the first call");
//! let answer = ModelOutput::new(br#"{"title": "Bees", "rows": [1, 2"#, 12);
//! run.answered(&ask, &answer)?;
//! assert_eq!(run.outcome(), None);
//!
//! let ask = run.next().expect("the answer was cut");
//! let rest = format!("{}, 3]}}", ask.overlap);
//! run.answered(&ask, &ModelOutput::new(rest.as_bytes(), 12))?;
//! assert_eq!(run.outcome(), Some(&Outcome::Complete));
//! assert_eq!(run.text(), r#"{"title": "Bees", "rows": [1, 2, 3]}"#);
//! # Ok::<(), overlock_llm::AnswerError>(())
//! ```
//!
//! By default this crate needs no network, runtime or clock: the caller provides a [`Backend`]. The
//! feature `http` adds the HTTP client and server discovery; `testing` adds a scripted model and a
//! server for it.

// From a request to a document.
mod complete;
mod correct;
mod run;
mod streaming_answer;

// Wire protocols and the assembly of streams.
pub mod assembler;
pub mod wire;

// The next call, and when to stop.
mod continuation;
mod marker;
mod progress;
mod prompt;
mod sizing;
mod strategy;
mod strategy_history;
mod text;

// Chat rooms.
mod room;

// The upstream.
mod backend;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "testing")]
pub mod testing;

pub use backend::{
    Backend, BackendError, Call, Event, Events, Finding, HighSurrogate, Phase, Prefill,
    PrefillStyle, ReadEvent, RefusedSize, Retried, Retry, RetryPolicy, SseEvent, SseReader,
    SurrogateBuffer, TooLongEvent, Usage,
};
pub use complete::{
    CallEnd, Deadline, Drive, DriveError, Observe, StopCause, after_echo, complete, complete_text,
};
pub use continuation::{
    AnswerError, Continuation, ContinuationOptions, Failure, ModelOutput, NextCall, Outcome,
    Progress, Reason, ResumeError, Step, StepEnd, StepResult, Wants,
};
pub use correct::correct;
#[cfg(feature = "http")]
pub use http::{
    Anthropic, Body, BodyError, CallFailure, Discover, Discovery, Embeddings, ErrorResponse, Http,
    LearntWindow, OpenAi, Peer, Product, Response, Retrying, ServedModel, Server, ServerInfo,
    Timeouts, bearer_headers, below, full_body, retried,
};
pub use marker::Marker;
pub use progress::{Kpi, KpiPathError, MeasuredKpi, extract_kpi, validate_kpi_progression};
pub use prompt::{FittedCall, PromptError, first_call, next_call};
pub use room::{RoomMessage, RoomQuestion, age_in_days, name_for_api, remembered_since};
pub use run::Run;
pub use strategy::{Strategy, strategies_for_prefill};
pub use strategy_history::{StrategyHistory, StrategyResults};
pub use streaming_answer::StreamingAnswer;
pub use text::{TextContinuation, TextOptions, first_text};
