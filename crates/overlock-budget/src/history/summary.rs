//! Folds what was dropped into a few lines.

/// A short account of messages that are no longer there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// A heading, and one line for each message that is still told of, in order of time.
    pub text: String,
    /// How many messages are only counted.
    pub omitted: usize,
    /// What the text counts.
    pub tokens: u64,
}

/// Tells of dropped messages in at most `limit` tokens, with one line each.
///
/// If there is no room for all lines the newest are told. Lines are given in order of time, and
/// each is cut at its first line break. `None` means that there is nothing to tell, or not even
/// room for the heading.
///
/// ```
/// use overlock_budget::summarise;
///
/// let words = |text: &str| text.split_whitespace().count() as u64;
/// let lines = ["user: what is the longest river?", "assistant: the Nile", "user: thanks"];
/// let summary = summarise(&lines, 11, &words).expect("there is room");
/// assert_eq!(
///     summary.text,
///     "[Earlier conversation (3 messages, 1 omitted)]\nassistant: the Nile\nuser: thanks"
/// );
/// ```
pub fn summarise<L: AsRef<str>>(
    lines: &[L],
    limit: u64,
    count: &dyn Fn(&str) -> u64,
) -> Option<Summary> {
    if lines.is_empty() {
        return None;
    }
    // How many lines fit is first estimated line by line, since counting them all together for
    // every number of lines would be quadratic.
    let mut room = limit;
    let mut omitted = lines.len();
    while let Some(before) = omitted.checked_sub(1) {
        let Some(left) = room.checked_sub(count(first_line(lines[before].as_ref()))) else {
            break;
        };
        room = left;
        omitted = before;
    }
    // Then the whole is counted, and twice as many lines go each time it is too much.
    let mut step = 1;
    loop {
        let text = write(lines, omitted);
        let tokens = count(&text);
        if tokens <= limit {
            return Some(Summary {
                text,
                omitted,
                tokens,
            });
        }
        if omitted == lines.len() {
            return None;
        }
        omitted = lines.len().min(omitted + step);
        step *= 2;
    }
}

fn write<L: AsRef<str>>(lines: &[L], omitted: usize) -> String {
    let all = lines.len();
    let plural = if all == 1 { "" } else { "s" };
    let rest = match omitted {
        0 => String::new(),
        omitted => format!(", {omitted} omitted"),
    };
    let mut text = format!("[Earlier conversation ({all} message{plural}{rest})]");
    for line in &lines[omitted..] {
        text.push('\n');
        text.push_str(first_line(line.as_ref()));
    }
    text
}

fn first_line(text: &str) -> &str {
    text.trim_start().lines().next().unwrap_or_default()
}
