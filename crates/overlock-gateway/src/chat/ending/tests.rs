//! How the ends of parts become one outcome.

use super::PartState::{Complete, Cut, Invalid, Unclear};
use super::*;

const ANY: [Option<&str>; 4] = [None, Some("stop"), Some("length"), Some("tool_calls")];

#[track_caller]
fn check(reported: Option<&str>, content: &[PartState], calls: &[PartState], finish: Option<&str>) {
    let mut ending = Ending::new(reported.map(str::to_owned));
    for state in content {
        ending.add_content(*state);
    }
    for state in calls {
        ending.add_call(*state);
    }
    let found = ending.finish();
    assert_eq!(found, finish, "{reported:?}, {content:?}, {calls:?}");
}

#[test]
fn keeps_the_finish_reason_of_the_upstream() {
    for reported in ANY {
        check(reported, &[], &[], reported);
        check(reported, &[Unclear], &[], reported);
    }
    check(Some("stop"), &[], &[Complete], Some("stop"));
    check(Some("tool_calls"), &[Complete], &[], Some("tool_calls"));
    check(Some("tool_calls"), &[], &[Unclear], Some("tool_calls"));
}

#[test]
fn an_answer_reported_as_cut_is_complete_if_its_parts_are() {
    for reported in [None, Some("length")] {
        check(reported, &[Complete], &[], Some("stop"));
        check(reported, &[], &[Complete], Some("tool_calls"));
        check(reported, &[Complete], &[Complete; 2], Some("tool_calls"));
    }
}

#[test]
fn an_unclear_call_does_not_become_complete() {
    for reported in [None, Some("length")] {
        check(reported, &[], &[Complete, Unclear], Some("length"));
        check(reported, &[], &[Unclear], Some("length"));
    }
}

#[test]
fn one_cut_or_invalid_part_makes_a_cut_answer() {
    for reported in ANY {
        for state in [Cut, Invalid] {
            check(reported, &[state], &[], Some("length"));
            check(reported, &[state], &[Complete], Some("length"));
            check(reported, &[Complete], &[state, Complete], Some("length"));
        }
    }
}
