//! Prints the demo: each call, seam and cut, the document, and the comparison.
//!
//! On a terminal there are short pauses, so that a person can follow.

use std::thread;
use std::time::Duration;

use overlock_llm::Outcome;
use overlock_llm::testing::Behaviour;

use super::{CutState, DemoCall, DemoRun, DocumentStats, MODEL};
use crate::draw::{
    self, CUT, FAINT, Join, NEW, Position, STRONG, SeamDrawing, WindowDrawing, grouped,
    grouped_tokens,
};
use crate::ending::Failure;
use crate::output::Results;

const ALL_PAUSES: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(900);

pub(crate) struct DemoOutput {
    results: Results,
    width: usize,
    pause: Duration,
    skips_pauses: bool,
}

impl DemoOutput {
    /// `fast`: without pauses, even on a terminal.
    pub(crate) fn new(fast: bool) -> Self {
        let results = Results::new();
        Self {
            width: draw::terminal_width(),
            pause: Duration::ZERO,
            skips_pauses: fast || !results.is_terminal(),
            results,
        }
    }

    pub(crate) fn print(mut self, run: &DemoRun<'_>) -> Result<(), Failure> {
        let steps = u32::try_from(run.calls.len() * 2 + 2).unwrap_or(u32::MAX);
        self.pause = (ALL_PAUSES / steps).min(LONGEST_PAUSE);
        self.introduction(run)?;
        for (index, call) in run.calls.iter().enumerate() {
            self.call(index + 1, call, run)?;
            if self.results.is_closed() {
                return Ok(());
            }
        }
        self.document(run)?;
        self.verdict(run)
    }

    fn introduction(&mut self, run: &DemoRun<'_>) -> Result<(), Failure> {
        let stats = DocumentStats::of(run.document);
        self.line(&format!("{STRONG}overlock demo{STRONG:#}"))?;
        let window = run.calls.first().map_or(0, |call| call.plan.window);
        self.words(&format!(
            "A model writes {} bytes of JSON ({} values) and is cut off again and again. It is a \
             scripted model with a context window of {} tokens, called over HTTP on this machine. \
             Overlock finds each cut, asks for the rest, and stitches the pieces together.",
            grouped(stats.bytes),
            grouped(stats.values),
            grouped_tokens(window)
        ))?;
        self.words(&format!(
            "seed {}; for other cuts use --seed N, for your own document --document FILE",
            run.seed
        ))?;
        self.wait();
        Ok(())
    }

    fn call(&mut self, number: usize, call: &DemoCall, run: &DemoRun<'_>) -> Result<(), Failure> {
        let action = match number {
            1 => "begins to write",
            _ => describe(call.behaviour),
        };
        self.title(&format!("call {number}: the model {action}"))?;
        self.question(call)?;
        self.answer(call)?;
        self.wait();
        let received = &run.result.as_bytes()[..call.base_len.min(run.result.len())];
        if number > 1 || matches!(call.join, Join::Rejected { .. }) {
            let drawing = SeamDrawing::new(received, call.text.as_bytes(), &call.join);
            for line in drawing.lines("seam", self.width) {
                self.line(&line)?;
            }
        }
        if let Join::Made { .. } = call.join {
            self.line(&progress(call.base_len, run.document.len(), self.width))?;
            if let Some(state) = &call.cut {
                self.cut(state, received)?;
            }
        }
        self.wait();
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

    /// Prints wrapped text.
    fn words(&mut self, words: &str) -> Result<(), Failure> {
        for line in draw::wrap_words(words, self.width) {
            self.line(&line)?;
        }
        Ok(())
    }

    /// Prints the request and how it fits the window.
    fn question(&mut self, call: &DemoCall) -> Result<(), Failure> {
        let overlap = call.ask.overlap.chars().count();
        let request = match call.ask.strategy {
            None => "for the document".to_owned(),
            Some(_) => format!(
                "for the rest, starting with the last {} characters",
                grouped(overlap)
            ),
        };
        self.line(&format!("{FAINT}ask{FAINT:#}   {request}"))?;
        let drawing = WindowDrawing::of(MODEL, &call.plan);
        let lines = drawing.bar_lines(self.width.saturating_sub(LABEL));
        for (index, line) in lines.iter().enumerate() {
            let label = if index == 0 { "plan" } else { "" };
            self.line(&format!("{FAINT}{label:<LABEL$}{FAINT:#}{line}"))?;
        }
        Ok(())
    }

    /// Prints the beginning of the answer.
    fn answer(&mut self, call: &DemoCall) -> Result<(), Failure> {
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

    fn cut(&mut self, state: &CutState, received: &[u8]) -> Result<(), Failure> {
        let cut = &state.cut;
        self.line(&format!(
            "{CUT}cut{CUT:#}   {} at {STRONG}{}{STRONG:#}",
            cut.place.phrase(),
            draw::path(&cut.path, self.width / 2)
        ))?;
        let position = Position::of(received, received.len());
        for line in draw::cut_lines(
            received,
            received.len(),
            position.line,
            self.width.saturating_sub(6),
        ) {
            self.line(&format!("      {line}"))?;
        }
        self.line(&format!("{FAINT}open{FAINT:#}  {}", state.open))?;
        if let Some(delivered) = &state.delivered {
            let line = draw::head(delivered.as_bytes(), self.width.saturating_sub(6)).text;
            self.line(&format!(
                "{FAINT}last{FAINT:#}  {}",
                line.trim_start_matches("- ")
            ))?;
        }
        Ok(())
    }

    /// Prints the document, each line with the number of the call that wrote it.
    fn document(&mut self, run: &DemoRun<'_>) -> Result<(), Failure> {
        const MOST_LINES: usize = 400;
        const MOST_BYTES: usize = 1 << 16;
        const SHOWN: usize = 12;
        self.title("the document, each line with the call that wrote it")?;
        let lines = lines_with_calls(run);
        let pause = ALL_PAUSES / 5 / u32::try_from(lines.len()).unwrap_or(u32::MAX).max(1);
        let shows_all = lines.len() <= MOST_LINES && run.result.len() <= MOST_BYTES;
        for (index, (calls, line)) in lines.iter().enumerate() {
            if shows_all {
                self.wrapped(calls, line)?;
                if !self.skips_pauses {
                    thread::sleep(pause);
                }
                continue;
            }
            if index == SHOWN && lines.len() > SHOWN * 2 {
                let left_out = lines.len() - SHOWN * 2;
                self.line(&format!(
                    "{FAINT}{:>7} │ … {} more lines …{FAINT:#}",
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

    /// Prints the beginning of a line, and its end if it is long.
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

    /// Prints a line, wrapped on a terminal.
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

    fn verdict(&mut self, run: &DemoRun<'_>) -> Result<(), Failure> {
        let is_rejected = |call: &&DemoCall| matches!(call.join, Join::Rejected { .. });
        let rejected = run.calls.iter().filter(is_rejected).count();
        // The first accepted answer has no seam.
        let seams = (run.calls.len() - rejected).saturating_sub(1);
        self.line("")?;
        let rejected = match rejected {
            0 => "no answer rejected".into(),
            1 => "1 answer rejected and requested again".into(),
            _ => format!("{rejected} answers rejected and requested again"),
        };
        self.words(&format!(
            "{} calls, {seams} seams, {rejected}",
            run.calls.len()
        ))?;
        if let Outcome::Partial { reason, .. } | Outcome::Failed { reason } = &run.outcome {
            self.line(&format!("{CUT}incomplete{CUT:#}: {reason}"))?;
        }
        let (original, result) = (
            DocumentStats::of(run.document),
            DocumentStats::of(&run.result),
        );
        if run.is_identical() {
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
        for (name, stats) in [("original", original), ("result", result)] {
            self.line(&format!(
                "  {name:<8}  {} bytes, {} values, cksum {}",
                grouped(stats.bytes),
                grouped(stats.values),
                stats.checksum
            ))?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str) -> Result<(), Failure> {
        self.results.line(line)
    }

    fn wait(&self) {
        if !self.skips_pauses && !self.results.is_closed() {
            thread::sleep(self.pause);
        }
    }
}

/// The columns of the label of a line.
const LABEL: usize = 6;

fn describe(behaviour: Behaviour) -> &'static str {
    match behaviour {
        Behaviour::AsAsked => "repeats the end as asked, and continues",
        Behaviour::Fenced => "adds a Markdown fence and prose",
        Behaviour::Thinking => "thinks aloud first",
        Behaviour::TellsProgress => "reports its progress first",
        Behaviour::RestartsItem => "starts the whole item again",
        Behaviour::RestartsDocument => "starts the whole document again",
        Behaviour::OtherSpaces => "repeats with other white space",
        Behaviour::OtherEscapes => "repeats with other escapes",
        Behaviour::RepeatsLess => "repeats less than requested",
        Behaviour::RepeatsMore => "repeats more than requested",
        Behaviour::Apologises => "apologises",
        Behaviour::OnlyRepeats => "repeats the end and adds nothing",
        Behaviour::SaysNothing => "says nothing",
        Behaviour::SendsForeignJson => "sends other JSON",
        Behaviour::RemembersBlanks => "continues exactly where it stopped",
    }
}

/// A bar for the part of the document that was received.
fn progress(received: usize, total: usize, width: usize) -> String {
    let share = |of: usize| (received as u128 * of as u128 / (total.max(1)) as u128) as usize;
    let figures = format!(
        "{:>3} %  {} of {} bytes",
        share(100),
        grouped(received),
        grouped(total)
    );
    let columns = width.saturating_sub(LABEL + 1 + figures.len()).min(50);
    let filled = share(columns).min(columns);
    format!(
        "{FAINT}done{FAINT:#}  {NEW}{}{NEW:#}{FAINT}{}{FAINT:#} {figures}",
        "█".repeat(filled),
        "░".repeat(columns - filled),
    )
}

/// The lines of the result, each with the calls that wrote it: `3`, or `3→4` for a line with a seam.
fn lines_with_calls<'a>(run: &'a DemoRun<'_>) -> Vec<(String, &'a str)> {
    let mut ends = run
        .calls
        .iter()
        .map(|call| call.base_len)
        .enumerate()
        .peekable();
    let mut offset = 0;
    let lines = run.result.split('\n').map(|line| {
        let (start, end) = (offset, offset + line.len());
        offset = end + 1;
        while ends
            .next_if(|&(_, base_len)| base_len <= start && base_len < run.result.len())
            .is_some()
        {}
        let first = ends.peek().map_or(run.calls.len(), |&(index, _)| index + 1);
        while ends.next_if(|&(_, base_len)| base_len < end).is_some() {}
        let last = ends.peek().map_or(run.calls.len(), |&(index, _)| index + 1);
        let calls = if first == last {
            first.to_string()
        } else {
            format!("{first}→{last}")
        };
        (calls, line)
    });
    lines.collect()
}
