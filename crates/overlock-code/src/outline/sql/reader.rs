//! Decides, token by token, which parts of a statement stay in the outline.

use super::{CLOSES_EXECUTED, body_in_a_string, opens_executed};
use crate::lex::executed::with_hints_before;
use crate::lex::{Gap, Kind, Token};

/// For each token, whether it stays.
pub(super) fn kept_tokens(text: &str, tokens: &[Token]) -> Vec<bool> {
    let mut reader = OutlineReader {
        text,
        tokens,
        frames: vec![Frame::new(Mode::Skip)],
        in_body: false,
        updates: false,
        last_word: "",
        tableless: Vec::new(),
        gone: Vec::new(),
    };
    let mut kept: Vec<bool> = (0..tokens.len()).map(|index| reader.keeps(index)).collect();
    reader.end_statement();
    for index in reader.gone {
        kept[index] = false;
    }
    kept
}

/// What happens to the tokens of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// They are left out.
    Skip,
    /// They stay.
    Keep,
    /// They stay, including lists of columns: a view.
    KeepAll,
    /// They stay until the body of a definition begins.
    Header,
    /// The selected columns are left out, up to the tables.
    SelectList,
    /// The assignments are left out, up to the tables or the predicate.
    Assignments,
    /// The rows are left out, up to the end of the statement.
    Rows,
    /// Grouping and sorting are left out, up to the next query or the end.
    Order,
    /// The name of the called procedure stays.
    Call,
    /// The arguments of the call are left out.
    Arguments,
}

/// A statement, or parentheses in one.
#[derive(Clone, Copy, Debug)]
struct Frame {
    mode: Mode,
    /// A query began here, so `FROM` belongs to it and not to a function.
    selects: bool,
    /// Whether the parenthesis that opened it stays.
    opened: bool,
    /// How many `CASE` are open in it; their words begin no statement.
    cases: usize,
}

impl Frame {
    fn new(mode: Mode) -> Self {
        Self {
            mode,
            selects: false,
            opened: false,
            cases: 0,
        }
    }
}

struct OutlineReader<'a> {
    text: &'a str,
    tokens: &'a [Token],
    frames: Vec<Frame>,
    /// Inside a procedure, a function or a package.
    in_body: bool,
    /// The statement assigns values after `SET`.
    updates: bool,
    last_word: &'a str,
    /// The `SELECT` tokens of the current statement while it has named no table.
    tableless: Vec<usize>,
    /// The `SELECT` tokens of statements that named none: `SELECT @a = 1`.
    gone: Vec<usize>,
}

impl<'a> OutlineReader<'a> {
    fn keeps(&mut self, index: usize) -> bool {
        let token = self.tokens[index];
        match token.kind {
            Kind::Word => {
                let word = token.text(self.text);
                let keeps = self.word(index, word);
                self.last_word = word;
                keeps
            }
            Kind::Mark => {
                let keeps = self.mark(index);
                self.last_word = "";
                keeps
            }
            Kind::Line => {
                self.reset(false);
                // The end of the rows of a `COPY`: without it, all that follows would be rows.
                token.text(self.text) == "\\."
            }
            // The body of a function of PostgreSQL; its language comes after it.
            Kind::Quoted if self.is_body(index) => {
                self.reset(false);
                self.frame().mode = Mode::Keep;
                true
            }
            // `COMMENT '…'` in the head of a MySQL procedure is documentation.
            Kind::Quoted if self.frame().mode == Mode::Header && self.last_is(&["comment"]) => {
                self.last_word = "";
                false
            }
            // The delimiters of an executed comment stay only around tokens that stay.
            Kind::Hint if opens_executed(token.text(self.text)) => false,
            Kind::Hint if token.text(self.text) == CLOSES_EXECUTED => false,
            Kind::Hint => self.frame().mode != Mode::Skip,
            // The content of an unclosed string or comment is unknown, so it stays.
            Kind::Opaque => true,
            _ => {
                self.last_word = "";
                self.stays()
            }
        }
    }

    /// Whether a string, in dollars or in quotes, is the body of a function.
    fn is_body(&self, index: usize) -> bool {
        let begins = self.in_body
            && self.last_is(&["as"])
            && matches!(&self.frames[..], [frame] if frame.mode == Mode::Skip);
        begins || body_in_a_string(self.text, self.tokens, index).is_some()
    }

    fn frame(&mut self) -> &mut Frame {
        if self.frames.is_empty() {
            self.frames.push(Frame::new(Mode::Skip));
        }
        self.frames
            .last_mut()
            .expect("one was pushed if there was none")
    }

    fn stays(&mut self) -> bool {
        matches!(
            self.frame().mode,
            Mode::Keep | Mode::KeepAll | Mode::Header | Mode::Call
        )
    }

    fn end_statement(&mut self) {
        self.gone.append(&mut self.tableless);
    }

    fn reset(&mut self, in_body: bool) {
        self.end_statement();
        self.frames.clear();
        self.frames.push(Frame::new(Mode::Skip));
        self.in_body = in_body;
    }

    fn mark(&mut self, index: usize) -> bool {
        let byte = self.text.as_bytes()[self.tokens[index].start];
        match byte {
            b'(' => {
                let queries = self.next_is(index, "select") || self.next_is(index, "with");
                let mut frame = *self.frame();
                frame.opened = self.stays() || queries;
                frame.selects = false;
                frame.cases = 0;
                if frame.mode == Mode::Call {
                    self.frame().mode = Mode::Arguments;
                    frame.mode = Mode::Arguments;
                    frame.opened = false;
                }
                self.frames.push(frame);
                frame.opened
            }
            b')' if self.frames.len() > 1 => self.frames.pop().is_some_and(|frame| frame.opened),
            // A numbered procedure: `dbo.Find;2`.
            b';' if self.frame().mode == Mode::Header && self.touches_a_number(index) => true,
            b';' => {
                let stays = self.tableless.is_empty()
                    && self.frames.iter().any(|frame| frame.mode != Mode::Skip);
                self.reset(self.in_body);
                stays
            }
            b'/' if self.is_alone(index) => {
                self.reset(false);
                true
            }
            b'.' => self.stays(),
            _ => {
                if self.frame().mode == Mode::Call && byte != b'=' {
                    self.frame().mode = Mode::Arguments;
                }
                self.stays()
            }
        }
    }

    fn word(&mut self, index: usize, word: &'a str) -> bool {
        if word.eq_ignore_ascii_case("go") && self.is_alone(index) {
            self.reset(false);
            return true;
        }
        let mode = self.frame().mode;
        if mode == Mode::Header {
            return self.header(index, word);
        }
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        let nested = self.frames.len() > 1;
        if is("select") || is("perform") && !nested && self.begins(index) {
            if nested {
                self.tableless.clear();
            } else if mode == Mode::Skip || !self.tableless.is_empty() {
                self.tableless.push(index);
            }
            self.frame().selects = true;
            if mode != Mode::KeepAll {
                self.frame().mode = Mode::SelectList;
            }
            return true;
        }
        if mode != Mode::Skip && mode != Mode::Call && self.continues(word, nested) {
            return self.stays();
        }
        if mode == Mode::Keep && (is("order") || is("group")) && self.next_is(index, "by") {
            self.frame().mode = Mode::Order;
            return false;
        }
        if mode == Mode::Keep && !nested && (is("values") || is("set") && self.updates) {
            self.frame().mode = if is("values") {
                Mode::Rows
            } else {
                Mode::Assignments
            };
            return true;
        }
        if mode != Mode::Skip && is("case") {
            self.frame().cases += 1;
        }
        if self.frame().cases > 0 {
            self.frame().cases -= usize::from(is("end"));
            return self.stays();
        }
        let begins = !nested && (self.begins(index) || self.cuts_in(index, word));
        if begins && let Some(mode) = self.statement(index, word) {
            self.end_statement();
            *self.frame() = Frame::new(mode);
            self.updates = is("update") || is("merge") || is("insert");
            return mode != Mode::Skip;
        }
        if mode == Mode::Call {
            let is_name = index > 0 && self.tokens[index - 1].is_mark(self.text, b'.')
                || self.last_is(&["exec", "execute", "call"]);
            let assigned = index > 0 && self.tokens[index - 1].is_mark(self.text, b'=');
            if !is_name && !assigned {
                self.frame().mode = Mode::Arguments;
            }
        }
        self.stays()
    }

    /// Reads a word of the head of a definition: the body may begin here.
    fn header(&mut self, index: usize, word: &str) -> bool {
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        let nested = self.frames.len() > 1;
        let typed = self.last_word.starts_with('@') || self.last_is(&["execute", "exec"]);
        // `REFERENCING NEW TABLE AS n` names rows.
        let of_rows = |back: usize| {
            let before = index.checked_sub(back).map(|before| self.tokens[before]);
            let names = ["new", "old", "parent"];
            before.is_some_and(|token| names.iter().any(|name| token.is_word(self.text, name)))
        };
        let names_rows = of_rows(1) || self.last_is(&["table", "row"]) && of_rows(2);
        let opens = (is("as") || is("is")) && !typed && !names_rows && !nested;
        if opens || (is("begin") && !nested) {
            *self.frame() = Frame::new(Mode::Skip);
            self.in_body = true;
        }
        true
    }

    /// Whether a word continues its statement; changes the mode accordingly.
    fn continues(&mut self, word: &str, nested: bool) -> bool {
        let is = |names: &[&str]| names.iter().any(|name| word.eq_ignore_ascii_case(name));
        let frame = self.frame();
        match frame.mode {
            Mode::SelectList if frame.selects && is(&["from", "into", "where", "bulk"]) => {
                frame.mode = Mode::Keep;
                self.tableless.clear();
                true
            }
            Mode::Assignments if is(&["from", "where", "output", "returning", "option"]) => {
                frame.mode = Mode::Keep;
                true
            }
            Mode::Order if is(&["union", "except", "intersect", "minus", "having", "option"]) => {
                frame.mode = Mode::Keep;
                true
            }
            Mode::Rows if !nested && is(&["into", "output", "when", "option"]) => {
                frame.mode = Mode::Keep;
                true
            }
            _ => false,
        }
    }

    /// Whether a statement can begin here.
    fn begins(&self, index: usize) -> bool {
        let first = with_hints_before(self.tokens, index);
        let Some(before) = first.checked_sub(1).map(|before| self.tokens[before]) else {
            return true;
        };
        // An expression continues after these, also on the next line.
        if b",=<>+-|"
            .iter()
            .any(|mark| before.is_mark(self.text, *mark))
        {
            return false;
        }
        // In a query, a name follows `AS`.
        let opens: &[&str] = match self.frames.last() {
            Some(frame) if frame.mode != Mode::Skip => &["begin", "then", "else", "loop", "go"],
            _ => &["begin", "then", "else", "as", "is", "loop", "go", "do"],
        };
        let mut since = self.tokens[first..=index].iter();
        since.any(|token| token.gap == Gap::Line)
            || before.kind == Kind::Line
            || before.is_mark(self.text, b';')
            || opens.iter().any(|word| before.is_word(self.text, word))
    }

    /// Whether a statement begins here although nothing ended the one before:
    /// `IF @a = 1 DELETE dbo.Orders`.
    fn cuts_in(&mut self, index: usize, word: &str) -> bool {
        const THESE: [&str; 10] = [
            "insert", "update", "delete", "merge", "truncate", "create", "alter", "drop", "exec",
            "execute",
        ];
        /// After these, a keyword belongs to another statement: `FOR UPDATE`, `ON DELETE`.
        const BEFORE_OTHERS: [&str; 14] = [
            "for", "on", "of", "or", "to", "as", "is", "do", "key", "no", "after", "before",
            "instead", "with",
        ];
        let is_any = |names: &[&str]| names.iter().any(|name| word.eq_ignore_ascii_case(name));
        if self.stays() || !is_any(&THESE) {
            return false;
        }
        let is_mark = |at: Option<usize>, marks: &[u8]| {
            let token = at.and_then(|at| self.tokens.get(at));
            token.is_some_and(|token| marks.iter().any(|&mark| token.is_mark(self.text, mark)))
        };
        let before = index.checked_sub(1);
        let is_label = is_mark(before, b">") && is_mark(index.checked_sub(2), b">")
            || is_mark(before, b":") && self.tokens[index].gap != Gap::None;
        let goes_on = is_mark(before, b",=<>+-|.(:*%") && !is_label
            || is_mark(Some(index + 1), b"(.=,);")
            || before.is_some_and(|before| {
                let before = self.tokens[before];
                BEFORE_OTHERS.iter().any(|it| before.is_word(self.text, it))
            });
        !goes_on
    }

    /// The mode of the statement that begins with this word, if one does.
    fn statement(&mut self, index: usize, word: &str) -> Option<Mode> {
        let lower = word.to_ascii_lowercase();
        let in_statement = self.frame().mode != Mode::Skip;
        Some(match lower.as_str() {
            "create" | "alter" => self.definition(index),
            "procedure" | "function" if self.in_body => Mode::Header,
            "drop" | "truncate" | "use" | "insert" | "update" | "delete" | "merge" | "copy"
            | "bulk" => Mode::Keep,
            "replace" if !self.next_is_mark(index, b'(') => Mode::Keep,
            "load" if self.next_is(index, "data") => Mode::Keep,
            "do" if self.next_is(index, "language") || self.is_body_next(index) => Mode::Keep,
            "rename" | "table" if !in_statement => Mode::Keep,
            "declare" if self.declares_a_table(index) => Mode::KeepAll,
            // They name privileges, and `SELECT` is one.
            "grant" | "revoke" => Mode::KeepAll,
            "with" if !self.next_is_mark(index, b'(') && !in_statement => Mode::Keep,
            "exec" | "execute" | "call" => Mode::Call,
            "declare" | "set" | "if" | "while" | "begin" | "end" | "else" | "print" | "return"
            | "open" | "fetch" | "close" | "deallocate" | "raiserror" | "throw" | "commit"
            | "rollback" | "save" | "goto" | "waitfor" => Mode::Skip,
            // These begin a statement only after a semicolon.
            "elsif" | "exit" | "loop" | "for" | "raise" | "exception" | "prompt" | "comment"
            | "analyze" | "show"
                if !in_statement =>
            {
                Mode::Skip
            }
            _ => return None,
        })
    }

    /// A definition stays complete, unless it has a body.
    fn definition(&mut self, index: usize) -> Mode {
        const WITH_BODY: [&str; 6] = [
            "procedure",
            "proc",
            "function",
            "trigger",
            "package",
            "event",
        ];
        const WHOLE: [&str; 3] = ["view", "table", "type"];
        /// `OR REPLACE ALGORITHM = x DEFINER = a@b SQL SECURITY DEFINER` is the longest there is.
        const BEFORE_KIND: usize = 16;
        let kinds = self.tokens[index..]
            .iter()
            .take_while(|token| !token.is_mark(self.text, b';'))
            .filter(|token| token.kind != Kind::Hint)
            .take(BEFORE_KIND)
            .filter(|token| token.kind == Kind::Word);
        for token in kinds {
            let is = |names: &[&str]| names.iter().any(|name| token.is_word(self.text, name));
            if is(&WITH_BODY) {
                return Mode::Header;
            }
            if is(&WHOLE) {
                return Mode::KeepAll;
            }
        }
        Mode::Keep
    }

    /// Whether a variable is a table with columns: `DECLARE @t AS TABLE (a int)`.
    fn declares_a_table(&self, index: usize) -> bool {
        self.next_is(index + 1, "table")
            || self.next_is(index + 1, "as") && self.next_is(index + 2, "table")
    }

    fn is_body_next(&self, index: usize) -> bool {
        body_in_a_string(self.text, self.tokens, index + 1).is_some()
    }

    fn touches_a_number(&self, index: usize) -> bool {
        self.tokens.get(index + 1).is_some_and(|next| {
            next.gap == Gap::None && self.text.as_bytes()[next.start].is_ascii_digit()
        })
    }

    fn next_is(&self, index: usize, word: &str) -> bool {
        self.tokens
            .get(index + 1)
            .is_some_and(|next| next.is_word(self.text, word))
    }

    fn next_is_mark(&self, index: usize, mark: u8) -> bool {
        self.tokens
            .get(index + 1)
            .is_some_and(|next| next.is_mark(self.text, mark))
    }

    /// Whether the previous word is one of these.
    fn last_is(&self, words: &[&str]) -> bool {
        words
            .iter()
            .any(|word| self.last_word.eq_ignore_ascii_case(word))
    }

    /// Whether a token is alone on its line.
    fn is_alone(&self, index: usize) -> bool {
        let begins = index == 0 || self.tokens[index].gap == Gap::Line;
        begins
            && self
                .tokens
                .get(index + 1)
                .is_none_or(|next| next.gap == Gap::Line)
    }
}
