//! Runs with a model behind them, from the request to the document.

// The same over Anthropic's protocol.
mod anthropic;
// White space at the end of what is put in a model's mouth.
mod blanks;
// A scripted model behind a server, with all that can go wrong between.
mod http;
// A scripted model in the same process.
mod scripted;

/// A report with sections of several kinds, of about so many bytes.
fn report(bytes: usize) -> String {
    let mut text = String::from("{\"title\": \"Überblick – 概要\", \"sections\": [");
    for number in 0.. {
        let section = format!(
            "\n  {{\"id\": \"section-{number}\", \"content_type\": \"table\", \"rows\": [[\"a{number}\", {}, true], [\"b{number}\", -{number}.5e3, null]], \"note\": \"Zeile \\\"{number}\\\"\\n\\u00e9 🚀 {}\"}},",
            number * 7919,
            number * 31,
        );
        text.push_str(&section);
        if text.len() >= bytes {
            break;
        }
    }
    text.pop();
    text + "\n]}\n"
}
