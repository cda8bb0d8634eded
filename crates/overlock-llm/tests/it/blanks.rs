//! A document with blanks, cut everywhere, goes on in the model's own mouth and loses none.

use overlock_llm::testing::{Behaviour, Script};
use overlock_llm::{ContinuationOptions, Kpi, Outcome, PrefillStyle, Strategy};
use serde_json::Value;

use crate::http::{Ended, Speech, Trial};

/// No white space in them is longer than the shortest breath: a model that gets no further than the
/// white space that it is not shown would never get further.
const DOCUMENTS: [&str; 3] = [
    r#"{"a title": "one two three ", "rows": [ "x y", " z", 1, true ] , "end": " "}"#,
    "{\n  \"key\": [\n    \"a b\",\n    12,\n\t\"c\u{a0}d e\"\n  ]\n}",
    "[ \"left right\" , [ \"a\\n b\\t c\" ] , { \"k l\" : \"m n \\\"o\\\" p\" } ]",
];

const SHORTEST: usize = 6;

fn ended(document: &str, at: usize, speech: Speech, behaviour: Behaviour) -> Ended {
    Trial {
        script: Script {
            document: document.to_owned(),
            breath: (at, at),
            behaviours: vec![behaviour],
            seed: 1,
        },
        speech,
        prefill: PrefillStyle::LastMessage,
        options: ContinuationOptions {
            ways: vec![Strategy::Prefill],
            kpi: Kpi::Off,
            ..ContinuationOptions::default()
        },
        ..Trial::default()
    }
    .run()
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

#[test]
fn a_model_that_goes_on_from_what_it_is_shown_is_joined_to_the_byte() {
    for speech in [Speech::OpenAi, Speech::Anthropic] {
        for document in DOCUMENTS {
            for at in SHORTEST..document.len() {
                let ended = ended(document, at, speech, Behaviour::AsAsked);
                let told = format!("{speech:?} cut at {at}: {:?}", ended.obstacle);
                assert_eq!(ended.run.outcome(), Some(&Outcome::Complete), "{told}");
                assert_eq!(ended.run.text(), document, "{told}");
            }
        }
    }
}

#[test]
fn a_model_that_remembers_its_blanks_is_joined_without_losing_one() {
    for speech in [Speech::OpenAi, Speech::Anthropic] {
        for document in DOCUMENTS {
            for at in SHORTEST..document.len() {
                let ended = ended(document, at, speech, Behaviour::RemembersBlanks);
                let told = format!("{speech:?} cut at {at}: {:?}", ended.obstacle);
                assert_eq!(ended.run.outcome(), Some(&Outcome::Complete), "{told}");
                assert_eq!(read(ended.run.text()), read(document), "{told}");
            }
        }
    }
}
