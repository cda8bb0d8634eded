//! Compaction of SQL.

use overlock_code::{CompactOptions, Language, Level, Reason, compact};

#[track_caller]
fn check(text: &str, compacted: &str) {
    let result = compact(text, Language::Sql, &CompactOptions::default());
    assert_eq!(
        result.text,
        compacted,
        "compacting {text:?} ({})",
        result.reason.name()
    );
}

#[track_caller]
fn check_untouched(text: &str, reason: Reason) {
    let result = compact(text, Language::Sql, &CompactOptions::default());
    assert_eq!((result.text.as_str(), result.reason), (text, reason));
}

#[test]
fn removes_comments_and_layout() {
    check(
        "SELECT  a, -- the first\n\n   b /* the\nsecond */ FROM t ;",
        "SELECT a,b FROM t;",
    );
}

#[test]
fn comment_signs_in_strings_and_names_are_text() {
    check(
        "SELECT '-- no', \"/* no */\" -- yes",
        "SELECT '-- no',\"/* no */\"",
    );
    check("SELECT N'it''s -- no' -- yes", "SELECT N'it''s -- no'");
    check(
        "SELECT [a -- b], [c]]d] FROM dbo.t -- yes\nGO",
        "SELECT [a -- b],[c]]d] FROM dbo.t\nGO",
    );
    check(
        "SELECT `a -- b`, 'it\\'s' FROM `t` ENGINE=InnoDB -- yes",
        "SELECT `a -- b`,'it\\'s' FROM `t` ENGINE=InnoDB",
    );
}

#[test]
fn a_bracket_at_the_start_of_a_line_is_a_name() {
    check(
        "SELECT\n    [Name],\n    [Other]\nFROM dbo.t",
        "SELECT\n[Name],[Other]\nFROM dbo.t",
    );
}

#[test]
fn hints_stay() {
    check(
        "SELECT /*+ FULL(t) */ a /* gone */ FROM t",
        "SELECT /*+ FULL(t) */ a FROM t",
    );
    check(
        "SELECT --+ FULL(t)\n a FROM t  ",
        "SELECT --+ FULL(t)\na FROM t",
    );
    check(
        "/*!40101 SET NAMES utf8 */ ; -- x",
        "/*!40101 SET NAMES utf8 */;",
    );
}

#[test]
fn an_operator_before_a_variable_keeps_its_blank() {
    check(
        "SELECT 1 WHERE a < @x AND b = @y  ",
        "SELECT 1 WHERE a< @x AND b= @y",
    );
    check("SELECT 1 WHERE a <@x  ", "SELECT 1 WHERE a<@x");
    check(
        "SELECT 1 WHERE a = - 1 - -2 -- x",
        "SELECT 1 WHERE a= - 1 - -2",
    );
}

#[test]
fn a_blank_before_a_parenthesis_stays() {
    check(
        "SELECT COUNT (*), MAX( a ) FROM t",
        "SELECT COUNT (*),MAX(a) FROM t",
    );
}

#[test]
fn go_keeps_its_line() {
    check(
        "SELECT 1\n\n  GO  \nSELECT (2\nGO\nSELECT 3\nFROM t",
        "SELECT 1\nGO\nSELECT (2\nGO\nSELECT 3\nFROM t",
    );
}

#[test]
fn nested_comments_are_read_as_the_dialect_reads_them() {
    check(
        "SELECT @a /* x /* y */ z */ , @@ROWCOUNT",
        "SELECT @a,@@ROWCOUNT",
    );
    check(
        "SELECT a /* x /* y */ , b FROM dual, v$x",
        "SELECT a,b FROM dual,v$x",
    );
    check_untouched("SELECT a /* x /* y */ , b", Reason::Ambiguous);
}

#[test]
fn a_backslash_before_a_quote_is_read_as_the_dialect_reads_it() {
    check(
        "EXEC dbo.p @path = 'C:\\',  @b = 'x' -- y",
        "EXEC dbo.p @path='C:\\',@b='x'",
    );
    check_untouched("SELECT 'C:\\',  'x' -- y", Reason::Ambiguous);
}

#[test]
fn dollar_quotes_of_postgresql_stay_whole() {
    check(
        "CREATE FUNCTION f() RETURNS int AS $x$\n  -- kept\n  SELECT  1; $$ $x$  LANGUAGE plpgsql; -- gone",
        "CREATE FUNCTION f() RETURNS int AS $x$\n  -- kept\n  SELECT  1; $$ $x$ LANGUAGE plpgsql;",
    );
}

#[test]
fn a_dollar_delimiter_of_mysql_is_not_a_quote() {
    check(
        "DELIMITER $$\nBEGIN -- one\n  SELECT  1; # two\nEND$$\nDELIMITER ;\n",
        "DELIMITER $$\nBEGIN\nSELECT 1;\nEND$$\nDELIMITER ;",
    );
}

#[test]
fn a_hash_is_a_comment_in_mysql_only() {
    check(
        "SELECT * INTO #t FROM dbo.x -- gone\n",
        "SELECT * INTO #t FROM dbo.x",
    );
    check("SELECT `a` # gone\nFROM `t`", "SELECT `a`\nFROM `t`");
    check(
        "SELECT '{}'::jsonb #> '{a}' -- gone",
        "SELECT '{}'::jsonb #> '{a}'",
    );
}

#[test]
fn quotes_of_oracle_and_escapes_of_postgresql_stay() {
    check(
        "SELECT q'[it's -- no]', nq'{a'b}' FROM dual -- yes",
        "SELECT q'[it's -- no]',nq'{a'b}' FROM dual",
    );
    check("SELECT E'it\\'s -- no' -- yes", "SELECT E'it\\'s -- no'");
}

#[test]
fn keeps_the_line_break_that_joins_strings() {
    check("SELECT ('a' -- x\n   'b')", "SELECT ('a'\n'b')");
}

#[test]
fn keeps_client_commands_on_their_lines() {
    check(
        "\\echo it's  here\nSELECT  1;",
        "\\echo it's  here\nSELECT 1;",
    );
    check(
        ":setvar Name \"it's\"\nSELECT  1",
        ":setvar Name \"it's\"\nSELECT 1",
    );
    check(
        "PROMPT it's  done\nSELECT  1 FROM dual;",
        "PROMPT it's  done\nSELECT 1 FROM dual;",
    );
    check(
        "BEGIN\n  NULL;  -- x\nEND;\n/\nSHOW ERRORS\n",
        "BEGIN\nNULL;\nEND;\n/\nSHOW ERRORS",
    );
}

#[test]
fn rows_after_a_copy_stay() {
    check(
        "COPY t (a) FROM stdin;\nit's  -- a row\n\n  two\n\\.\nSELECT  1;",
        "COPY t (a) FROM stdin;\nit's  -- a row\n\n  two\n\\.\nSELECT 1;",
    );
}

#[test]
fn keeps_an_unclosed_string() {
    check("SELECT  1, 'it -- goes  on", "SELECT 1,'it -- goes  on");
    check("SELECT  1 /* goes  on", "SELECT 1 /* goes  on");
}

#[test]
fn reports_an_unclosed_string() {
    for (text, language) in [
        ("select /* open", Language::Sql),
        ("select 'open -- x", Language::Sql),
        ("SELECT $$ open", Language::Sql),
        ("int a; /* open", Language::Dotnet),
        ("var a = @\"open", Language::Dotnet),
        (
            "Dim a As String = \"open\nDim b As String",
            Language::Dotnet,
        ),
    ] {
        for level in [Level::Lossless, Level::Outline] {
            let options = CompactOptions {
                level,
                ..CompactOptions::default()
            };
            let compacted = compact(text, language, &options);
            assert_eq!(compacted.reason, Reason::Unclosed, "{text}");
            assert!(compacted.reason.is_fall_back());
            assert!(compacted.text.ends_with(&text[text.len() - 6..]), "{text}");
        }
    }
    // The text before it is compacted nevertheless.
    let compacted = compact(
        "select  a ,b -- x\nfrom t /* open",
        Language::Sql,
        &CompactOptions::default(),
    );
    assert_eq!(compacted.text, "select a,b\nfrom t /* open");
    assert_eq!(
        (compacted.compacted, compacted.reason),
        (true, Reason::Unclosed)
    );
}

#[test]
fn keeps_bodies_in_other_languages() {
    let java = "public class X {\n  // counts\n  int f(int n) { for (int i = n; i > 0; i--) g(i);   return 1; }\n}";
    check(
        &format!(
            "CREATE OR REPLACE AND COMPILE JAVA SOURCE NAMED \"X\"   AS -- it\n{java}\n/\nSELECT  1 FROM dual; -- x\n"
        ),
        &format!(
            "CREATE OR REPLACE AND COMPILE JAVA SOURCE NAMED \"X\" AS -- it\n{java}\n/\nSELECT 1 FROM dual;"
        ),
    );
    check(
        "CREATE MLE MODULE m LANGUAGE JAVASCRIPT AS\nwhile (n--) {  a  }\n  /\n-- x\nDROP  TABLE t;",
        "CREATE MLE MODULE m LANGUAGE JAVASCRIPT AS\nwhile (n--) {  a  }\n/\nDROP TABLE t;",
    );
}

#[test]
fn adjacent_dashes_may_be_two_signs() {
    let text = "SELECT n FROM t WHERE n = 5--1 LIMIT 5, 10;";
    check(text, "SELECT n FROM t WHERE n=5--1 LIMIT 5, 10;");
    check("SELECT a--b\nFROM dbo.t\nGO", "SELECT a\nFROM dbo.t\nGO");
    check("SELECT a --b\nFROM t", "SELECT a\nFROM t");
}

#[test]
fn a_no_break_space_is_a_blank_in_t_sql() {
    check(
        "CREATE\u{a0}PROCEDURE dbo.p @a\u{a0}int AS\u{a0}\nSELECT a\u{a0}\u{a0}FROM dbo.t\nGO",
        "CREATE PROCEDURE dbo.p @a int AS\nSELECT a FROM dbo.t\nGO",
    );
}
