use serde_json::{Value, json};

use crate::program::{Run, TemporaryFolder, overlock};

/// A new store.
struct Rooms {
    folder: TemporaryFolder,
}

impl Rooms {
    fn new(name: &str) -> Self {
        let folder = TemporaryFolder::new(name);
        Self { folder }
    }

    fn chat(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Run {
        let file = self.folder.path().join("rooms.db");
        let store = format!("sqlite://{}", file.display());
        overlock(
            &[&["chat"], arguments, &["--store", &store]].concat(),
            input,
        )
    }

    #[track_caller]
    fn says(&self, sender: &str, text: &str) {
        let run = self.chat(&["post", "garden", text, "--as", sender], "");
        assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    }

    #[track_caller]
    fn remembers(&self, persona: &str, text: &str, importance: &str) {
        let run = self.chat(&["remember", persona, text, "--importance", importance], "");
        assert_eq!(run.code, 0, "{}", run.stderr);
    }

    /// The context of the next answer of `helper`.
    #[track_caller]
    fn context(&self, arguments: &[&str]) -> Value {
        let context = ["context", "garden", "--persona", "helper", "--json"];
        let run = self.chat(&[&context, arguments].concat(), "");
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.json()
    }
}

#[test]
fn context_has_the_messages_and_memories_of_a_persona() {
    let rooms = Rooms::new("chat-context");
    rooms.says("ana", "Which rake is right for moss?");
    rooms.says("helper", "The R 40.");
    rooms.says("Jörg K.", "And how long is its handle?");
    rooms.remembers("helper", "Ana is tall.", "0.8");
    rooms.remembers("helper", "It rained on Monday.", "0.5");
    rooms.remembers("helper", "Handles break.", "0.6");
    rooms.remembers("other", "Nobody else's business.", "1");

    let context = rooms.context(&["--model", "gpt-4o"]);
    let history = context["conversation_history"].as_array().expect("a list");
    let said: Vec<Value> = history
        .iter()
        .map(|said| json!([said["sender"], said["role"], said["text"]]))
        .collect();
    assert_eq!(
        json!(said),
        json!([
            ["ana", "user", "Which rake is right for moss?"],
            ["helper", "assistant", "The R 40."],
            ["Jörg K.", "user", "And how long is its handle?"],
        ])
    );
    let memories = context["private_memories"].as_array().expect("a list");
    let memories: Vec<&Value> = memories.iter().map(|memory| &memory["text"]).collect();
    assert_eq!(json!(memories), json!(["Ana is tall.", "Handles break."]));
    let metadata = &context["metadata"];
    assert_eq!(metadata["message_count"], 3);
    assert_eq!(metadata["memory_count"], 2);
    assert_eq!(metadata["adjusted_max_tokens"], 3000);
    assert_eq!(
        metadata["input_token_count"],
        context["fit"]["input_token_count"]
    );
    let sent = context["fit"]["request"].to_string();
    assert!(sent.contains("Ana is tall."), "{sent}");
    assert!(sent.contains(r#""name":"J_rg_K_""#), "{sent}");
    assert!(!sent.contains("rained"), "{sent}");
}

#[test]
fn a_long_conversation_leaves_less_for_the_answer() {
    let rooms = Rooms::new("chat-long");
    let long = "a word or two about tools for the garden, ".repeat(25);
    for number in 0..50 {
        rooms.says("ana", &format!("{number}: {long}"));
    }
    let model = ["--model", "gpt-3.5-turbo", "--max-tokens", "5000"];
    let context = rooms.context(&[&model[..], &["--max-messages", "50"]].concat());
    let tokens = |name: &str| context["metadata"][name].as_u64().expect("a number");
    assert!(tokens("input_token_count") > 10_000, "{context}");
    assert!(tokens("adjusted_max_tokens") < 5000, "{context}");
    assert_eq!(tokens("message_count"), 50);

    let context = rooms.context(&model);
    assert_eq!(context["safe_message_count"], 34);
    assert_eq!(context["metadata"]["message_count"], 34);
    let first = &context["conversation_history"][0]["text"];
    assert!(first.as_str().is_some_and(|text| text.starts_with("16: ")));
}

#[test]
fn a_message_that_does_not_fit_drops_no_memory() {
    let rooms = Rooms::new("chat-huge");
    rooms.remembers("helper", "Ana is tall", "0.9");
    rooms.says("ana", "first");
    let huge = "a word or two ".repeat(300_000);
    let run = rooms.chat(&["post", "garden", "-", "--as", "ana"], &huge);
    assert_eq!(run.code, 0, "{}", run.stderr);
    rooms.says("ana", "and then");
    rooms.says("ana", "last question");
    let context = rooms.context(&["--model", "gpt-4o"]);
    let history = context["conversation_history"].as_array().expect("a list");
    let texts: Vec<&Value> = history.iter().map(|message| &message["text"]).collect();
    assert_eq!(json!(texts), json!(["and then", "last question"]));
    assert_eq!(context["private_memories"][0]["text"], "Ana is tall");
    assert_eq!(context["metadata"]["memory_count"], 1);
}

#[test]
fn message_count_is_the_length_of_the_conversation() {
    let rooms = Rooms::new("chat-counted");
    rooms.says("ana", "Which rake is right for moss?");
    let notice = ["post", "garden", "Be kind.", "--as", "host"];
    let run = rooms.chat(&[&notice[..], &["--role", "system"]].concat(), "");
    assert_eq!(run.code, 0, "{}", run.stderr);
    rooms.says("helper", "The R 40.");
    rooms.says("ana", "Thanks!");
    rooms.folder.write("system.txt", "You know gardens.");
    let system = rooms.folder.path().join("system.txt");
    let system = system.display().to_string();
    let context = rooms.context(&["--model", "gpt-4o", "--system", &system]);
    let history = context["conversation_history"].as_array().expect("a list");
    assert_eq!(context["metadata"]["message_count"], json!(history.len()));
    let roles: Vec<&Value> = history.iter().map(|said| &said["role"]).collect();
    assert_eq!(
        json!(roles),
        json!(["user", "system", "assistant", "user"]),
        "the system prompt is no message of the room"
    );
    assert_eq!(context["fit"]["message_count"], 3);
}

#[test]
fn prints_messages_and_the_window() {
    let rooms = Rooms::new("chat-seen");
    rooms.says("ana", "Is it \u{1b}[31mred?");
    rooms.remembers("helper", "Ana likes red.", "0.9");
    let context = ["context", "garden", "--persona", "helper"];
    let run = rooms.chat(&[&context[..], &["--model", "gpt-4o"]].concat(), "");
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("ana  Is it"), "{}", run.stdout);
    assert!(run.stdout.contains("Ana likes red."), "{}", run.stdout);
    assert!(run.stdout.contains("128,000"), "{}", run.stdout);
    assert!(!run.stdout.contains('\u{1b}'), "{}", run.stdout);
}

#[test]
fn reads_texts_from_standard_input() {
    let rooms = Rooms::new("chat-input");
    let run = rooms.chat(&["post", "garden", "-", "--as", "ana"], "two\nlines\n");
    assert_eq!(run.code, 0, "{}", run.stderr);
    let context = rooms.context(&["--model", "gpt-4o"]);
    assert_eq!(context["conversation_history"][0]["text"], "two\nlines");
}

#[test]
fn no_byte_of_a_text_that_is_no_utf8_is_lost() {
    let rooms = Rooms::new("chat-encoding");
    let post = ["post", "garden", "-", "--as", "ana"];
    let remember = ["remember", "helper", "-", "--importance", "0.9"];
    for arguments in [&post[..], &remember[..]] {
        let run = rooms.chat(arguments, b"caf\xe9 au lait \n");
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(run.stderr.contains("Windows-1252"), "{}", run.stderr);
    }
    let context = rooms.context(&["--model", "gpt-4o"]);
    assert_eq!(context["conversation_history"][0]["text"], "café au lait ");
    assert_eq!(context["private_memories"][0]["text"], "café au lait ");
    // With a byte 0 it is neither this nor UTF-8.
    let run = rooms.chat(&post, b"caf\xe9 \0");
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("hint: give text in"), "{}", run.stderr);
}

#[test]
fn refuses_a_text_without_visible_characters() {
    let rooms = Rooms::new("chat-unseen");
    for text in ["\0", "\0\n", "\u{1b}", " \t\r\n", ""] {
        let run = rooms.chat(&["post", "garden", "-", "--as", "ana"], text);
        assert_eq!(run.code, 2, "{text:?}: {}", run.stderr);
        assert!(run.stderr.contains("the text is empty"), "{}", run.stderr);
    }
    let run = rooms.chat(&["post", "garden", "-", "--as", "ana"], "a\0b");
    assert_eq!(run.code, 0, "{}", run.stderr);
    let context = rooms.context(&["--model", "gpt-4o"]);
    assert_eq!(context["conversation_history"][0]["text"], "a\0b");
}

#[test]
fn json_shows_what_was_stored() {
    let rooms = Rooms::new("chat-machines");
    let post = ["post", "garden", "Hello.", "--as", "ana", "--json"];
    let posted = rooms.chat(&post, "").json();
    assert_eq!(
        json!([posted["room"], posted["sender"], posted["role"]]),
        json!(["garden", "ana", "user"])
    );
    let remember = ["remember", "helper", "x", "--importance", "0.8", "--json"];
    let remembered = rooms.chat(&remember, "").json();
    assert_eq!(
        json!([remembered["persona"], remembered["importance"]]),
        json!(["helper", 0.8])
    );
}

#[test]
fn an_empty_room_has_no_context() {
    let rooms = Rooms::new("chat-empty");
    rooms.says("ana", "Hello.");
    let context = ["context", "elsewhere", "--persona", "helper"];
    let run = rooms.chat(&[&context[..], &["--model", "gpt-4o"]].concat(), "");
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("the room `elsewhere` is empty"));
}

#[test]
fn reports_bad_usage() {
    let rooms = Rooms::new("chat-wrong");
    for (arguments, expected) in [
        (
            &["remember", "helper", "x", "--importance", "1.5"][..],
            "from 0 to 1",
        ),
        (
            &["remember", "helper", "x", "--importance", "much"],
            "from 0 to 1",
        ),
        (&["remember", "helper", "x"], "--importance"),
        (&["post", "garden", " ", "--as", "ana"], "the text is empty"),
        (&["post", "", "text", "--as", "ana"], "visible character"),
        (
            &[
                "context",
                "garden",
                "--persona",
                "helper",
                "--max-messages",
                "0",
            ],
            "--max-messages",
        ),
        (&["post", "garden", "text", "--as", "a\nb"], "no line break"),
        (
            &[
                "context",
                "garden",
                "--persona",
                "helper",
                "--model",
                "gpt-4o",
            ],
            "there is no store",
        ),
    ] {
        let run = rooms.chat(arguments, "");
        assert_eq!(run.code, 2, "{arguments:?}: {}", run.stderr);
        assert!(
            run.stderr.contains(expected),
            "{arguments:?}: {}",
            run.stderr
        );
    }
}
