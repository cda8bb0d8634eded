//! Compaction of Visual Basic.

use overlock_code::{CompactOptions, Language, Level, Reason, compact};

#[track_caller]
fn check(text: &str, compacted: &str) {
    let result = compact(text, Language::Dotnet, &CompactOptions::default());
    assert_eq!(
        result.text,
        compacted,
        "compacting {text:?} ({})",
        result.reason.name()
    );
}

#[test]
fn removes_comments_and_layout_but_keeps_lines() {
    check(
        "Imports System\n\nPublic Class A ' one\n    ''' <summary>x</summary>\n    Dim s As String = \"it's \"\"so\"\"\" ' two\n    REM three\n#Region \"x\"\n    Dim b = a _\n        + c\n#End Region\nEnd Class",
        "Imports System\nPublic Class A\nDim s As String = \"it's \"\"so\"\"\"\nDim b = a _\n+ c\nEnd Class",
    );
}

#[test]
fn an_xml_literal_is_ambiguous() {
    let text = "Imports System\nModule M\n    Dim x = <a>it's</a>\nEnd Module\n";
    let result = compact(text, Language::Dotnet, &CompactOptions::default());
    assert_eq!(
        (result.text.as_str(), result.reason),
        (text, Reason::Ambiguous)
    );
}

#[test]
fn reports_that_there_is_no_outline() {
    let options = CompactOptions {
        level: Level::Outline,
        ..CompactOptions::default()
    };
    let result = compact(
        "Imports System ' x\nModule M\nEnd Module\n",
        Language::Dotnet,
        &options,
    );
    assert_eq!(
        (result.text.as_str(), result.reason),
        ("Imports System\nModule M\nEnd Module", Reason::NoOutline)
    );
    assert!(result.reason.is_fall_back());
}
