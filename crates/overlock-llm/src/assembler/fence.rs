//! Finds where a JSON document begins in a text that arrives in pieces.

/// Finds the first JSON document in a fenced block of a text that is still arriving.
#[derive(Default)]
pub(super) struct FenceFinder {
    /// Where the current line starts.
    line: usize,
    /// Up to where that line was searched for its end.
    searched: usize,
    state: FenceState,
}

/// The block that the current line belongs to.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum FenceState {
    /// No fenced block.
    #[default]
    None,
    /// A block that is marked as JSON, or not marked, and has no content yet.
    Json,
    /// A block of anything else.
    Other,
}

impl FenceFinder {
    /// Where the document begins. `text` must extend that of the last call.
    pub(super) fn find(&mut self, text: &str) -> Option<usize> {
        loop {
            if self.state == FenceState::Json {
                let content = text[self.line..].trim_start();
                match content.chars().next() {
                    None => return None,
                    Some('{' | '[') => return Some(text.len() - content.len()),
                    Some(_) => self.state = FenceState::Other,
                }
            }
            let from = self.searched.max(self.line);
            self.searched = text.len();
            let end = from + text[from..].find('\n')?;
            let line = text[self.line..end].trim();
            self.line = end + 1;
            self.searched = self.line;
            let Some(info) = line.strip_prefix("```").map(str::trim) else {
                continue;
            };
            self.state = match self.state {
                FenceState::None if info.is_empty() || info.eq_ignore_ascii_case("json") => {
                    FenceState::Json
                }
                FenceState::None => FenceState::Other,
                FenceState::Json | FenceState::Other if info.is_empty() => FenceState::None,
                state => state,
            };
        }
    }
}
