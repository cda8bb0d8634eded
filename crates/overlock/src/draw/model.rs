//! Shows what models can take, one at a time or as a table.

use overlock_budget::{Found, How, Model, Sharing};

use super::cells::head;
use super::words::grouped_tokens;
use super::{FAINT, REPEATED, STRONG};

/// One model, and how it was found.
pub(crate) struct ModelDrawing<'a> {
    pub(crate) name: &'a str,
    pub(crate) found: &'a Found,
    /// Whether the entry is the user's own.
    pub(crate) own: bool,
}

impl ModelDrawing<'_> {
    /// `name: value` lines that stay the same and are easily searched.
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
            line("can", &abilities(model)),
            line("found", &self.how()),
        ];
        let is_this = matches!(self.found.how, How::Exact | How::Alias);
        if let Some(prices) = model.prices.filter(|_| is_this) {
            let cached = prices.cached_input;
            let cached = cached.map_or(String::new(), |price| format!(", {price} in from a cache"));
            let told = format!("{} in, {} out{cached}", prices.input, prices.output);
            lines.push(line("price of a million tokens", &told));
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
        let place = if self.own {
            " in your configuration"
        } else {
            ""
        };
        match how {
            How::Exact => format!("{}{place}", how.name()),
            How::Alias | How::Prefix => format!("{} of {entry}{place}", how.name()),
            How::Default => format!("{REPEATED}{}{REPEATED:#}, a guess", how.name()),
        }
    }
}

/// What the columns beside the name take, all of them and the sizes alone.
const ALL_COLUMNS: usize = 42;
const SIZES: usize = 22;
/// A longer name is cut even where there is room.
const LONGEST_NAME: usize = 200;

/// All of these models, one a line; no wider than `width`, where there is one.
pub(crate) fn model_table(models: &[(String, Found)], width: Option<usize>) -> Vec<String> {
    let width = width.unwrap_or(usize::MAX);
    let longest = models
        .iter()
        .map(|(name, _)| head(name.as_bytes(), LONGEST_NAME).width)
        .max();
    // Where names would be cut short, the sizes matter more than the rest.
    let shows_all = width >= 24 + ALL_COLUMNS;
    let beside = if shows_all { ALL_COLUMNS } else { SIZES };
    let name_width = longest
        .unwrap_or(0)
        .max(4)
        .min(width.saturating_sub(beside));
    let row = |name: &str, window: &str, answer: &str, tokenizer: &str, can: &str| {
        let name = head(name.as_bytes(), name_width);
        // Padding counts characters, and a name of wide ones has fewer of them than columns.
        let padding = " ".repeat(name_width - name.width);
        let sizes = format!("{}{padding}  {window:>9}  {answer:>9}", name.text);
        if !shows_all {
            return sizes;
        }
        let line = format!("{sizes}  {tokenizer:<14}  {can}");
        head(line.trim_end().as_bytes(), width).text
    };
    let header = row("name", "window", "answer", "tokenizer", "can");
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
            "; can: P be begun for, J be held to JSON, T call tools"
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
        (None, _) => "as the window allows".into(),
        (Some(cap), Sharing::Shared) => cap.to_string(),
        (Some(cap), Sharing::Separate) => format!("{cap}, beside the window"),
    }
}

fn abilities(model: &Model) -> String {
    let all = [
        (model.prefill, "be begun for"),
        (model.json, "be held to JSON"),
        (model.tools, "call tools"),
    ];
    let can: Vec<_> = all
        .iter()
        .filter(|(can, _)| *can)
        .map(|(_, what)| *what)
        .collect();
    if can.is_empty() {
        return "nothing that is known".into();
    }
    can.join(", ")
}

fn letters(model: &Model) -> String {
    let all = [(model.prefill, 'P'), (model.json, 'J'), (model.tools, 'T')];
    all.iter()
        .map(|(can, letter)| if *can { *letter } else { '·' })
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
    fn columns_stand_under_each_other() {
        assert_eq!(
            table(None),
            [
                "name                                    window     answer  tokenizer       can",
                "gpt-4                                    8,192          –  cl100k_base     ··T",
                "日本の大きなモデル/with-a-long-name  1,000,000     64,000  –               ··T",
                "2 models; can: P be begun for, J be held to JSON, T call tools",
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
