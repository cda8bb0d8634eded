//! Finds what can go in SQL: everything but definitions, and the skeleton of what they do.
//!
//! Nothing is parsed: real SQL is more than any grammar knows. Words at the places where
//! statements begin decide what is kept. A table keeps its columns, a procedure its parameters,
//! and of its body the tables that are read and written and the predicates on them. Lists of
//! columns, assigned values, rows, variables and control flow go.

use std::ops::Range;

use super::{Elision, lines_mark, without};
use crate::compact::layout::{Docs, LaidOut, Style, lay_out};
use crate::lex::dialect::Dialect;
use crate::lex::sql::{Sql, with_executed, with_hints_before};
use crate::lex::{Ambiguous, Gap, Kind, Lexer, Token};

/// The outline of a text, already without comments and layout.
pub(crate) fn outline(text: &str) -> Result<LaidOut, Ambiguous> {
    outline_speaking(text, Sql::new(text).dialect())
}

/// The outline of a text of a known dialect, or of none. What goes may be what told the dialect,
/// so what stays is read as the whole was.
pub(crate) fn outline_speaking(text: &str, dialect: Option<Dialect>) -> Result<LaidOut, Ambiguous> {
    /// A function in a string in a function: that is where it ends.
    const DEPTH: usize = 2;
    let skeleton = skeleton(text, dialect, DEPTH)?;
    let shorter = laid_out(&skeleton, dialect)?;
    Ok(LaidOut {
        text: without_repetition(&shorter.text, dialect)?,
        ..shorter
    })
}

fn laid_out(text: &str, dialect: Option<Dialect>) -> Result<LaidOut, Ambiguous> {
    lay_out(&mut Sql::speaking(text, dialect), Docs::Drop, Style::Sql)
}

/// The text without what is not part of the outline.
fn skeleton(text: &str, dialect: Option<Dialect>, depth: usize) -> Result<String, Ambiguous> {
    let mut lexer = Sql::speaking(text, dialect);
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next()? {
        if token.kind.is_code() {
            tokens.push(token);
        }
    }
    let tokens = with_executed(text, dialect, tokens);
    let mut reader = Reader {
        text,
        tokens: &tokens,
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
    keep_around_kept(text, &tokens, &mut kept);
    let elisions = elisions(text, &tokens, &kept, |inside| {
        let depth = depth.checked_sub(1)?;
        let body = skeleton(inside, dialect, depth).ok()?;
        Some(laid_out(&body, dialect).ok()?.text)
    });
    Ok(without(text, &elisions))
}

/// What closes a comment that is run.
const CLOSES_EXECUTED: &str = "*/";

/// Whether a hint only opens a comment that is run: `/*!50706`.
fn opens_executed(hint: &str) -> bool {
    hint.starts_with("/*") && !hint.ends_with("*/")
}

/// A comment that is run stays open and closed around what stays of it.
fn keep_around_kept(text: &str, tokens: &[Token], kept: &mut [bool]) {
    let mut opened = None;
    for index in 0..tokens.len() {
        if tokens[index].kind != Kind::Hint {
            continue;
        }
        match (tokens[index].text(text), opened.take()) {
            (CLOSES_EXECUTED, Some(open)) => {
                let stays = kept[open..index].contains(&true);
                (kept[open], kept[index]) = (stays, stays);
            }
            (hint, _) if opens_executed(hint) => opened = Some(index),
            (_, open) => opened = open,
        }
    }
}

/// What becomes of the tokens of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// They go.
    Skip,
    /// They stay.
    Keep,
    /// They stay, lists of columns included: a view.
    KeepAll,
    /// They stay until the body of a definition begins.
    Header,
    /// What is selected goes, up to the tables.
    SelectList,
    /// What is assigned goes, up to the tables or the predicate.
    Assignments,
    /// The rows go, up to the end of the statement.
    Rows,
    /// The name of what is called stays.
    Call,
    /// What it is called with goes.
    Arguments,
}

/// A statement, or what stands in parentheses in one.
#[derive(Clone, Copy, Debug)]
struct Frame {
    mode: Mode,
    /// A query began here, so that its `FROM` is meant and not that of a function.
    selects: bool,
    /// Whether the parenthesis that opened it stays.
    opened: bool,
    /// So many `CASE` are open in it, whose words begin no statement.
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

struct Reader<'a> {
    text: &'a str,
    tokens: &'a [Token],
    frames: Vec<Frame>,
    /// Inside a procedure, a function or a package.
    in_body: bool,
    /// The statement assigns values after `SET`.
    updates: bool,
    last_word: &'a str,
    /// Where `SELECT` stands in a statement that has named no table yet.
    tableless: Vec<usize>,
    /// Where it stands in those that never did: `SELECT @a = 1`.
    gone: Vec<usize>,
}

impl<'a> Reader<'a> {
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
            Kind::Quoted if token.text(self.text).starts_with('$') && self.in_body => {
                // The body of a function of PostgreSQL; its language comes after it.
                self.reset(false);
                self.frame().mode = Mode::Keep;
                true
            }
            // An executed comment is no more than what stands in it.
            Kind::Hint if opens_executed(token.text(self.text)) => false,
            Kind::Hint if token.text(self.text) == CLOSES_EXECUTED => false,
            // What is never closed is not known to be something that can go.
            Kind::Opaque => true,
            _ => {
                self.last_word = "";
                self.stays()
            }
        }
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
            return self.header(word);
        }
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        let nested = self.frames.len() > 1;
        if is("select") {
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
        if mode != Mode::Skip && mode != Mode::Call && self.continues(word) {
            return self.stays();
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
        let begins = !nested && self.begins(index);
        if begins && let Some(mode) = self.statement(index, word) {
            self.end_statement();
            *self.frame() = Frame::new(mode);
            self.updates = is("update") || is("merge") || is("insert");
            return mode != Mode::Skip;
        }
        if mode == Mode::Call {
            let is_name = index > 0 && self.tokens[index - 1].is_mark(self.text, b'.')
                || ["exec", "execute", "call"]
                    .iter()
                    .any(|call| self.last_word.eq_ignore_ascii_case(call));
            let assigned = index > 0 && self.tokens[index - 1].is_mark(self.text, b'=');
            if !is_name && !assigned {
                self.frame().mode = Mode::Arguments;
            }
        }
        self.stays()
    }

    /// A word of the head of a definition: the body may begin here.
    fn header(&mut self, word: &str) -> bool {
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        let nested = self.frames.len() > 1;
        let typed = self.last_word.starts_with('@')
            || ["execute", "exec"]
                .iter()
                .any(|name| self.last_word.eq_ignore_ascii_case(name));
        let opens = (is("as") || is("is")) && !typed && !nested;
        if opens || (is("begin") && !nested) {
            *self.frame() = Frame::new(Mode::Skip);
            self.in_body = true;
        }
        true
    }

    /// Whether a word goes on with the statement it stands in, and what it changes.
    fn continues(&mut self, word: &str) -> bool {
        let is = |names: &[&str]| names.iter().any(|name| word.eq_ignore_ascii_case(name));
        let frame = self.frame();
        match frame.mode {
            Mode::SelectList if frame.selects && is(&["from", "into", "where", "bulk"]) => {
                frame.mode = Mode::Keep;
                self.tableless.clear();
                true
            }
            Mode::Assignments if is(&["from", "where", "output", "returning"]) => {
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
        // An expression goes on after these, on whatever line.
        if b",=<>+-|"
            .iter()
            .any(|mark| before.is_mark(self.text, *mark))
        {
            return false;
        }
        // In a query, what comes after `AS` is a name.
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

    /// What becomes of the statement that begins with this word, if one does.
    fn statement(&mut self, index: usize, word: &str) -> Option<Mode> {
        let lower = word.to_ascii_lowercase();
        let in_statement = self.frame().mode != Mode::Skip;
        Some(match lower.as_str() {
            "create" | "alter" => self.definition(index),
            "procedure" | "function" if self.in_body => Mode::Header,
            "drop" | "truncate" | "use" | "insert" | "update" | "delete" | "merge" | "copy"
            | "bulk" => Mode::Keep,
            "replace" if self.next_is(index, "into") => Mode::Keep,
            "load" if self.next_is(index, "data") => Mode::Keep,
            // They name rights, and `SELECT` is one.
            "grant" | "revoke" => Mode::KeepAll,
            "with" if !self.next_is_mark(index, b'(') && !in_statement => Mode::Keep,
            "exec" | "execute" | "call" => Mode::Call,
            "declare" | "set" | "if" | "while" | "begin" | "end" | "else" | "print" | "return"
            | "open" | "fetch" | "close" | "deallocate" | "raiserror" | "throw" | "commit"
            | "rollback" | "save" | "goto" | "waitfor" => Mode::Skip,
            // Where these begin a statement, a semicolon ended the one before.
            "elsif" | "exit" | "loop" | "for" | "raise" | "exception" | "perform" | "prompt"
            | "comment" | "analyze" | "show"
                if !in_statement =>
            {
                Mode::Skip
            }
            _ => return None,
        })
    }

    /// A definition stays whole, unless it has a body.
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
        let kinds = self.tokens[index..]
            .iter()
            .filter(|token| token.kind != Kind::Hint)
            .take(8)
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

    /// Whether a token has a line to itself.
    fn is_alone(&self, index: usize) -> bool {
        let begins = index == 0 || self.tokens[index].gap == Gap::Line;
        begins
            && self
                .tokens
                .get(index + 1)
                .is_none_or(|next| next.gap == Gap::Line)
    }
}

/// The runs of tokens that go, each with its mark.
fn elisions(
    text: &str,
    tokens: &[Token],
    kept: &[bool],
    outlined: impl Fn(&str) -> Option<String>,
) -> Vec<Elision> {
    let mut elisions: Vec<Elision> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let token = tokens[at];
        let from = at;
        at += 1;
        if let Some((tag, inside)) = body_in_a_string(text, token)
            && let Some(body) = outlined(inside)
            && body.len() + 2 < inside.len()
        {
            elisions.push(Elision {
                range: token.start..token.end,
                mark: format!("{tag}\n{body}\n{tag}"),
            });
            continue;
        }
        if kept[from] {
            continue;
        }
        while at < tokens.len() && !kept[at] && body_in_a_string(text, tokens[at]).is_none() {
            at += 1;
        }
        let range = token.start..tokens[at - 1].end;
        let piece = &text[range.clone()];
        let begins = from == 0 || token.gap == Gap::Line;
        let breaks = piece.contains('\n')
            || begins && tokens.get(at).is_none_or(|next| next.gap == Gap::Line);
        let mark = if breaks {
            lines_mark(piece)
        } else {
            "…".to_owned()
        };
        let mark = apart(text, &range, mark);
        // What a client reads by the line is known by what stands before it, which may be gone,
        // and a comment that is run has two ends.
        let mut run = tokens[from..at].iter();
        let must_go = run.any(|it| matches!(it.kind, Kind::Line | Kind::Hint));
        if mark.len() < piece.len() || must_go {
            elisions.push(Elision { range, mark });
        }
    }
    elisions
}

/// A mark is no part of a name: `SELECT'a'FROM t` becomes `SELECT … FROM t`.
fn apart(text: &str, range: &Range<usize>, mark: String) -> String {
    let bytes = text.as_bytes();
    let touches = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at))
            .is_some_and(|&byte| !byte.is_ascii_whitespace() && !b"();,".contains(&byte))
    };
    let before = touches(range.start.checked_sub(1));
    let after = touches(Some(range.end));
    match (before, after) {
        (false, false) => mark,
        (true, false) => format!(" {mark}"),
        (false, true) => format!("{mark} "),
        (true, true) => format!(" {mark} "),
    }
}

/// A function of PostgreSQL has its body in a string, which is outlined like the text around it:
/// the tag of the string, and what it holds.
fn body_in_a_string(text: &str, token: Token) -> Option<(&str, &str)> {
    let literal = token.text(text);
    if token.kind != Kind::Quoted || !literal.starts_with('$') || !literal.contains('\n') {
        return None;
    }
    let tag = literal[1..].find('$').map(|end| &literal[..end + 2])?;
    let inside = literal.strip_prefix(tag)?.strip_suffix(tag)?;
    Some((tag, inside))
}

/// Says of lines that are the same, one after the other, how many there are. A string is one line,
/// however many it has.
fn without_repetition(text: &str, dialect: Option<Dialect>) -> Result<String, Ambiguous> {
    const WORTH_IT: usize = 3;
    let mut lexer = Sql::speaking(text, dialect);
    let mut lines = Vec::new();
    let mut from = 0;
    while let Some(token) = lexer.next()? {
        if token.gap == Gap::Line {
            lines.push(&text[from..token.start]);
            from = token.start;
        }
    }
    lines.push(&text[from..]);
    let mut out = String::with_capacity(text.len());
    for same in lines.chunk_by(|a, b| a.trim_end_matches('\n') == b.trim_end_matches('\n')) {
        let more = same.len() - 1;
        let mark = format!("… {more} more lines like it");
        if more < WORTH_IT || mark.len() >= more * same[0].len() {
            out.extend(same.iter().copied());
            continue;
        }
        out.push_str(same[0]);
        out.push_str(&mark);
        if same[more].ends_with('\n') {
            out.push('\n');
        }
    }
    Ok(out)
}
