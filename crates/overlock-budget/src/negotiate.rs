//! Negotiates the number of tokens for the answer after the input.
//!
//! This is the documented formula, which trims nothing. It gives the answer a useful minimum even if
//! that does not fit, and reports by how much the window is exceeded. The solver in
//! [`flex`](crate::flex()) never exceeds a window.

/// The minimum useful length of an answer; a smaller request is not raised.
pub const ANSWER_FLOOR: u64 = 500;

/// The tokens of a message in the documented estimate.
pub const TOKENS_PER_MESSAGE: u64 = 250;

/// The size of a conversation, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// Only the number of messages: each counts as [`TOKENS_PER_MESSAGE`].
    Estimated {
        /// How many messages there are.
        messages: u64,
    },
    /// The tokens of the whole conversation, in the form in which it is sent.
    Counted {
        /// How many tokens there are.
        tokens: u64,
    },
}

/// Options of [`adjusted_max_tokens`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegotiateOptions {
    /// The window of the model, which input and answer share.
    pub window: u64,
    /// The maximum length of an answer of the model, if known.
    pub answer_cap: Option<u64>,
    /// How many tokens the caller would like the answer to have.
    pub requested: u64,
    /// The tokens of the system prompt.
    pub system: u64,
    /// Tokens that stay free, because counts may be inexact.
    pub margin: u64,
    /// Let the answer take all available tokens.
    pub grow: bool,
}

impl Default for NegotiateOptions {
    fn default() -> Self {
        Self {
            window: crate::DEFAULT_WINDOW,
            answer_cap: None,
            requested: 3000,
            system: 500,
            margin: 100,
            grow: false,
        }
    }
}

/// How the requested length was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adjustment {
    /// The answer gets the requested length.
    Granted,
    /// The answer gets more, because it may grow.
    Grown,
    /// The model supports only a shorter answer.
    Capped,
    /// Fewer tokens than requested were available.
    Reduced,
    /// Fewer tokens than the minimum were available; the answer gets the minimum nevertheless.
    Floor,
}

impl Adjustment {
    /// The name in messages and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Grown => "grown",
            Self::Capped => "capped",
            Self::Reduced => "reduced",
            Self::Floor => "floor",
        }
    }
}

/// The result, with every figure that led to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiation {
    /// The tokens of the conversation and the system prompt.
    pub input: u64,
    /// The tokens available for the answer; negative if the input alone is too large.
    pub available: i64,
    /// The tokens the answer may have.
    pub adjusted: u64,
    /// How the requested length was changed.
    pub adjustment: Adjustment,
    /// By how many tokens input, answer and margin exceed the window.
    pub overflow: u64,
}

impl Negotiation {
    /// Whether input, answer and margin are within the window.
    pub fn fits(&self) -> bool {
        self.overflow == 0
    }
}

/// Adjusts the requested length of the answer to the tokens available after the input.
///
/// ```
/// use overlock_budget::{Adjustment, History, NegotiateOptions, adjusted_max_tokens};
///
/// let options = NegotiateOptions { window: 16_385, requested: 5000, ..Default::default() };
/// let negotiation = adjusted_max_tokens(History::Estimated { messages: 50 }, &options);
/// assert_eq!(negotiation.adjusted, 3285);
/// assert_eq!(negotiation.adjustment, Adjustment::Reduced);
/// assert!(negotiation.fits());
/// ```
pub fn adjusted_max_tokens(history: History, options: &NegotiateOptions) -> Negotiation {
    let history = match history {
        History::Estimated { messages } => i128::from(messages) * i128::from(TOKENS_PER_MESSAGE),
        History::Counted { tokens } => i128::from(tokens),
    };
    // 128 bits hold every sum of these, so nothing wraps before the end.
    let input = history + i128::from(options.system);
    let available = i128::from(options.window) - input - i128::from(options.margin);

    let cap = options.answer_cap.unwrap_or(u64::MAX);
    let wanted = if options.grow {
        cap
    } else {
        options.requested.min(cap)
    };
    let floor = ANSWER_FLOOR.min(options.requested).min(cap);
    let adjusted = i128::from(wanted).min(available).max(i128::from(floor));
    let overflow = (adjusted - available).max(0);

    let requested = i128::from(options.requested);
    let adjustment = if overflow > 0 {
        Adjustment::Floor
    } else if adjusted > requested {
        Adjustment::Grown
    } else if adjusted == requested {
        Adjustment::Granted
    } else if adjusted == i128::from(cap) {
        Adjustment::Capped
    } else {
        Adjustment::Reduced
    };
    Negotiation {
        input: unsigned(input),
        available: signed(available),
        adjusted: unsigned(adjusted),
        adjustment,
        overflow: unsigned(overflow),
    }
}

/// Options of [`safe_message_count`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageCountOptions {
    /// The limit of the caller, which is returned unchanged.
    pub max_messages: Option<u64>,
    /// The window of the model, if a model is named.
    pub window: Option<u64>,
    /// How many tokens the caller would like the answer to have.
    pub requested: u64,
    /// The tokens of the system prompt.
    pub system: u64,
}

impl Default for MessageCountOptions {
    fn default() -> Self {
        let NegotiateOptions {
            requested, system, ..
        } = NegotiateOptions::default();
        Self {
            max_messages: None,
            window: None,
            requested,
            system,
        }
    }
}

/// How many of the newest messages to load before any of them is counted.
///
/// Four fifths of the window after request and system prompt, at [`TOKENS_PER_MESSAGE`] each; at
/// least 5 and at most 50, and 10 without a model.
pub fn safe_message_count(options: &MessageCountOptions) -> u64 {
    if let Some(max_messages) = options.max_messages {
        return max_messages;
    }
    let Some(window) = options.window else {
        return 10;
    };
    let room = i128::from(window) - i128::from(options.requested) - i128::from(options.system);
    let messages = (room * 4).div_euclid(5 * i128::from(TOKENS_PER_MESSAGE));
    unsigned(messages.clamp(5, 50))
}

fn unsigned(tokens: i128) -> u64 {
    u64::try_from(tokens.max(0)).unwrap_or(u64::MAX)
}

fn signed(tokens: i128) -> i64 {
    let limit = if tokens < 0 { i64::MIN } else { i64::MAX };
    i64::try_from(tokens).unwrap_or(limit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Models;

    fn options(model: &str, requested: u64) -> NegotiateOptions {
        NegotiateOptions {
            window: Models::default().find(model).model.window,
            requested,
            ..NegotiateOptions::default()
        }
    }

    /// Input, available, adjusted, adjustment and overflow of the documented estimate.
    #[track_caller]
    fn check(
        model: &str,
        messages: u64,
        requested: u64,
        expected: (u64, i64, u64, Adjustment, u64),
    ) {
        let result =
            adjusted_max_tokens(History::Estimated { messages }, &options(model, requested));
        let Negotiation {
            input,
            available,
            adjusted,
            adjustment,
            overflow,
        } = result;
        assert_eq!(
            (input, available, adjusted, adjustment, overflow),
            expected,
            "{messages} messages to {model}"
        );
        assert_eq!(result.fits(), overflow == 0);
    }

    #[test]
    fn grants_a_request_where_there_is_plenty_of_room() {
        check(
            "llama3.2:3b",
            5,
            3000,
            (1750, 126_150, 3000, Adjustment::Granted, 0),
        );
        check(
            "llama3.2:3b",
            50,
            3000,
            (13_000, 114_900, 3000, Adjustment::Granted, 0),
        );
    }

    #[test]
    fn reduces_a_request_to_the_available_tokens() {
        check(
            "gpt-3.5-turbo",
            50,
            5000,
            (13_000, 3285, 3285, Adjustment::Reduced, 0),
        );
    }

    #[test]
    fn keeps_the_minimum_and_reports_what_does_not_fit() {
        check(
            "deepseek-coder:6.7b",
            60,
            3000,
            (15_500, 400, 500, Adjustment::Floor, 100),
        );
        check(
            "deepseek-coder:6.7b",
            100,
            3000,
            (25_500, -9600, 500, Adjustment::Floor, 10_100),
        );
    }

    #[test]
    fn a_minimum_that_just_fits_is_a_reduction() {
        let options = NegotiateOptions {
            window: 1600,
            ..NegotiateOptions::default()
        };
        let result = adjusted_max_tokens(History::Counted { tokens: 500 }, &options);
        assert_eq!(
            (result.adjusted, result.adjustment),
            (500, Adjustment::Reduced)
        );
        assert!(result.fits());
    }

    #[test]
    fn does_not_raise_a_small_request() {
        check(
            "llama3.2:3b",
            5,
            200,
            (1750, 126_150, 200, Adjustment::Granted, 0),
        );
        check(
            "deepseek-coder:6.7b",
            60,
            0,
            (15_500, 400, 0, Adjustment::Granted, 0),
        );
        check(
            "deepseek-coder:6.7b",
            62,
            200,
            (16_000, -100, 200, Adjustment::Floor, 300),
        );
    }

    #[test]
    fn an_unknown_model_has_the_default_window() {
        check(
            "nobody-has-heard-of-it",
            5,
            3000,
            (1750, 6342, 3000, Adjustment::Granted, 0),
        );
    }

    #[test]
    fn an_answer_never_exceeds_the_limit_of_the_model() {
        let options = NegotiateOptions {
            answer_cap: Some(4096),
            ..options("gpt-4-turbo", 5000)
        };
        let history = History::Estimated { messages: 5 };
        let capped = adjusted_max_tokens(history, &options);
        assert_eq!(
            (capped.adjusted, capped.adjustment),
            (4096, Adjustment::Capped)
        );

        let growing = NegotiateOptions {
            grow: true,
            requested: 100,
            ..options
        };
        let grown = adjusted_max_tokens(history, &growing);
        assert_eq!(
            (grown.adjusted, grown.adjustment),
            (4096, Adjustment::Grown)
        );
    }

    #[test]
    fn an_answer_that_may_grow_takes_all_the_room() {
        let options = NegotiateOptions {
            grow: true,
            ..options("llama3.2:3b", 3000)
        };
        let grown = adjusted_max_tokens(History::Estimated { messages: 5 }, &options);
        assert_eq!(
            (grown.adjusted, grown.adjustment),
            (126_150, Adjustment::Grown)
        );
    }

    #[test]
    fn uses_a_counted_history_unchanged() {
        let options = options("gpt-4", 3000);
        let result = adjusted_max_tokens(History::Counted { tokens: 5000 }, &options);
        assert_eq!((result.input, result.available), (5500, 2592));
        assert_eq!(result.adjusted, 2592);
    }

    #[track_caller]
    fn check_messages(options: MessageCountOptions, expected: u64) {
        assert_eq!(safe_message_count(&options), expected, "{options:?}");
    }

    #[test]
    fn loads_as_many_messages_as_are_safe() {
        let window = |window| MessageCountOptions {
            window: Some(window),
            ..MessageCountOptions::default()
        };
        check_messages(MessageCountOptions::default(), 10);
        check_messages(window(8192), 15);
        check_messages(window(128_000), 50);
        check_messages(window(1000), 5);
        let requested = MessageCountOptions {
            requested: 5000,
            ..window(16_385)
        };
        check_messages(requested, 34);
        let limited = MessageCountOptions {
            max_messages: Some(50),
            ..requested
        };
        check_messages(limited, 50);
    }

    /// Loading and negotiating one after the other, as a whole conversation goes through both.
    #[test]
    fn a_large_conversation_is_reduced_only_if_all_of_it_is_loaded() {
        let model = options("gpt-3.5-turbo", 5000);
        let count = |max_messages| {
            let options = MessageCountOptions {
                max_messages,
                window: Some(model.window),
                requested: model.requested,
                system: model.system,
            };
            History::Estimated {
                messages: safe_message_count(&options).min(50),
            }
        };
        let all = adjusted_max_tokens(count(Some(50)), &model);
        assert!(all.adjusted < 5000 && all.input > 10_000);
        let safe = adjusted_max_tokens(count(None), &model);
        assert_eq!((safe.input, safe.adjusted), (9000, 5000));
        assert_eq!(safe.adjustment, Adjustment::Granted);
    }

    proptest! {
        #[test]
        fn nothing_wraps_and_what_fits_is_within_the_window(
            window: u64, tokens: u64, requested: u64, system: u64, margin: u64,
            answer_cap: Option<u64>, grow: bool, estimated: bool,
        ) {
            let options = NegotiateOptions { window, answer_cap, requested, system, margin, grow };
            let history = if estimated {
                History::Estimated { messages: tokens }
            } else {
                History::Counted { tokens }
            };
            let result = adjusted_max_tokens(history, &options);
            let sum = u128::from(result.input) + u128::from(result.adjusted) + u128::from(margin);
            prop_assert_eq!(result.fits(), sum <= u128::from(window));
            prop_assert_eq!(result.fits(), result.adjustment != Adjustment::Floor);
            prop_assert!(result.adjusted <= answer_cap.unwrap_or(u64::MAX));
            prop_assert!(grow || result.adjusted <= requested);
        }
    }
}
