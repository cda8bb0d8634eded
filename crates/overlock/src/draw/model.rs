//! Draws the limits of models, of one model or as a table.

use overlock_budget::{Found, How, Model, Sharing};

use super::cells::head;
use super::words::grouped_tokens;
use super::{FAINT, REPEATED, STRONG};

/// One model.
pub(crate) struct ModelDrawing<'a> {
    pub(crate) name: &'a str,
    pub(crate) found: &'a Found,
    /// Whether the entry is in the configuration.
    pub(crate) own: bool,
}

impl ModelDrawing<'_> {
    /// `name: value` lines in a stable format.
    pub(crate) fn lines(&self) -> Vec<String> {
        let model = &self.found.model;
        let line = |name: &str, value: &str| format!("{FAINT}{name}:{FAINT:#} {value}");
        let mut lines = vec![
            line("name", &self.strong_name()),
            line(
                "context window",
                &format!("{STRONG}{}{STRONG:#}", model.window),
            ),
            line("longest answer", &answer(model)),
            line(
                "tokenizer",
                model
                    .tokenizer
                    .as_deref()
                    .unwrap_or("not public or not known"),
            ),
            line("supports", &features(model)),
            line("found", &self.how()),
        ];
        let is_same_model = matches!(self.found.how, How::Exact | How::Alias);
        if let Some(prices) = model.prices.filter(|_| is_same_model) {
            let cached = prices.cached_input;
            let cached = cached.map_or(String::new(), |price| format!(", {price} cached input"));
            let prices = format!("{} input, {} output{cached}", prices.input, prices.output);
            lines.push(line("price of a million tokens", &prices));
        }
        if let Some(larger) = model.disputed {
            lines.push(line(
                "disputed",
                &format!("{REPEATED}another source states a window of {larger}{REPEATED:#}"),
            ));
        }
        lines
    }

    fn strong_name(&self) -> String {
        format!(
            "{STRONG}{}{STRONG:#}",
            head(self.name.as_bytes(), LONGEST_NAME).text
        )
    }

    fn how(&self) -> String {
        let how = self.found.how;
        let entry = self.found.entry.as_deref().unwrap_or_default();
        let source = if self.own {
            " in your configuration"
        } else {
            ""
        };
        match how {
            How::Exact => format!("{}{source}", how.name()),
            How::Alias | How::Prefix => format!("{} of {entry}{source}", how.name()),
            How::Default => format!("{REPEATED}unknown model, using defaults{REPEATED:#}"),
        }
    }
}

/// The columns next to the name, all of them and the sizes alone.
const ALL_COLUMNS: usize = 43;
const SIZES: usize = 22;
/// A longer name is shortened even if there is room.
const LONGEST_NAME: usize = 200;

/// One line per model, no wider than `width` if it is given.
pub(crate) fn model_table(models: &[(String, Found)], width: Option<usize>) -> Vec<String> {
    let width = width.unwrap_or(usize::MAX);
    let longest = models
        .iter()
        .map(|(name, _)| head(name.as_bytes(), LONGEST_NAME).width)
        .max();
    // On a narrow terminal only the name and the sizes are shown.
    let shows_all = width >= 23 + ALL_COLUMNS;
    let others = if shows_all { ALL_COLUMNS } else { SIZES };
    let name_width = longest
        .unwrap_or(0)
        .max(4)
        .min(width.saturating_sub(others));
    let row = |name: &str, window: &str, answer: &str, tokenizer: &str, features: &str| {
        let name = head(name.as_bytes(), name_width);
        // Format padding counts characters, but wide characters take two columns.
        let padding = " ".repeat(name_width - name.width);
        let sizes = format!("{}{padding}  {window:>9}  {answer:>9}", name.text);
        if !shows_all {
            return sizes;
        }
        let line = format!("{sizes}  {tokenizer:<14}  {features}");
        head(line.trim_end().as_bytes(), width).text
    };
    let header = row("name", "window", "answer", "tokenizer", "PJT");
    let mut lines = vec![format!("{FAINT}{header}{FAINT:#}")];
    lines.extend(models.iter().map(|(name, found)| {
        let model = &found.model;
        row(
            name,
            &grouped_tokens(model.window),
            &model.answer_cap.map_or("–".into(), grouped_tokens),
            model.tokenizer.as_deref().unwrap_or("–"),
            &letters(model),
        )
    }));
    if !models.is_empty() {
        let count = models.len();
        let s = if count == 1 { "" } else { "s" };
        let letters = if shows_all {
            "; P: prefill, J: JSON mode, T: tools"
        } else {
            ""
        };
        lines.push(format!(
            "{FAINT}{} model{s}{letters}{FAINT:#}",
            grouped_tokens(count as u64)
        ));
    }
    lines
}

fn answer(model: &Model) -> String {
    match (model.answer_cap, model.sharing) {
        (None, _) => "limited by the window".into(),
        (Some(cap), Sharing::Shared) => cap.to_string(),
        (Some(cap), Sharing::Separate) => format!("{cap}, in addition to the window"),
    }
}

fn features(model: &Model) -> String {
    let all = [
        (model.prefill, "prefill"),
        (model.json, "JSON mode"),
        (model.tools, "tools"),
    ];
    let supported = all.iter().filter(|(is_supported, _)| *is_supported);
    let names: Vec<_> = supported.map(|(_, name)| *name).collect();
    if names.is_empty() {
        return "unknown".into();
    }
    names.join(", ")
}

fn letters(model: &Model) -> String {
    let all = [(model.prefill, 'P'), (model.json, 'J'), (model.tools, 'T')];
    all.iter()
        .map(|(is_supported, letter)| if *is_supported { *letter } else { '·' })
        .collect()
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use unicode_width::UnicodeWidthStr;

    use super::*;

    fn table(width: Option<usize>) -> Vec<String> {
        let model = |name: &str, window, answer_cap, tokenizer: Option<&'static str>| {
            let model = Model {
                window,
                answer_cap,
                tokenizer: tokenizer.map(Into::into),
                tools: true,
                ..Model::default()
            };
            let found = Found {
                entry: Some(name.to_owned()),
                model,
                how: How::Exact,
            };
            (name.to_owned(), found)
        };
        let models = [
            model("gpt-4", 8192, None, Some("cl100k_base")),
            model(
                "日本の大きなモデル/with-a-long-name",
                1_000_000,
                Some(64_000),
                None,
            ),
        ];
        let lines = model_table(&models, width);
        lines
            .iter()
            .map(|line| strip_str(line).to_string())
            .collect()
    }

    #[test]
    fn aligns_the_columns() {
        assert_eq!(
            table(None),
            [
                "name                                    window     answer  tokenizer       PJT",
                "gpt-4                                    8,192          –  cl100k_base     ··T",
                "日本の大きなモデル/with-a-long-name  1,000,000     64,000  –               ··T",
                "2 models; P: prefill, J: JSON mode, T: tools",
            ]
        );
    }

    #[test]
    fn a_narrow_terminal_shows_the_sizes() {
        assert_eq!(
            table(Some(40)),
            [
                "name                   window     answer",
                "gpt-4                   8,192          –",
                "日本の大きなモデ…   1,000,000     64,000",
                "2 models",
            ]
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in 40..140 {
            for line in table(Some(width)) {
                assert!(line.width() <= width, "{line:?} in {width}");
            }
        }
    }
}
