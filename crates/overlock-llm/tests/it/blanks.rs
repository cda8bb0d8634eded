//! A document with white space, cut at every place and continued by prefill, loses none of it.

use overlock_llm::testing::{Behaviour, Script};
use overlock_llm::{ContinuationOptions, Kpi, Outcome, PrefillStyle, Strategy};
use serde_json::Value;

use crate::http::{Api, Trial, TrialResult};

/// Their runs of white space are shorter than the shortest piece. Otherwise the model could never
/// get beyond white space that a prefill leaves out.
const DOCUMENTS: [&str; 3] = [
    r#"{"a title": "one two three ", "rows": [ "x y", " z", 1, true ] , "end": " "}"#,
    "{\n  \"key\": [\n    \"a b\",\n    12,\n\t\"c\u{a0}d e\"\n  ]\n}",
    "[ \"left right\" , [ \"a\\n b\\t c\" ] , { \"k l\" : \"m n \\\"o\\\" p\" } ]",
];

const SHORTEST: usize = 6;

fn ended(document: &str, at: usize, api: Api, behaviour: Behaviour) -> TrialResult {
    Trial {
        script: Script {
            document: document.to_owned(),
            breath: (at, at),
            behaviours: vec![behaviour],
            seed: 1,
        },
        api,
        prefill: PrefillStyle::LastMessage,
        options: ContinuationOptions {
            strategies: vec![Strategy::Prefill],
            kpi: Kpi::Off,
            ..ContinuationOptions::default()
        },
        ..Trial::default()
    }
    .run()
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

#[test]
fn a_model_that_continues_the_prefill_is_joined_exactly() {
    for api in [Api::OpenAi, Api::Anthropic] {
        for document in DOCUMENTS {
            for at in SHORTEST..document.len() {
                let ended = ended(document, at, api, Behaviour::AsAsked);
                let case = format!("{api:?} cut at {at}: {:?}", ended.stop_cause);
                assert_eq!(ended.run.outcome(), Some(&Outcome::Complete), "{case}");
                assert_eq!(ended.run.text(), document, "{case}");
            }
        }
    }
}

#[test]
fn a_model_that_continues_after_the_left_out_white_space_loses_none() {
    for api in [Api::OpenAi, Api::Anthropic] {
        for document in DOCUMENTS {
            for at in SHORTEST..document.len() {
                let ended = ended(document, at, api, Behaviour::RemembersBlanks);
                let case = format!("{api:?} cut at {at}: {:?}", ended.stop_cause);
                assert_eq!(ended.run.outcome(), Some(&Outcome::Complete), "{case}");
                assert_eq!(parse(ended.run.text()), parse(document), "{case}");
            }
        }
    }
}
