//! Draws how a context window is divided: a table of its parts, the calculation, and a bar.
//!
//! Every part has a letter, so that the bar is readable without colour.

use anstyle::{AnsiColor, Style};
use overlock_budget::{Adjustment, Part, Plan, PlannedPart, Provenance, Sharing};

use super::cells::{head, wrap, wrap_words};
use super::words::grouped_tokens;
use super::{CUT, FAINT, NEW, REPEATED, STRONG};

/// A divided window.
pub(crate) struct WindowDrawing {
    pub(crate) model: String,
    /// The counter, and how exact it is.
    pub(crate) counted: String,
    pub(crate) window: u64,
    /// In the order of [`Part`], the answer last.
    pub(crate) parts: Vec<PartDrawing>,
    pub(crate) margin: u64,
    pub(crate) input: u64,
    pub(crate) available: i64,
    pub(crate) requested: u64,
    pub(crate) adjusted: u64,
    pub(crate) verdict: Verdict,
    /// Whether input and answer share the window.
    pub(crate) shared: bool,
}

/// One part of a window.
pub(crate) struct PartDrawing {
    pub(crate) part: Part,
    pub(crate) asked: u64,
    /// Whether `asked` is a minimum, because the rest was not counted.
    pub(crate) at_least: bool,
    pub(crate) given: u64,
    /// Why it did not get what it asked for.
    pub(crate) note: String,
}

/// How the requested answer length was adjusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Granted,
    Grown,
    /// With the reason.
    Reduced(String),
    Over {
        by: u64,
    },
}

/// The first letter of the name of a part.
fn letter(part: Part) -> char {
    match part {
        Part::SystemPrompt => 'S',
        Part::LastUserMessage => 'L',
        Part::OpenTurn => 'O',
        Part::Frame => 'F',
        Part::Tools => 'T',
        Part::History => 'H',
        Part::Context => 'R',
        Part::Memories => 'M',
        Part::Results => 'D',
        Part::Completion => 'C',
    }
}

fn style(part: Part) -> Style {
    let colour = match part {
        Part::SystemPrompt => AnsiColor::Magenta,
        Part::LastUserMessage => AnsiColor::Yellow,
        Part::OpenTurn => AnsiColor::BrightYellow,
        Part::Frame => AnsiColor::White,
        Part::Tools => AnsiColor::Red,
        Part::History => AnsiColor::Blue,
        Part::Context => AnsiColor::Cyan,
        Part::Memories => AnsiColor::BrightMagenta,
        Part::Results => AnsiColor::BrightBlue,
        Part::Completion => AnsiColor::Green,
    };
    Style::new()
        .bg_color(Some(colour.into()))
        .fg_color(Some(AnsiColor::Black.into()))
}

/// Why an answer is reduced.
pub(crate) const NO_MORE_ROOM: &str = "the window has no more room";

const MARGIN: char = '-';
const FREE: char = '·';

impl WindowDrawing {
    /// The window of a model as divided by a plan.
    pub(crate) fn of(model: &str, plan: &Plan) -> Self {
        let parts = plan
            .parts
            .iter()
            .filter(|part| part.asked > 0 || part.given > 0);
        Self {
            model: model.to_owned(),
            counted: counted(&plan.counter, plan.provenance),
            window: plan.window,
            parts: parts
                .map(|part| PartDrawing {
                    part: part.part,
                    asked: part.asked,
                    at_least: part.at_least,
                    given: part.given,
                    note: note(part),
                })
                .collect(),
            margin: plan.margin.tokens,
            input: plan.input_token_count,
            available: i64::try_from(plan.available).unwrap_or(i64::MAX),
            requested: plan.requested,
            adjusted: plan.adjusted_max_tokens,
            verdict: match plan.adjustment {
                Adjustment::Granted => Verdict::Granted,
                Adjustment::Grown => Verdict::Grown,
                Adjustment::Capped => Verdict::Reduced("the model's longest answer".into()),
                Adjustment::Reduced | Adjustment::Floor => Verdict::Reduced(NO_MORE_ROOM.into()),
            },
            shared: plan.sharing == Sharing::Shared,
        }
    }

    /// The whole drawing, no wider than `width` columns.
    pub(crate) fn lines(&self, width: usize) -> Vec<String> {
        let mut lines = self.heading(width);
        lines.push(String::new());
        lines.extend(self.table(width));
        lines.push(String::new());
        lines.extend(self.calculation(width));
        lines.push(String::new());
        lines.extend(self.bar_lines(width));
        lines
    }

    /// The bar and its legend.
    pub(crate) fn bar_lines(&self, width: usize) -> Vec<String> {
        let mut lines = self.bar(width);
        lines.extend(self.legend(width));
        lines
    }

    fn heading(&self, width: usize) -> Vec<String> {
        let model = head(self.model.as_bytes(), width.saturating_sub(2));
        let window = format!("a window of {} tokens", figure(self.window));
        let both = format!("{window}; {}", self.counted);
        if model.width + 2 + both.chars().count() <= width {
            return vec![format!("{STRONG}{}{STRONG:#}: {both}", model.text)];
        }
        let mut lines = vec![format!("{STRONG}{}{STRONG:#}", model.text)];
        if both.chars().count() <= width {
            lines.push(both);
        } else {
            lines.push(window);
            lines.extend(wrap_words(&self.counted, width));
        }
        lines
    }

    fn table(&self, width: usize) -> Vec<String> {
        let name_width = self.parts.iter().map(|part| part.part.name().len());
        let number_width = self.number_width();
        let room = width.saturating_sub(2 + 2 * (number_width + 2));
        let name_width = name_width.max().unwrap_or(0).max("part".len()).min(room);
        let columns = 2 + name_width + 2 * (number_width + 2);
        let mut lines = vec![format!(
            "{FAINT}  {:<name_width$}  {:>number_width$}  {:>number_width$}{FAINT:#}",
            "part", "asked", "given"
        )];
        for part in &self.parts {
            let style = style(part.part);
            let figures = format!(
                "{style}{}{style:#} {:<name_width$}  {:>number_width$}  {STRONG}{:>number_width$}{STRONG:#}",
                letter(part.part),
                head(part.part.name().as_bytes(), name_width).text,
                part.asked_figure(),
                figure(part.given),
            );
            lines.extend(with_note(figures, columns, &part.note, FAINT, width));
        }
        lines
    }

    fn calculation(&self, width: usize) -> Vec<String> {
        let number_width = self
            .number_width()
            .max(signed(self.available).chars().count());
        let columns = 2 + "available".len() + 2 + number_width;
        let plain = Style::new();
        let row = |name: &str, number: &str| format!("  {name:<9}  {number:>number_width$}");
        let sum = if self.shared {
            format!(
                "= {} − {} − {}",
                figure(self.window),
                figure(self.input),
                figure(self.margin)
            )
        } else {
            "in addition to the window".into()
        };
        let (verdict, style) = match &self.verdict {
            Verdict::Granted => ("✓".into(), NEW),
            Verdict::Grown => ("✓ GROWN to all free tokens".into(), NEW),
            Verdict::Reduced(why) => (format!("⚠ REDUCED: {why}"), REPEATED),
            Verdict::Over { by } => {
                let by = figure(*by);
                (format!("✗ OVER BUDGET by {by} tokens"), CUT)
            }
        };
        let mut lines = vec![
            row("input", &figure(self.input)),
            row("margin", &figure(self.margin)),
        ];
        let available = row("available", &signed(self.available));
        lines.extend(with_note(available, columns, &sum, plain, width));
        lines.push(row("requested", &figure(self.requested)));
        let adjusted = figure(self.adjusted);
        let adjusted = format!("  adjusted   {STRONG}{adjusted:>number_width$}{STRONG:#}");
        lines.extend(with_note(adjusted, columns, &verdict, style, width));
        lines
    }

    fn number_width(&self) -> usize {
        let parts = self.parts.iter();
        let parts = parts.flat_map(|part| [part.asked_figure(), figure(part.given)]);
        let totals = [self.window, self.input, self.requested, self.adjusted].map(figure);
        let widths = parts.chain(totals).map(|figure| figure.chars().count());
        widths.max().unwrap_or(0).max("asked".len())
    }

    /// The bar, and a mark at the end of the window if the parts exceed it.
    fn bar(&self, width: usize) -> Vec<String> {
        let columns = width.saturating_sub(2);
        let segments = self.segments();
        let sizes: Vec<u64> = segments.iter().map(|(_, tokens)| *tokens).collect();
        let filled = segments.iter().zip(apportion(&sizes, columns));
        let filled = filled.map(|((segment, _), columns)| {
            let (character, style) = match segment {
                Segment::Part(part) => (letter(*part), style(*part)),
                Segment::Margin => (MARGIN, FAINT),
                Segment::Free => (FREE, FAINT),
            };
            match columns {
                0 => String::new(),
                _ => format!("{style}{}{style:#}", character.to_string().repeat(columns)),
            }
        });
        let line = format!("│{}│", filled.collect::<String>());
        let mut lines = vec![line];
        let used: u128 = sizes.iter().map(|size| u128::from(*size)).sum();
        if used > u128::from(self.window) {
            let end = u128::from(self.window) * columns as u128 / used;
            let end = usize::try_from(end).unwrap_or(0);
            let words = "▲ the window ends here";
            let length = words.chars().count();
            lines.push(if 1 + end + length <= width {
                format!("{}{CUT}{words}{CUT:#}", " ".repeat(1 + end))
            } else {
                let words = "the window ends here ▲";
                let indent = (2 + end).saturating_sub(length);
                format!("{}{CUT}{words}{CUT:#}", " ".repeat(indent))
            });
        }
        lines
    }

    fn legend(&self, width: usize) -> Vec<String> {
        let segments = self.segments();
        let sizes = segments.iter().map(|(_, tokens)| u128::from(*tokens));
        let whole = sizes.sum();
        let entries: Vec<String> = segments
            .iter()
            .filter(|(_, tokens)| *tokens > 0)
            .map(|(segment, tokens)| {
                let (character, name) = match segment {
                    Segment::Part(part) => (letter(*part), part.name()),
                    Segment::Margin => (MARGIN, "margin"),
                    Segment::Free => (FREE, "free"),
                };
                format!("{character} {name} {}", percent(*tokens, whole))
            })
            .collect();
        let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
        wrap(&entries, "   ", width.saturating_sub(1))
            .iter()
            .map(|line| format!(" {line}"))
            .collect()
    }

    fn segments(&self) -> Vec<(Segment, u64)> {
        let in_window = |part: &&PartDrawing| self.shared || part.part != Part::Completion;
        let parts = self.parts.iter().filter(in_window);
        let mut segments: Vec<_> = parts
            .map(|part| (Segment::Part(part.part), part.given))
            .collect();
        segments.push((Segment::Margin, self.margin));
        let used: u128 = segments.iter().map(|(_, tokens)| u128::from(*tokens)).sum();
        let free = u128::from(self.window).saturating_sub(used);
        segments.push((Segment::Free, u64::try_from(free).unwrap_or(u64::MAX)));
        segments
    }
}

impl PartDrawing {
    fn asked_figure(&self) -> String {
        let more = if self.at_least { ">" } else { "" };
        format!("{more}{}", figure(self.asked))
    }
}

/// Describes a counter and how exact it is.
pub(crate) fn counted(counter: &str, provenance: Provenance) -> String {
    match provenance {
        Provenance::Exact => format!("counted exactly with {counter}"),
        Provenance::Calibrated => format!("counted with {counter} and known formulas"),
        Provenance::Estimate => format!("estimated with {counter}"),
    }
}

/// How a part was reduced, if it was.
fn note(part: &PlannedPart) -> String {
    let mut notes = Vec::new();
    if part.dropped > 0 {
        notes.push(format!(
            "{} of {} kept",
            part.kept,
            part.kept + part.dropped
        ));
    }
    if !part.dropped_names.is_empty() {
        notes.push(format!("without {}", part.dropped_names.join(", ")));
    }
    // The number of dropped pieces says enough, and the answer is in the calculation.
    if part.dropped == 0 && part.given != part.asked && part.part != Part::Completion {
        notes.push(part.explanation());
    }
    notes.join("; ")
}

/// Figures of this many columns with a note after them, or below them if it does not fit.
fn with_note(
    figures: String,
    columns: usize,
    note: &str,
    style: Style,
    width: usize,
) -> Vec<String> {
    if note.is_empty() {
        return vec![figures];
    }
    if columns + 2 + note.chars().count() <= width {
        return vec![format!("{figures}  {style}{note}{style:#}")];
    }
    let wrapped = wrap_words(note, width.saturating_sub(4));
    let wrapped = wrapped
        .iter()
        .map(|line| format!("    {style}{line}{style:#}"));
    std::iter::once(figures).chain(wrapped).collect()
}

enum Segment {
    Part(Part),
    Margin,
    Free,
}

/// Divides columns in proportion to the sizes. Every size above 0 gets at least one column, if there
/// are enough.
fn apportion(sizes: &[u64], columns: usize) -> Vec<usize> {
    let whole: u128 = sizes.iter().map(|size| u128::from(*size)).sum();
    let minimum = |size: &u64| usize::from(*size > 0);
    let least: usize = sizes.iter().map(minimum).sum();
    if whole == 0 || columns < least {
        return vec![0; sizes.len()];
    }
    let shares = sizes.iter().map(|size| u128::from(*size) * columns as u128);
    let mut given: Vec<usize> = shares
        .clone()
        .zip(sizes)
        .map(|(share, size)| {
            usize::try_from(share / whole)
                .unwrap_or(0)
                .max(minimum(size))
        })
        .collect();
    // The largest remainders get the columns left over; the largest parts give up the columns of the
    // minimums.
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    let remainders: Vec<u128> = shares.map(|share| share % whole).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(remainders[index]));
    let mut left = columns.saturating_sub(given.iter().sum());
    for &index in order.iter().filter(|&&index| sizes[index] > 0).cycle() {
        if left == 0 {
            break;
        }
        given[index] += 1;
        left -= 1;
    }
    while given.iter().sum::<usize>() > columns {
        let Some(largest) = given.iter_mut().max() else {
            break;
        };
        *largest -= 1;
    }
    given
}

fn percent(tokens: u64, whole: u128) -> String {
    let tenths = (u128::from(tokens) * 1000 + whole / 2) / whole.max(1);
    match tenths {
        0 => "<0.1%".into(),
        1..100 => format!("{}.{}%", tenths / 10, tenths % 10),
        _ => format!("{}%", (tenths + 5) / 10),
    }
}

/// A number of tokens in at most ten columns, so that three fit next to each other.
fn figure(tokens: u64) -> String {
    const SHOWN: u64 = 99_999_999;
    if tokens <= SHOWN {
        return grouped_tokens(tokens);
    }
    #[expect(clippy::cast_precision_loss, reason = "only two digits are shown")]
    let tokens = tokens as f64;
    format!("{tokens:.1e}")
}

fn signed(tokens: i64) -> String {
    let sign = if tokens < 0 { "−" } else { "" };
    format!("{sign}{}", figure(tokens.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use unicode_width::UnicodeWidthStr;

    use super::*;

    fn drawing(window: u64, given: [u64; 3], verdict: Verdict) -> WindowDrawing {
        let [system, history, answer] = given;
        let part = |part, given, note: &str| PartDrawing {
            part,
            asked: given,
            at_least: false,
            given,
            note: note.into(),
        };
        let available = i128::from(window) - i128::from(system) - i128::from(history) - 100;
        WindowDrawing {
            model: "some/model-of-many".into(),
            counted: "counted exactly with o200k_base".into(),
            window,
            parts: vec![
                part(Part::SystemPrompt, system, ""),
                part(
                    Part::History,
                    history,
                    "shrank by 225 (weight 3 of 4), to its minimum",
                ),
                part(Part::Completion, answer, ""),
            ],
            margin: 100,
            input: system.saturating_add(history),
            available: i64::try_from(available).unwrap_or(i64::MIN),
            requested: answer,
            adjusted: answer,
            verdict,
            shared: true,
        }
    }

    fn plain(drawing: &WindowDrawing, width: usize) -> Vec<String> {
        let lines = drawing.lines(width);
        lines
            .iter()
            .map(|line| strip_str(line).to_string())
            .collect()
    }

    #[test]
    fn shows_the_calculation_and_the_bar() {
        let drawing = drawing(4000, [500, 2000, 1000], Verdict::Granted);
        assert_eq!(
            plain(&drawing, 60),
            [
                "some/model-of-many",
                "a window of 4,000 tokens; counted exactly with o200k_base",
                "",
                "  part           asked  given",
                "S system prompt    500    500",
                "H history        2,000  2,000",
                "    shrank by 225 (weight 3 of 4), to its minimum",
                "C completion     1,000  1,000",
                "",
                "  input      2,500",
                "  margin       100",
                "  available  1,400  = 4,000 − 2,500 − 100",
                "  requested  1,000",
                "  adjusted   1,000  ✓",
                "",
                "│SSSSSSSHHHHHHHHHHHHHHHHHHHHHHHHHHHHHCCCCCCCCCCCCCCC-······│",
                " S system prompt 13%   H history 50%   C completion 25%",
                " - margin 2.5%   · free 10%",
            ]
        );
    }

    #[test]
    fn marks_the_end_of_the_window_if_the_parts_exceed_it() {
        let over = drawing(2000, [500, 2500, 500], Verdict::Over { by: 1600 });
        let lines = plain(&over, 60);
        assert!(
            lines.contains(&"  adjusted      500  ✗ OVER BUDGET by 1,600 tokens".into()),
            "{lines:#?}"
        );
        let mark = lines
            .iter()
            .position(|line| line.contains("the window ends here"));
        let mark = mark.expect("a mark");
        assert!(lines[mark - 1].starts_with("│SSS"), "{lines:#?}");
        let column = lines[mark].chars().position(|character| character == '▲');
        // 2,000 of 3,600 tokens.
        assert_eq!(column, Some(1 + 58 * 2000 / 3600));
    }

    #[test]
    fn colours_the_bar_and_the_verdict() {
        let drawing = drawing(
            4000,
            [500, 2000, 1000],
            Verdict::Reduced(NO_MORE_ROOM.into()),
        );
        let lines = drawing.lines(100);
        let bar = lines
            .iter()
            .find(|line| line.starts_with('│'))
            .expect("a bar");
        assert!(bar.starts_with("│\x1b[30m\x1b[45mSSSS"), "{bar:?}");
        let verdict = lines
            .iter()
            .find(|line| line.contains("REDUCED"))
            .expect("a verdict");
        assert!(
            verdict.ends_with("\x1b[33m⚠ REDUCED: the window has no more room\x1b[0m"),
            "{verdict:?}"
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_the_bar_fills_it() {
        let sizes = [0, 1, 499, 128_000, u64::MAX];
        for width in 40..=140 {
            for window in sizes {
                for given in [
                    [1, 1, 1],
                    [0, 0, 0],
                    [500, u64::MAX, 3],
                    [9, 128_000, 128_000],
                ] {
                    let drawing = drawing(window, given, Verdict::Over { by: 1 });
                    for line in plain(&drawing, width) {
                        assert!(line.width() <= width, "{line:?} in {width}");
                        if line.starts_with('│') {
                            assert_eq!(line.width(), width);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn every_part_gets_a_column() {
        let given = apportion(&[1, 1_000_000, 0, 3, 5_000_000], 38);
        assert_eq!(given.iter().sum::<usize>(), 38);
        assert!(given[0] == 1 && given[2] == 0 && given[3] == 1, "{given:?}");
        assert_eq!(apportion(&[1, 1, 2], 8), [2, 2, 4]);
        assert_eq!(apportion(&[0, 0], 8), [0, 0]);
    }
}
