//! Goes on with an answer that is no document.
//!
//! Nothing in a plain text tells whether it is whole: the provider must say that it was cut off.
//! Nor does anything prove a seam: what comes back is joined where it repeats enough of the end,
//! and else put after it.

use overlock_budget::{Extras, plan};

use crate::arriving::ArrivingAnswer;
use crate::backend::Usage;
use crate::complete::{CallEnd, Drive, DriveError, Observe, Obstacle};
use crate::prompt::{FittedCall, PromptError, first_call, text_call};

/// How many characters of the end the model is asked to repeat.
const ASKED: usize = 200;

/// So many bytes of an answer may be a repetition.
pub(crate) const LONGEST_REPETITION: usize = 1000;

/// A repetition of fewer characters may be a coincidence.
const LEAST_REPETITION: usize = 16;

/// A text that was cut off, and how far it has come.
#[derive(Clone, Debug)]
pub struct TextContinuation {
    text: String,
    is_cut: bool,
    iterations: u32,
    usage: Usage,
    options: TextOptions,
}

/// How long a text is gone on with.
#[derive(Clone, Copy, Debug)]
pub struct TextOptions {
    /// How often the model is asked, the first time included.
    pub max_iterations: u32,
    /// How many tokens all answers may have together.
    pub max_output_tokens: u64,
}

impl TextContinuation {
    /// A text of so many tokens that its provider says was cut off.
    pub fn new(text: String, tokens: u64, options: TextOptions) -> Self {
        Self {
            text,
            is_cut: true,
            iterations: 1,
            usage: Usage {
                input: 0,
                output: tokens,
                cached: 0,
            },
            options,
        }
    }

    /// The text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the provider says that there is more of it.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// How often the model has been asked.
    pub fn iterations(&self) -> u32 {
        self.iterations
    }

    /// How many tokens all answers had together.
    pub fn output_tokens(&self) -> u64 {
        self.usage.output
    }

    /// The end of the text, which the model is asked to repeat.
    pub(crate) fn overlap(&self) -> &str {
        let start = self.text.char_indices().rev().nth(ASKED - 1);
        &self.text[start.map_or(0, |(at, _)| at)..]
    }

    fn may_go_on(&self) -> bool {
        let TextOptions {
            max_iterations,
            max_output_tokens,
        } = self.options;
        self.is_cut && self.iterations < max_iterations && self.usage.output < max_output_tokens
    }
}

/// Makes the caller's own call, and gives what came of it: a text, whole or cut off.
pub async fn first_text(
    drive: &Drive<'_>,
    options: TextOptions,
    observer: &mut dyn Observe,
) -> Result<(TextContinuation, CallEnd), Obstacle> {
    let FittedCall { call, plan } =
        first_call(drive.request, drive.counter, drive.plan).map_err(Obstacle::Window)?;
    let most_bytes = drive.most_bytes(&plan);
    let (collected, _) = drive.listen(call, most_bytes, None, observer).await;
    let is_stopped = collected.broken.is_some() || drive.is_late();
    if let Some(error) = collected.broken.filter(|_| collected.text.is_empty()) {
        return Err(Obstacle::Backend(error));
    }
    let usage = collected.end.usage;
    let tokens = usage.map_or_else(
        || drive.counter.tokens().count(&collected.text),
        |usage| usage.output,
    );
    let mut run = TextContinuation::new(collected.text, tokens, options);
    run.is_cut = is_cut(collected.end.finish.as_deref(), is_stopped);
    Ok((run, collected.end))
}

/// Whether an answer was cut off, as far as the provider says.
fn is_cut(finish: Option<&str>, is_stopped: bool) -> bool {
    finish == Some("length") || finish.is_none() && is_stopped
}

/// Asks until the provider does not say any more that the text was cut off, or until a limit.
///
/// What is certain of it is told to `observer` as it comes, if the drive is live; so is every call
/// when it has ended.
pub async fn complete_text(
    run: &mut TextContinuation,
    drive: &Drive<'_>,
    observer: &mut dyn ObserveText,
) -> Result<Option<Obstacle>, DriveError> {
    while run.may_go_on() && !drive.is_late() {
        let FittedCall { call, plan } = match text_call(run, drive.request, |request| {
            plan(request, &Extras::default(), drive.counter, drive.plan)
        }) {
            Ok(fitted) => fitted,
            Err(error @ PromptError::Window(_)) => return Ok(Some(Obstacle::Window(error))),
            Err(error @ PromptError::Request(_)) => return Err(DriveError::Prompt(error)),
        };
        observer.calling();
        let arriving = drive.live.then(|| ArrivingAnswer::of_text(&run.text));
        let most_bytes = drive.most_bytes(&plan);
        let (collected, told) = drive.listen(call, most_bytes, arriving, observer).await;
        // What stopped before its end was cut, whatever the provider had said by then.
        let is_stopped = collected.broken.is_some() || drive.is_late();
        if let Some(error) = collected.broken.filter(|_| collected.text.is_empty()) {
            return Ok(Some(Obstacle::Backend(error)));
        }
        let news = &collected.text[repeated_len(&run.text, &collected.text)..];
        let usage = collected.end.usage.unwrap_or_else(|| Usage {
            input: plan.input_token_count,
            output: drive.counter.tokens().count(&collected.text),
            cached: 0,
        });
        run.iterations += 1;
        run.usage.output = run.usage.output.saturating_add(usage.output);
        run.is_cut = is_cut(collected.end.finish.as_deref(), is_stopped);
        observer.called(usage, &collected.end);
        if let Some(rest) = news
            .get(told..)
            .filter(|rest| drive.live && !rest.is_empty())
        {
            observer.certain(rest).await;
        }
        if news.is_empty() {
            break;
        }
        run.text.push_str(news);
    }
    Ok(None)
}

/// Hears what happens while a text is gone on with.
pub trait ObserveText: Observe {
    /// A call is about to be made.
    fn calling(&mut self) {}

    /// A call has ended, and took this.
    fn called(&mut self, usage: Usage, end: &CallEnd) {
        let _ = (usage, end);
    }
}

/// How many bytes an answer has first that a text ends with, if they are too many to be so by
/// chance.
pub(crate) fn repeated_len(text: &str, answer: &str) -> usize {
    let most = LONGEST_REPETITION.min(text.len()).min(answer.len());
    let is_repeated = |len: &usize| {
        answer.is_char_boundary(*len) && text.as_bytes().ends_with(&answer.as_bytes()[..*len])
    };
    let len = (1..=most).rev().find(is_repeated).unwrap_or_default();
    // Of a text that is short itself all of it was asked for.
    let is_all = len > 0 && len == text.len();
    if is_all || answer[..len].chars().nth(LEAST_REPETITION - 1).is_some() {
        len
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repetition_is_found_if_it_is_long_enough() {
        let text = "It was a dark and stormy night; the rain fell in torrents";
        let check = |answer: &str, repeated: &str| {
            assert_eq!(&answer[..repeated_len(text, answer)], repeated);
        };
        check(
            "the rain fell in torrents, except",
            "the rain fell in torrents",
        );
        check("torrents, except", "");
        check(", except at occasional intervals", "");
        check("", "");
        check(text, text);
        assert_eq!(repeated_len("Hello wor", "Hello world."), 9);
        assert_eq!(repeated_len("Hello wor", "world."), 0);
        assert_eq!(repeated_len("", "Hello"), 0);
    }
}
