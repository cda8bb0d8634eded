//! Whole answers from language models.
//!
//! A model's long answer arrives in pieces. A [`Continuation`] says what to ask next, joins what
//! comes back, and knows when to stop; what the caller gets is one whole document, or the best
//! valid part of it with an honest word why.
//!
//! ```
//! use overlock_model::{Answer, Continuation, ContinuationOptions, Outcome};
//!
//! let mut run = Continuation::new(ContinuationOptions::default());
//! let ask = run.next().expect("nothing has been asked yet");
//! let answer = Answer::new(br#"{"title": "Bees", "rows": [1, 2"#, 12);
//! run.answered(&ask, &answer)?;
//! assert_eq!(run.outcome(), None);
//!
//! let ask = run.next().expect("the answer was cut");
//! let rest = format!("{}, 3]}}", ask.overlap);
//! run.answered(&ask, &Answer::new(rest.as_bytes(), 12))?;
//! assert_eq!(run.outcome(), Some(&Outcome::Complete));
//! assert_eq!(run.text(), r#"{"title": "Bees", "rows": [1, 2, 3]}"#);
//! # Ok::<(), overlock_model::AnswerError>(())
//! ```

// From a request to a document.
mod arriving;
mod complete;
mod correct;

// What to ask, and when to stop.
mod continuation;
mod marker;
mod progress;
mod prompt;
mod sizing;
mod strategy_history;
mod text;
mod way;

// What one of many is asked.
mod room;

// Who is asked.
mod backend;
pub mod testing;

pub use arriving::{ArrivingAnswer, HELD_BACK};
pub use backend::{
    Anthropic, Backend, BackendError, Call, Discover, Discovery, Embeddings, Event, Events,
    Finding, Half, Halves, Http, HttpsClient, LearntWindow, OpenAi, Phase, Prefill, PrefillStyle,
    Product, ReadEvent, RefusedSize, Retried, Retry, RetryPolicy, Retrying, ServedModel, Server,
    ServerInfo, SseEvent, SseReader, Timeouts, TooLongEvent, Usage, bearer_headers, below,
    https_client,
};
pub use complete::{CallEnd, Drive, DriveError, Observe, Obstacle, after_echo, complete};
pub use continuation::{
    Answer, AnswerError, Ask, Continuation, ContinuationOptions, Failure, Outcome, Progress,
    Reason, ResumeError, Step, StepEnd, StepResult, Wants,
};
pub use correct::correct;
pub use marker::Marker;
pub use progress::{Kpi, KpiPathError, MeasuredKpi, extract_kpi, validate_kpi_progression};
pub use prompt::{FittedCall, PromptError, first_call, next_call};
pub use room::{RoomQuestion, Said, age_in_days, persona_options, remembered_since};
pub use strategy_history::{StrategyHistory, StrategyResults};
pub use text::{ObserveText, TextContinuation, TextOptions, complete_text, first_text};
pub use way::{Way, ways_for};
