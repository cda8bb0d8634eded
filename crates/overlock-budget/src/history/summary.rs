//! Summarises dropped messages in a few lines.

/// A summary of dropped messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// A heading, and one line for each message that is not omitted, in order.
    pub text: String,
    /// How many messages have no line.
    pub omitted: usize,
    /// The tokens of the text.
    pub tokens: u64,
}

/// Summarises dropped messages in at most `limit` tokens, with one line each.
///
/// If not all lines fit, the newest are kept. Lines are in order, and each is cut at its first line
/// break. `None` means that there are no lines, or that not even the heading fits.
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
    // The number of lines is first estimated line by line, because counting all lines together for
    // every number would be quadratic.
    let mut room = limit;
    let mut omitted = lines.len();
    while let Some(before) = omitted.checked_sub(1) {
        let Some(left) = room.checked_sub(count(first_line(lines[before].as_ref()))) else {
            break;
        };
        room = left;
        omitted = before;
    }
    // Then the text is counted as a whole; each time it is too long, twice as many lines are omitted.
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
