//! Compaction of C#.

use overlock_code::{CompactOptions, Docs, Language, Level, Reason, compact};

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

/// The text is unchanged, and a comment after it is removed.
#[track_caller]
fn check_kept(text: &str) {
    check(&format!("{text} // comment"), text);
}

#[test]
fn removes_comments_and_layout() {
    check(
        "int a;   // one\n\n\n/* two */\n    int  b ;\n",
        "int a;\nint b;",
    );
}

#[test]
fn a_comment_between_two_names_leaves_a_blank() {
    check("int/* type */a;", "int a;");
}

#[test]
fn braces_move_up_to_the_line_before() {
    check(
        "class A\n{\n    void M()\n    {\n        N();\n    }\n}\n",
        "class A{\nvoid M(){\nN();\n}}",
    );
}

#[test]
fn keeps_blanks_between_operators() {
    check("a = b - -c; // x", "a = b - -c;");
    check("a = b + +c; // x", "a = b + +c;");
    check("x ? . 5 : y // x", "x ? . 5 : y");
    check(
        "Dictionary<string, List<int>> d; // x",
        "Dictionary<string,List<int>> d;",
    );
}

#[test]
fn comment_signs_in_strings_are_text() {
    check_kept(r#"var a="http://x /* y */";"#);
    check_kept(r#"var a=@"c:\dir\";"#);
    check_kept(r#"var a=@"say ""//"" twice";"#);
    check_kept(r#"var a="\"//";"#);
    check_kept(r"var a='\'';var b='/';var c='\u0027';var d='\\';");
}

#[test]
fn a_verbatim_string_keeps_its_lines() {
    check_kept("var sql=@\"\n    SELECT  *   -- all\n\n    FROM t\";");
}

#[test]
fn a_raw_string_keeps_its_lines() {
    check_kept("var a=\"\"\"\n    // not a comment \"\" \n\n    \"\"\";");
    check_kept("var a=\"\"\"\"three \"\"\" inside //\"\"\"\";");
}

#[test]
fn interpolation_holes_contain_code_with_strings() {
    check_kept(r#"var a=$"{x} {{//}} {(b ? "}" : $"{c}")} //";"#);
    check_kept(r#"var a=$@"{x:yyyy""//""} {y}";"#);
    check_kept(r#"var a=@$"c:\{Name}\//";"#);
    check_kept(r#"var a=$"{d:hh':'mm} {global::A.B} //";"#);
    check_kept(r#"var a=$$"""{ {{x}} // """;"#);
    check_kept("var a=$\"{\n    x // inside\n} //\";");
}

#[test]
fn a_string_with_a_suffix_keeps_it() {
    check_kept(r#"var a="//"u8;"#);
}

#[test]
fn directives_keep_their_lines_and_both_branches() {
    check(
        "#if DEBUG // why\n    int a;  // one\n#else\n    int a = 2;\n#endif\n",
        "#if DEBUG // why\nint a;\n#else\nint a = 2;\n#endif",
    );
    check(
        "void M()\n#pragma warning disable 1 // x\n{ }",
        "void M()\n#pragma warning disable 1 // x\n{}",
    );
}

#[test]
fn removes_regions() {
    check("#region Fields\nint a;\n  #endregion Fields\n", "int a;");
}

#[test]
fn prose_in_a_branch_that_is_never_compiled_stays() {
    check(
        "#if NEVER\n  don't   touch \n#endif\nint  a;",
        "#if NEVER\ndon't   touch\n#endif\nint a;",
    );
}

#[test]
fn a_comment_across_branches_is_ambiguous() {
    let text = "#if A\n/* opened\n#else\n*/\n#endif\nint   a;";
    let result = compact(text, Language::Dotnet, &CompactOptions::default());
    assert_eq!(
        (result.text.as_str(), result.reason),
        (text, Reason::Ambiguous)
    );
}

#[test]
fn keeps_documentation_on_request() {
    let text = "    /// <summary>A.</summary>\n    // note\n    int  a;";
    let options = CompactOptions {
        docs: Docs::Keep,
        ..CompactOptions::default()
    };
    assert_eq!(
        compact(text, Language::Dotnet, &options).text,
        "/// <summary>A.</summary>\nint a;"
    );
    check(text, "int a;");
}

#[test]
fn four_slashes_are_not_documentation() {
    let options = CompactOptions {
        docs: Docs::Keep,
        ..CompactOptions::default()
    };
    assert_eq!(
        compact("//// x\nint a;", Language::Dotnet, &options).text,
        "int a;"
    );
}

#[test]
fn keeps_a_string_that_is_cut() {
    check(
        "int  a; var b = @\"it // goes  on\n",
        "int a;var b = @\"it // goes  on",
    );
    check("int  a; /* it  goes on", "int a;/* it  goes on");
}

#[test]
fn ignores_a_byte_order_mark() {
    check("\u{feff}int a;", "int a;");
}

#[test]
fn other_line_separators_end_a_comment() {
    check("// one\u{2028}int a;", "\u{2028}int a;");
}

#[test]
fn a_text_of_comments_is_unchanged() {
    let result = compact("// only\n", Language::Dotnet, &CompactOptions::default());
    assert_eq!(
        (result.text.as_str(), result.reason),
        ("// only\n", Reason::OnlyComments)
    );
}

#[test]
fn reports_when_nothing_can_be_removed() {
    let result = compact("int a;", Language::Dotnet, &CompactOptions::default());
    assert_eq!((result.compacted, result.reason), (false, Reason::NoGain));
}

#[test]
fn razor_and_project_files_are_unchanged() {
    for text in [
        "@model Shop.Cart\n\n<p>@Model.Total</p>\n",
        "<Project Sdk=\"Microsoft.NET.Sdk\">\n\n</Project>\n",
    ] {
        for level in [Level::Lossless, Level::Outline] {
            let result = compact(
                text,
                Language::Dotnet,
                &CompactOptions {
                    level,
                    ..CompactOptions::default()
                },
            );
            assert_eq!(
                (result.text.as_str(), result.reason),
                (text, Reason::UnsupportedSyntax)
            );
        }
    }
}
