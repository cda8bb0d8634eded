//! Tells a story: each call, each seam, each cut, the document growing, and the end.
//!
//! On a terminal there are short pauses, so that it can be followed; elsewhere it is
//! there at once.

use std::thread;
use std::time::Duration;

use overlock_llm::Outcome;
use overlock_llm::testing::Behaviour;

use super::{Call, MODEL, Measures, Stop, Story};
use crate::draw::{
    self, CUT, FAINT, Join, NEW, Position, STRONG, SeamDrawing, WindowDrawing, grouped,
    grouped_tokens,
};
use crate::ending::Failure;
use crate::output::Results;

/// How long all pauses may take together.
const PATIENCE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(900);

pub(crate) struct Teller {
    results: Results,
    width: usize,
    pause: Duration,
    hurried: bool,
}

impl Teller {
    /// `fast`: without pauses, even on a terminal.
    pub(crate) fn new(fast: bool) -> Self {
        let results = Results::new();
        Self {
            width: draw::terminal_width(),
            pause: Duration::ZERO,
            hurried: fast || !results.is_terminal(),
            results,
        }
    }

    pub(crate) fn tell(mut self, story: &Story<'_>) -> Result<(), Failure> {
        let steps = u32::try_from(story.calls.len() * 2 + 2).unwrap_or(u32::MAX);
        self.pause = (PATIENCE / steps).min(LONGEST_PAUSE);
        self.open(story)?;
        for (index, call) in story.calls.iter().enumerate() {
            self.call(index + 1, call, story)?;
            if self.results.is_closed() {
                return Ok(());
            }
        }
        self.document(story)?;
        self.verdict(story)
    }

    fn open(&mut self, story: &Story<'_>) -> Result<(), Failure> {
        let measures = Measures::of(story.document);
        self.line(&format!("{STRONG}overlock demo{STRONG:#}"))?;
        let window = story.calls.first().map_or(0, |call| call.plan.window);
        self.words(&format!(
            "A model writes {} bytes of JSON ({} values) and is cut off again and again. It takes {} \
             tokens at a time, plays a script behind a server on this machine, and is asked as any \
             other would be. Overlock finds each cut, asks for the rest, and stitches the pieces \
             together.",
            grouped(measures.bytes),
            grouped(measures.values),
            grouped_tokens(window)
        ))?;
        self.words(&format!(
            "seed {}; other cuts: --seed N; your own document: --document FILE",
            story.seed
        ))?;
        self.breathe();
        Ok(())
    }

    fn call(&mut self, number: usize, call: &Call, story: &Story<'_>) -> Result<(), Failure> {
        let told = match number {
            1 => "begins to write",
            _ => told(call.behaviour),
        };
        self.title(&format!("call {number}: the model {told}"))?;
        self.question(call)?;
        self.answer(call)?;
        self.breathe();
        let arrived = &story.result.as_bytes()[..call.base_len.min(story.result.len())];
        if number > 1 || matches!(call.join, Join::Refused { .. }) {
            let drawing = SeamDrawing::new(arrived, call.text.as_bytes(), &call.join);
            for line in drawing.lines("seam", self.width) {
                self.line(&line)?;
            }
        }
        if let Join::Made { .. } = call.join {
            self.line(&progress(call.base_len, story.document.len(), self.width))?;
            if let Some(stop) = &call.stop {
                self.stop(stop, arrived)?;
            }
        }
        self.breathe();
        Ok(())
    }

    fn title(&mut self, title: &str) -> Result<(), Failure> {
        let title = draw::head(title.as_bytes(), self.width.saturating_sub(4));
        let rule = "─".repeat(self.width.saturating_sub(title.width + 4));
        self.line("")?;
        self.line(&format!(
            "── {STRONG}{}{STRONG:#} {FAINT}{rule}{FAINT:#}",
            title.text
        ))
    }

    /// Sentences, in as many lines as they take.
    fn words(&mut self, words: &str) -> Result<(), Failure> {
        for line in draw::wrap_words(words, self.width) {
            self.line(&line)?;
        }
        Ok(())
    }

    /// What is asked, and how it fits the window.
    fn question(&mut self, call: &Call) -> Result<(), Failure> {
        let overlap = call.ask.overlap.chars().count();
        let asked = match call.ask.way {
            None => "for the document".to_owned(),
            Some(_) => format!(
                "for the rest, beginning with the last {} characters",
                grouped(overlap)
            ),
        };
        self.line(&format!("{FAINT}ask{FAINT:#}   {asked}"))?;
        let drawing = WindowDrawing::of(MODEL, &call.plan);
        let lines = drawing.bar_lines(self.width.saturating_sub(LABEL));
        for (index, line) in lines.iter().enumerate() {
            let label = if index == 0 { "room" } else { "" };
            self.line(&format!("{FAINT}{label:<LABEL$}{FAINT:#}{line}"))?;
        }
        Ok(())
    }

    /// The beginning of what the model said, as it came.
    fn answer(&mut self, call: &Call) -> Result<(), Failure> {
        const SHOWN: usize = 4;
        let text = call.text.as_str();
        let room = self.width.saturating_sub(8);
        let mut label = "says";
        for line in text.lines().take(SHOWN) {
            let drawn = draw::head(line.as_bytes(), room).text;
            self.line(&format!("{FAINT}{label:<5} ┆{FAINT:#} {drawn}"))?;
            label = "";
        }
        let ended = if call.cut_off {
            format!("{CUT}cut off{CUT:#}")
        } else {
            "done".into()
        };
        let more = if text.lines().nth(SHOWN).is_some() {
            "… "
        } else {
            ""
        };
        self.line(&format!(
            "{FAINT}{label:<5} ┆{FAINT:#} {more}({} bytes, {ended})",
            grouped(text.len())
        ))
    }

    fn stop(&mut self, stop: &Stop, arrived: &[u8]) -> Result<(), Failure> {
        let cut = &stop.cut;
        self.line(&format!(
            "{CUT}cut{CUT:#}   {} at {STRONG}{}{STRONG:#}",
            cut.place.phrase(),
            draw::path(&cut.path, self.width / 2)
        ))?;
        let position = Position::of(arrived, arrived.len());
        for line in draw::cut_lines(
            arrived,
            arrived.len(),
            position.line,
            self.width.saturating_sub(6),
        ) {
            self.line(&format!("      {line}"))?;
        }
        self.line(&format!("{FAINT}open{FAINT:#}  {}", stop.open))?;
        if let Some(delivered) = &stop.delivered {
            let line = draw::head(delivered.as_bytes(), self.width.saturating_sub(6)).text;
            self.line(&format!(
                "{FAINT}last{FAINT:#}  {}",
                line.trim_start_matches("- ")
            ))?;
        }
        Ok(())
    }

    /// The document as it came out, each line with the number of the call that brought it.
    fn document(&mut self, story: &Story<'_>) -> Result<(), Failure> {
        const MOST_LINES: usize = 400;
        const MOST_BYTES: usize = 1 << 16;
        const SHOWN: usize = 12;
        self.title("the document, each line with the call that brought it")?;
        let lines = lines_with_calls(story);
        let pause = PATIENCE / 5 / u32::try_from(lines.len()).unwrap_or(u32::MAX).max(1);
        let whole = lines.len() <= MOST_LINES && story.result.len() <= MOST_BYTES;
        for (index, (calls, line)) in lines.iter().enumerate() {
            if whole {
                self.wrapped(calls, line)?;
                if !self.hurried {
                    thread::sleep(pause);
                }
                continue;
            }
            if index == SHOWN && lines.len() > SHOWN * 2 {
                let left_out = lines.len() - SHOWN * 2;
                self.line(&format!(
                    "{FAINT}{:>7} │ … {} lines more …{FAINT:#}",
                    "",
                    grouped(left_out)
                ))?;
            }
            if index < SHOWN || index + SHOWN >= lines.len() {
                self.shortened(calls, line)?;
            }
        }
        Ok(())
    }

    /// A line of a large document: its beginning, and its end if it is long.
    fn shortened(&mut self, calls: &str, line: &str) -> Result<(), Failure> {
        let room = self.width.saturating_sub(10);
        let beginning = draw::head(line.as_bytes(), room).text;
        self.line(&format!("{FAINT}{calls:>7} │{FAINT:#} {beginning}"))?;
        if beginning.ends_with('…') {
            let end = draw::tail(line.as_bytes(), room).text;
            self.line(&format!("{FAINT}{:>7} │{FAINT:#} {end}", ""))?;
        }
        Ok(())
    }

    /// A line of the document, broken to the width of a terminal and whole elsewhere.
    fn wrapped(&mut self, calls: &str, line: &str) -> Result<(), Failure> {
        let room = if self.results.is_terminal() {
            self.width.saturating_sub(10)
        } else {
            usize::MAX
        };
        let mut label = calls;
        let mut drawn = String::new();
        let mut width = 0;
        for cell in draw::line_cells(line.as_bytes()) {
            if width + cell.width > room {
                self.line(&format!("{FAINT}{label:>7} │{FAINT:#} {drawn}"))?;
                label = "";
                drawn.clear();
                width = 0;
            }
            drawn.push_str(&cell.text);
            width += cell.width;
        }
        self.line(&format!("{FAINT}{label:>7} │{FAINT:#} {drawn}"))
    }

    fn verdict(&mut self, story: &Story<'_>) -> Result<(), Failure> {
        let refused = |call: &&Call| matches!(call.join, Join::Refused { .. });
        let refused = story.calls.iter().filter(refused).count();
        // The first answer that was taken had nothing to be joined to.
        let seams = (story.calls.len() - refused).saturating_sub(1);
        self.line("")?;
        let refused = match refused {
            0 => "no answer refused".into(),
            1 => "1 answer refused and asked for again".into(),
            _ => format!("{refused} answers refused and asked for again"),
        };
        self.words(&format!(
            "{} calls, {seams} seams, {refused}",
            story.calls.len()
        ))?;
        if let Outcome::Partial { reason, .. } | Outcome::Failed { reason } = &story.outcome {
            self.line(&format!("{CUT}not whole{CUT:#}: {reason}"))?;
        }
        let (original, result) = (Measures::of(story.document), Measures::of(&story.result));
        if story.is_identical() {
            let figures = format!(
                "({} bytes, {} values, cksum {})",
                grouped(result.bytes),
                grouped(result.values),
                result.checksum
            );
            let verdict = "identical to the original: ";
            let fits = verdict.len() + "yes ".len() + figures.len() <= self.width;
            let verdict = format!("{STRONG}{verdict}{NEW}yes{NEW:#}{STRONG:#}");
            if fits {
                return self.line(&format!("{verdict} {figures}"));
            }
            self.line(&verdict)?;
            return self.line(&figures);
        }
        self.line(&format!(
            "{STRONG}identical to the original: {CUT}no{CUT:#}{STRONG:#}"
        ))?;
        for (name, measures) in [("original", original), ("result", result)] {
            self.line(&format!(
                "  {name:<8}  {} bytes, {} values, cksum {}",
                grouped(measures.bytes),
                grouped(measures.values),
                measures.checksum
            ))?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str) -> Result<(), Failure> {
        self.results.line(line)
    }

    fn breathe(&self) {
        if !self.hurried && !self.results.is_closed() {
            thread::sleep(self.pause);
        }
    }
}

/// The room for the name of a line.
const LABEL: usize = 6;

/// What a model does, as the title of its answer.
fn told(behaviour: Behaviour) -> &'static str {
    match behaviour {
        Behaviour::AsAsked => "repeats the end as asked, and goes on",
        Behaviour::Fenced => "wraps it in a fence and small talk",
        Behaviour::Thinking => "thinks aloud first",
        Behaviour::TellsProgress => "says first how far it is",
        Behaviour::RestartsItem => "starts the whole item again",
        Behaviour::RestartsDocument => "starts the whole document again",
        Behaviour::OtherSpaces => "repeats with other white space",
        Behaviour::OtherEscapes => "repeats with other escapes",
        Behaviour::RepeatsLess => "repeats less than it was asked to",
        Behaviour::RepeatsMore => "repeats more than it was asked to",
        Behaviour::Apologises => "apologises",
        Behaviour::OnlyRepeats => "repeats the end, and nothing more",
        Behaviour::SaysNothing => "says nothing",
        Behaviour::SendsForeignJson => "sends something else",
        Behaviour::RemembersBlanks => "goes on where it had stopped",
    }
}

/// How much of the document is there, as a bar.
fn progress(arrived: usize, whole: usize, width: usize) -> String {
    let share = |of: usize| (arrived as u128 * of as u128 / (whole.max(1)) as u128) as usize;
    let figures = format!(
        "{:>3} %  {} of {} bytes",
        share(100),
        grouped(arrived),
        grouped(whole)
    );
    let columns = width.saturating_sub(LABEL + 1 + figures.len()).min(50);
    let filled = share(columns).min(columns);
    format!(
        "{FAINT}grown{FAINT:#} {NEW}{}{NEW:#}{FAINT}{}{FAINT:#} {figures}",
        "█".repeat(filled),
        "░".repeat(columns - filled),
    )
}

/// The lines of the result, each with the calls that brought it: `3`, or `3→4` where a
/// seam runs through it.
fn lines_with_calls<'a>(story: &'a Story<'_>) -> Vec<(String, &'a str)> {
    let mut ends = story
        .calls
        .iter()
        .map(|call| call.base_len)
        .enumerate()
        .peekable();
    let mut offset = 0;
    let lines = story.result.split('\n').map(|line| {
        let (start, end) = (offset, offset + line.len());
        offset = end + 1;
        while ends
            .next_if(|&(_, base_len)| base_len <= start && base_len < story.result.len())
            .is_some()
        {}
        let first = ends
            .peek()
            .map_or(story.calls.len(), |&(index, _)| index + 1);
        while ends.next_if(|&(_, base_len)| base_len < end).is_some() {}
        let last = ends
            .peek()
            .map_or(story.calls.len(), |&(index, _)| index + 1);
        let calls = if first == last {
            first.to_string()
        } else {
            format!("{first}→{last}")
        };
        (calls, line)
    });
    lines.collect()
}
