//! Classification of texts.

use overlock_code::{Language, Syntax, classify};

#[track_caller]
fn check(text: &str, language: Language) {
    let result = classify(text);
    assert_eq!(result.language, language, "{text:?} is {result:?}");
}

#[track_caller]
fn check_syntax(text: &str, syntax: Syntax) {
    let result = classify(text);
    assert_eq!(result.syntax, Some(syntax), "{text:?} is {result:?}");
}

#[test]
fn one_line_of_sql_is_enough() {
    for text in [
        "select 1",
        "SELECT * FROM Orders",
        "select id, name from users where id = 5;",
        "INSERT INTO t VALUES (1)",
        "update dbo.Orders set Total = 0 where Id = @id",
        "DELETE FROM t WHERE a = 1",
        "DROP TABLE IF EXISTS t;",
        "EXEC dbo.GetOrders @id = 5",
        "ALTER TABLE t ADD c int NULL",
        "GRANT SELECT ON t TO reader",
        "create index ix on t (a);",
        "WITH x AS (SELECT 1 AS a) SELECT a FROM x",
        "BEGIN NULL; END;",
        "begin null; end;",
        "DESCRIBE users;",
        "desc users;",
        "PRAGMA foreign_keys = ON;",
        "pragma journal_mode = wal;",
        "PRAGMA table_info(users);",
        "create table if not exists t (a int);",
        "create table t as select a from b",
        "create unique index ix on t (a)",
    ] {
        check(text, Language::Sql);
    }
}

#[test]
fn a_sentence_that_begins_like_a_definition_is_prose() {
    for text in [
        "Create a table for dinner",
        "Create table reservations for dinner",
        "Create a new view for the guests",
        "create another index of all names",
    ] {
        check(text, Language::Unknown);
    }
}

#[test]
fn describe_and_pragma_in_other_languages_are_not_sql() {
    for text in [
        "pragma solidity ^0.8.0;\ncontract A {}",
        "describe(suite);",
        "char *p = NULL;\nreturn NULL;",
        "#pragma once",
    ] {
        check(text, Language::Unknown);
    }
}

#[test]
fn non_ascii_blanks_are_blanks() {
    check("CREATE\u{a0}TABLE dbo.T (a int, b int);", Language::Sql);
    check("\u{3000}SELECT\u{2003}a,\u{a0}b FROM dbo.T", Language::Sql);
    check("public\u{a0}string Name { get; set; }", Language::Dotnet);
}

#[test]
fn statements_on_one_line_are_sql() {
    for text in [
        "begin; insert into t values (1); commit;",
        "BEGIN; UPDATE t SET a = 1; END;",
        "use shop; select a, b from t; commit;",
    ] {
        check(text, Language::Sql);
    }
    for text in [
        "begin; puts 1; rescue; end;",
        "i = 1; begin; end; delete x; update();",
    ] {
        check(text, Language::Unknown);
    }
}

#[test]
fn a_statement_of_csharp_with_sql_in_a_string_is_enough() {
    for text in [
        "var q = \"SELECT a, b FROM t\";",
        "var q = \"SELECT a FROM t\";",
        "return db.Query(\"SELECT a, b FROM t\");",
        "string q = \"select a, b from t\";",
    ] {
        check(text, Language::DotnetWithSql);
    }
    for text in [
        "const q = \"SELECT a, b FROM t\";",
        "q = \"SELECT a, b FROM t\"",
        "String q = \"SELECT a, b FROM t\";",
        "var q = \"SELECT a row from the table\";",
        "\"SELECT a, b FROM t\"",
    ] {
        check(text, Language::Unknown);
    }
}

#[test]
fn the_dialects_are_sql() {
    check(
        "DECLARE @x int = 5\nIF @x > 3\nBEGIN\n  PRINT N'big'\nEND\nGO\n",
        Language::Sql,
    );
    check(
        "CREATE TABLE `t` (\n  `id` int NOT NULL AUTO_INCREMENT,\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB;",
        Language::Sql,
    );
    check(
        "create or replace package body p is\n  procedure x(a in varchar2) is\n  begin\n    null;\n  end x;\nend p;\n/\n",
        Language::Sql,
    );
    check(
        "CREATE FUNCTION f() RETURNS trigger AS $$\nimport java.util.List;\nclass A { }\n$$ LANGUAGE plpgsql;\nSELECT f();",
        Language::Sql,
    );
}

#[test]
fn a_list_of_variables_is_sql() {
    check(
        "CREATE PROCEDURE dbo.Add\n    @Id int,\n    @Name nvarchar(50)\nAS\nINSERT INTO dbo.T\nVALUES\n(\n    @Id,\n    @Name,\n    @Other,\n    @More\n)\n",
        Language::Sql,
    );
}

#[test]
fn a_migration_in_sql_is_sql() {
    check(
        "-- V2__add_city.sql\nALTER TABLE customer\n    ADD COLUMN city varchar(50) NOT NULL DEFAULT '';\nCREATE INDEX ix_city ON customer (city);\n",
        Language::Sql,
    );
}

#[test]
fn one_line_of_csharp_is_enough() {
    for text in [
        "public string Name { get; set; }",
        "using System.Linq;",
        "namespace Shop.Orders;",
        "Console.WriteLine(\"hi\");",
        "public async Task<int> CountAsync(CancellationToken token) => await _db.CountAsync(token);",
        "[assembly: InternalsVisibleTo(\"Tests\")]",
        "foreach (var item in items) { Add(item); }",
        "throw new ArgumentNullException(nameof(value));",
    ] {
        check_syntax(text, Syntax::CSharp);
    }
}

#[test]
fn sql_in_a_string_leaves_it_dotnet() {
    check(
        "using Dapper;\nvar rows = connection.Query<Order>(\"SELECT * FROM Orders WHERE Id = @id\", new { id });",
        Language::DotnetWithSql,
    );
    check(
        "using System.Data;\n\nnamespace Shop;\n\npublic class Repository\n{\n    private const string Sql = @\"\n        SELECT o.Id, o.Total\n        FROM dbo.Orders AS o\n        INNER JOIN dbo.Lines AS l ON l.OrderId = o.Id\n        WHERE o.CustomerId = @id\n        GROUP BY o.Id, o.Total\n        ORDER BY o.Id\";\n}\n",
        Language::DotnetWithSql,
    );
    check(
        "Dim sql As String = \"SELECT * FROM Orders\"\nDim command As New SqlCommand(sql)",
        Language::DotnetWithSql,
    );
}

#[test]
fn a_migration_of_entity_framework_is_dotnet() {
    let migration = "using Microsoft.EntityFrameworkCore.Migrations;\n\npublic partial class AddCity : Migration\n{\n    protected override void Up(MigrationBuilder migrationBuilder)\n    {\n        migrationBuilder.AddColumn<string>(name: \"City\", table: \"Customer\", nullable: false);\nSQL    }\n}\n";
    check(&migration.replace("SQL", ""), Language::Dotnet);
    check(
        &migration.replace(
            "SQL",
            "        migrationBuilder.Sql(\"UPDATE Customer SET City = ''\");\n",
        ),
        Language::DotnetWithSql,
    );
}

#[test]
fn words_of_sql_in_messages_do_not_make_it_sql() {
    check(
        "using System;\nthrow new Exception(\"Select an item from the list\");",
        Language::Dotnet,
    );
    check(
        "using System;\nvar text = \"Update the settings\"; var other = \"Delete failed\";",
        Language::Dotnet,
    );
}

#[test]
fn comments_do_not_vote() {
    check(
        "/* using System;\nnamespace Shop;\npublic class A { } */\nSELECT a FROM t",
        Language::Sql,
    );
    check(
        "// SELECT a FROM t\n// INSERT INTO t VALUES (1)\n// DELETE FROM t\nusing System;\n",
        Language::Dotnet,
    );
}

#[test]
fn visual_basic_is_dotnet() {
    check_syntax(
        "Imports System\n\nPublic Class A\n    Public Property Name As String\nEnd Class\n",
        Syntax::VisualBasic,
    );
    check_syntax("Dim total As Integer = 0", Syntax::VisualBasic);
    check_syntax(
        "Private Sub Button1_Click(ByVal sender As Object, ByVal e As EventArgs) Handles Button1.Click",
        Syntax::VisualBasic,
    );
}

#[test]
fn razor_is_dotnet() {
    check_syntax(
        "@page \"/counter\"\n<h1>Counter</h1>\n<button @onclick=\"Add\">Add</button>\n@code {\n    int count;\n}\n",
        Syntax::Razor,
    );
    check_syntax(
        "@model Shop.Cart\n<ul>\n@foreach (var item in Model.Items)\n{\n    <li>@item.Name</li>\n}\n</ul>\n",
        Syntax::Razor,
    );
    check_syntax(
        "<div class=\"a\">\n    <input asp-for=\"Name\" />\n    @Html.DisplayFor(m => m.Name)\n</div>\n",
        Syntax::Razor,
    );
}

#[test]
fn project_and_configuration_files_are_dotnet() {
    check_syntax(
        "<Project Sdk=\"Microsoft.NET.Sdk\">\n  <PropertyGroup />\n</Project>",
        Syntax::Project,
    );
    check_syntax(
        "\u{feff}<?xml version=\"1.0\"?>\n<!-- x -->\n<configuration>\n  <appSettings />\n</configuration>",
        Syntax::Project,
    );
    check_syntax(
        "<packages>\n  <package id=\"Dapper\" version=\"2.0\" />\n</packages>",
        Syntax::Project,
    );
}

#[test]
fn other_markup_is_unknown() {
    check(
        "<?xml version=\"1.0\"?>\n<project xmlns=\"http://maven.apache.org/POM/4.0.0\"></project>",
        Language::Unknown,
    );
    check(
        "<configuration>\n  <appender name=\"x\" />\n</configuration>",
        Language::Unknown,
    );
    check(
        "<!DOCTYPE html>\n<html><body>select 1 from dual</body></html>",
        Language::Unknown,
    );
}

#[test]
fn java_is_unknown() {
    check(
        "package a.b;\n\nimport java.util.List;\n\npublic class Repository {\n    private static final String SQL = \"SELECT * FROM orders\";\n\n    @Override\n    public List<Order> all() throws SQLException {\n        return jdbc.query(SQL);\n    }\n}\n",
        Language::Unknown,
    );
}

#[test]
fn javascript_and_typescript_are_unknown() {
    check(
        "const rows = await db.query(`\n  SELECT *\n  FROM orders\n  WHERE id = $1\n`);\nmodule.exports = rows;\n",
        Language::Unknown,
    );
    check(
        "import { Entity } from 'typeorm';\n\nexport class Order {\n  private readonly id: number;\n  public async load(): Promise<string> {\n    return '';\n  }\n}\n",
        Language::Unknown,
    );
    check(
        "var x = 5;\nfunction add(a, b) {\n  return a + b;\n}\n",
        Language::Unknown,
    );
}

#[test]
fn python_is_unknown() {
    check(
        "import sqlite3\n\ndef rows(self):\n    return self.execute(\"\"\"\n        SELECT *\n        FROM orders\n    \"\"\")\n",
        Language::Unknown,
    );
}

#[test]
fn data_and_prose_are_unknown() {
    for text in [
        "{\"select\": 1, \"from\": \"t\"}",
        "[1, 2, 3]",
        "select:\n  - a\nfrom: orders\nwhere: id\n",
        "# Title\n\nUse `SELECT 1` to test.\n\n```sql\nSELECT 1;\n```\n",
        "Select an item from the menu.",
        "Please update the table and set the date.",
        "[section]\nkey=value\nother=1\n",
        "2024-01-01 12:00:00 INFO started\n2024-01-01 12:00:01 ERROR failed to connect\n",
        "",
        "   \n",
        "hello",
        "# Comment\nname: build\non: push\njobs:\n  test:\n    runs-on: ubuntu\n",
        "FROM node:20\nRUN npm ci\nCMD [\"node\"]\n",
        "#include <stdio.h>\nint main(void) { return 0; }\n",
        "#!/bin/sh\necho select from\n",
    ] {
        check(text, Language::Unknown);
    }
}

#[test]
fn classifies_a_large_file_by_its_parts() {
    let rows =
        "INSERT INTO [dbo].[Orders] ([Id], [Name]) VALUES (1, N'using System; namespace Shop;')\n"
            .repeat(20_000);
    check(&rows, Language::Sql);
    let class = format!(
        "using System;\nnamespace Shop;\npublic class A\n{{\n{}}}\n",
        "    public string Name { get; set; }\n".repeat(30_000)
    );
    check(&class, Language::Dotnet);
}

#[test]
fn reports_reasons_and_confidence() {
    let result = classify("SELECT a FROM t;\nGO\nCREATE TABLE x (id int NOT NULL);");
    assert!(result.confidence > 0.8, "{result:?}");
    assert!(
        result.reasons.contains(&"queries") && result.reasons.contains(&"batches"),
        "{result:?}"
    );
}
