//! What does an ordinary answer say, at a glance?
//!
//! An answer is gone through once, without a list of what is in it. It is an answer of plain text,
//! in JSON as nearly every server writes it, or nothing is said about it at all: whatever is unusual
//! is for whoever reads with more care.

use overlock_model::Usage;

use super::plain_text::PlainText;

/// An answer whose choices are texts that ended by themselves.
pub(super) fn plain_text(answer: &str) -> Option<PlainText> {
    let mut skim = Skim {
        text: answer,
        at: 0,
    };
    let (mut choices, mut usage, mut error) = (None, None, None);
    skim.object(|skim, name| match name {
        "choices" => once(&mut choices, skim.array(Skim::choice)),
        "usage" => once(&mut usage, skim.usage()),
        "error" => once(&mut error, skim.null()),
        _ => skim.value(DEEPEST),
    })?;
    choices?;
    skim.space();
    (skim.at == answer.len()).then(|| usage.unwrap_or_default())
}

/// How deep what is passed over may be.
const DEEPEST: u8 = 16;

/// Keeps what a member says, which must not be said twice.
fn once<T>(kept: &mut Option<T>, read: Option<T>) -> Option<()> {
    kept.is_none().then_some(())?;
    *kept = Some(read?);
    Some(())
}

/// A text, and how far it is read. Every method gives nothing where the text is not what it reads.
struct Skim<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Skim<'a> {
    fn choice(&mut self) -> Option<()> {
        let (mut finish, mut message) = (None, None);
        self.object(|skim, name| match name {
            "finish_reason" => once(&mut finish, skim.string().filter(|word| *word == "stop")),
            "message" => once(&mut message, skim.message()),
            _ => skim.value(DEEPEST),
        })?;
        finish.and(message)
    }

    fn message(&mut self) -> Option<()> {
        let (mut content, mut calls, mut refusal) = (None, None, None);
        self.object(|skim, name| match name {
            "content" => once(&mut content, skim.string().filter(|text| is_text(text))),
            "tool_calls" => once(&mut calls, skim.null()),
            "refusal" => once(&mut refusal, skim.null()),
            _ => skim.value(DEEPEST),
        })?;
        content.map(|_| ())
    }

    fn usage(&mut self) -> Option<PlainText> {
        if self.next() == Some(b'n') {
            self.null()?;
            return Some(PlainText::default());
        }
        let (mut input, mut output, mut cached) = (None, None, None);
        self.object(|skim, name| match name {
            "prompt_tokens" => once(&mut input, skim.count()),
            "completion_tokens" => once(&mut output, skim.count()),
            "prompt_tokens_details" => once(&mut cached, skim.cached()),
            _ => skim.value(DEEPEST),
        })?;
        let usage = Usage {
            input: input?,
            output: output?,
            cached,
        };
        Some(PlainText { usage: Some(usage) })
    }

    /// The cached input tokens. An answer that does not report them here is read with more care.
    fn cached(&mut self) -> Option<u64> {
        let mut cached = None;
        self.object(|skim, name| match name {
            "cached_tokens" => once(&mut cached, skim.count()),
            _ => skim.value(DEEPEST),
        })?;
        cached
    }

    fn object(&mut self, mut member: impl FnMut(&mut Self, &'a str) -> Option<()>) -> Option<()> {
        self.sign(b'{')?;
        if self.sign(b'}').is_some() {
            return Some(());
        }
        loop {
            // One that is written with escapes is none that is looked for.
            let name = self.string()?;
            self.sign(b':')?;
            member(self, name)?;
            if self.sign(b',').is_none() {
                return self.sign(b'}');
            }
        }
    }

    fn array(&mut self, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.sign(b'[')?;
        if self.sign(b']').is_some() {
            return Some(());
        }
        loop {
            item(self)?;
            if self.sign(b',').is_none() {
                return self.sign(b']');
            }
        }
    }

    /// Passes over any value.
    fn value(&mut self, depth: u8) -> Option<()> {
        let inner = depth.checked_sub(1)?;
        match self.next()? {
            b'"' => self.string().map(|_| ()),
            b'{' => self.object(|skim, _| skim.value(inner)),
            b'[' => self.array(|skim| skim.value(inner)),
            b'0'..=b'9' => self.count().map(|_| ()),
            b'n' => self.null(),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            _ => None,
        }
    }

    /// A string as it is written, if it has none but short escapes.
    fn string(&mut self) -> Option<&'a str> {
        self.sign(b'"')?;
        let begin = self.at;
        let bytes = self.text.as_bytes();
        loop {
            let rest = bytes.get(self.at..)?;
            self.at += rest
                .iter()
                .position(|&byte| IS_SPECIAL[usize::from(byte)])?;
            match bytes[self.at] {
                b'"' => break,
                b'\\' if b"\"\\/bfnrt".contains(bytes.get(self.at + 1)?) => self.at += 2,
                _ => return None,
            }
        }
        let string = self.text.get(begin..self.at);
        self.at += 1;
        string
    }

    /// A whole number that is not too large.
    fn count(&mut self) -> Option<u64> {
        const DIGITS: usize = 18;
        self.space();
        let rest = &self.text.as_bytes()[self.at..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let has_zeros = digits > 1 && rest[0] == b'0';
        if digits == 0 || digits > DIGITS || has_zeros {
            return None;
        }
        self.at += digits;
        let digits = rest[..digits].iter();
        Some(digits.fold(0, |value, digit| value * 10 + u64::from(digit - b'0')))
    }

    fn null(&mut self) -> Option<()> {
        self.word("null")
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.space();
        let rest = &self.text.as_bytes()[self.at..];
        rest.starts_with(word.as_bytes()).then_some(())?;
        self.at += word.len();
        Some(())
    }

    fn sign(&mut self, sign: u8) -> Option<()> {
        (self.next()? == sign).then_some(())?;
        self.at += 1;
        Some(())
    }

    /// The next byte that is no space.
    fn next(&mut self) -> Option<u8> {
        self.space();
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }
}

/// What does not simply stand for itself in a string.
const IS_SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut control = 0;
    while control < 0x20 {
        special[control] = true;
        control += 1;
    }
    special[b'"' as usize] = true;
    special[b'\\' as usize] = true;
    special
};

/// Whether a content holds no document, not even in a fence. An escape at its beginning may be a
/// space.
fn is_text(written: &str) -> bool {
    !written.trim_start().starts_with(['{', '[', '\\']) && !written.contains("```")
}
