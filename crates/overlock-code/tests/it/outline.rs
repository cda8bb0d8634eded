//! Outlines of C# and SQL.

use overlock_code::{CompactOptions, Language, Level, Reading, Reason, compact, nodes};

#[track_caller]
fn check(text: &str, language: Language, outline: &str, reason: Reason) {
    let options = CompactOptions {
        level: Level::Outline,
        ..CompactOptions::default()
    };
    let result = compact(text, language, &options);
    assert_eq!(
        (result.text.as_str(), result.reason),
        (outline, reason),
        "outlining {text:?}"
    );
}

#[test]
fn removes_bodies_and_keeps_declarations() {
    check(
        r#"
using System;

namespace Shop;

/// <summary>A cart.</summary>
[Table("carts"), Serializable]
public sealed partial class Cart<T> : Base<T>, ICart where T : class, new()
{
    private readonly int _limit = 5;
    private static readonly Dictionary<string, int> Prices = new()
    {
        ["a"] = 1,
        ["b"] = 2,
    };

    public event EventHandler? Changed;

    public int Count { get; private set; } = 3;

    public string Name
    {
        get { return _name ?? throw new InvalidOperationException("no name"); }
        set { _name = value; }
    }

    public int Total => Items.Where(item => item.IsOpen).Sum(item => item.Price);

    public Cart(int limit, [FromServices] string name = "a // b") : base(limit)
    {
        _limit = limit;
        _name = name;
    }

    [Obsolete]
    public async Task<U> Find<U>(U key, params object[] rest) where U : struct
    {
        // Looks everywhere.
        await Task.Delay(1);
        return key;
    }

    private enum State { Open, Closed = 2 }

    public delegate void Handler(object sender, EventArgs e);
}
"#,
        Language::Dotnet,
        r#"using System;
namespace Shop;
[Table("carts"),Serializable]
public sealed partial class Cart<T> : Base<T>,ICart where T : class,new(){
private readonly int _limit = 5;
private static readonly Dictionary<string,int> Prices = … 5 lines;
public event EventHandler? Changed;
public int Count{get;private set;}= 3;
public string Name{
get{… 1 line}
set{_name = value;}}
public int Total => … 1 line;
public Cart(int limit,[FromServices] string name = "a // b"): base(limit){… 2 lines}
[Obsolete]
public async Task<U> Find<U>(U key,params object[] rest) where U : struct{… 3 lines}
private enum State{Open,Closed = 2}
public delegate void Handler(object sender,EventArgs e);
}"#,
        Reason::Outlined,
    );
}

#[test]
fn a_method_alone_keeps_its_head() {
    check(
        "public int Add(int a, int b)\n{\n    var sum = a + b;\n    return sum;\n}\n",
        Language::Dotnet,
        "public int Add(int a,int b){… 2 lines}",
        Reason::Outlined,
    );
}

#[test]
fn removes_top_level_statements() {
    check(
        "using System;\nvar builder = WebApplication.CreateBuilder(args);\nvar app = builder.Build();\napp.Run();\nrecord Order(int Id);\n",
        Language::Dotnet,
        "using System;\n… 3 lines\nrecord Order(int Id);",
        Reason::Outlined,
    );
}

#[test]
fn both_branches_of_a_directive_stay() {
    check(
        "class A\n{\n#if NET8\n    void M(int a) { Console.WriteLine(a.ToString()); }\n#else\n    void M() { Console.WriteLine(\"none at all\"); }\n#endif\n}\n",
        Language::Dotnet,
        "class A{\n#if NET8\nvoid M(int a){… 1 line}\n#else\nvoid M(){… 1 line}\n#endif\n}",
        Reason::Outlined,
    );
}

#[test]
fn a_body_that_does_not_parse_stays() {
    let options = CompactOptions {
        level: Level::Outline,
        ..CompactOptions::default()
    };
    let text = "class A\n{\n    int Good() { return Compute(1, 2, 3) + 4; }\n    int Bad() { return Compute(1, ; ) + + 4 = ; }\n    int After;\n}\n";
    let result = compact(text, Language::Dotnet, &options);
    assert_eq!(result.reason, Reason::PartlyParsed);
    assert!(
        result.text.contains("int Good(){… 1 line}")
            && result.text.contains("int Bad(){return Compute(1,;)"),
        "{}",
        result.text
    );
    assert!(result.text.contains("int After;") && result.reason.is_fall_back());
}

#[test]
fn code_that_was_cut_keeps_all_declarations_before_the_cut() {
    let options = CompactOptions {
        level: Level::Outline,
        ..CompactOptions::default()
    };
    let text = "class A\n{\n    [Key]\n    int One(string a) { return a.Length + a.Length + 1; }\n    int Two(string b)\n    {\n        if (b ==";
    let result = compact(text, Language::Dotnet, &options);
    assert!(
        result.text.contains("[Key]\nint One(string a)")
            && result.text.contains("int Two(string b)"),
        "{}",
        result.text
    );
    assert!(result.reason.is_fall_back());
}

#[test]
fn a_table_keeps_its_columns() {
    let text = "CREATE TABLE dbo.Orders\n(\n    Id int NOT NULL PRIMARY KEY, -- key\n    Total decimal(9, 2) NULL\n);\nGO\n";
    check(
        text,
        Language::Sql,
        "CREATE TABLE dbo.Orders\n(Id int NOT NULL PRIMARY KEY,Total decimal(9,2) NULL);\nGO",
        Reason::Outlined,
    );
}

#[test]
fn a_procedure_keeps_its_parameters_tables_and_predicates() {
    check(
        "CREATE PROCEDURE dbo.CloseOrders\n    @customer int,\n    @note AS nvarchar(50) = N'x'\nAS\nBEGIN\n    SET NOCOUNT ON;\n    DECLARE @now datetime = GETDATE();\n    SELECT o.Id, o.Total, o.Note\n    FROM dbo.Orders AS o\n    INNER JOIN dbo.Lines AS l ON l.OrderId = o.Id\n    WHERE o.CustomerId = @customer;\n    UPDATE dbo.Orders\n    SET Closed = @now, Note = @note\n    WHERE CustomerId = @customer;\n    INSERT INTO dbo.Log (At, What) VALUES (@now, 'closed');\n    EXEC dbo.Notify @customer, @note, 'closed';\nEND\nGO\n",
        Language::Sql,
        "CREATE PROCEDURE dbo.CloseOrders\n@customer int,@note AS nvarchar(50)=N'x'\nAS\n… 3 lines\nSELECT …\nFROM dbo.Orders AS o\nINNER JOIN dbo.Lines AS l ON l.OrderId=o.Id\nWHERE o.CustomerId= @customer;\nUPDATE dbo.Orders\nSET …\nWHERE CustomerId= @customer;\nINSERT INTO dbo.Log (At,What) VALUES …;\nEXEC dbo.Notify …;\nEND\nGO",
        Reason::Outlined,
    );
}

#[test]
fn removes_assignments_with_their_conditions() {
    check(
        "UPDATE dbo.Log\nSET Done = @now, Error = CASE WHEN @run = 'N' THEN NULL ELSE @error END\nWHERE Id = @id\nPRINT 'it is done'",
        Language::Sql,
        "UPDATE dbo.Log\nSET …\nWHERE Id= @id\n… 1 line",
        Reason::Outlined,
    );
}

#[test]
fn a_view_keeps_its_columns() {
    check(
        "CREATE VIEW dbo.Open AS -- x\nSELECT Id, Total\nFROM dbo.Orders WHERE Closed IS NULL",
        Language::Sql,
        "CREATE VIEW dbo.Open AS\nSELECT Id,Total\nFROM dbo.Orders WHERE Closed IS NULL",
        Reason::Outlined,
    );
}

#[test]
fn conditions_in_a_list_end_no_statement() {
    check(
        "CREATE PROCEDURE p AS\nBEGIN\n  SELECT TOP (5) o.Id,\n    CASE WHEN o.Paid = 1 THEN 'paid'\n         ELSE 'open'\n    END AS State,\n    IF(o.Late, 1,\n       0) AS Late\n  FROM dbo.Orders o\n  JOIN dbo.Customers c ON c.Id = o.Customer;\n  DELETE FROM dbo.Queue;\nEND",
        Language::Sql,
        "CREATE PROCEDURE p AS\nBEGIN\nSELECT … 6 lines\nFROM dbo.Orders o\nJOIN dbo.Customers c ON c.Id=o.Customer;\nDELETE FROM dbo.Queue;\nEND",
        Reason::Outlined,
    );
    check(
        "CREATE VIEW v AS\nSELECT a,\n  CASE b\n    WHEN 1 THEN 2\n    ELSE 3\n  END AS c\nFROM t -- x\nJOIN u ON u.a = t.a",
        Language::Sql,
        "CREATE VIEW v AS\nSELECT a,CASE b\nWHEN 1 THEN 2\nELSE 3\nEND AS c\nFROM t\nJOIN u ON u.a=t.a",
        Reason::Outlined,
    );
}

#[test]
fn replaces_rows_by_their_number() {
    let rows = "INSERT INTO dbo.City (Id, Name) VALUES (1, N'Bonn');\n".repeat(5);
    check(
        &rows,
        Language::Sql,
        "INSERT INTO dbo.City (Id,Name) VALUES …;\n… 4 more lines like it",
        Reason::Outlined,
    );
}

#[test]
fn outlines_a_function_in_a_string() {
    check(
        "CREATE FUNCTION close(a int) RETURNS void AS $$\nDECLARE\n  n int := 5;\nBEGIN\n  -- all of them\n  UPDATE orders SET closed = now(), n = 5 WHERE id = a;\nEND;\n$$ LANGUAGE plpgsql;\n",
        Language::Sql,
        "CREATE FUNCTION close(a int) RETURNS void AS $$\n… 3 lines\nUPDATE orders SET … WHERE id=a;\nEND;\n$$ LANGUAGE plpgsql;",
        Reason::Outlined,
    );
}

#[test]
fn an_executed_comment_of_mysql_keeps_its_tables() {
    check(
        "DELIMITER $$\nCREATE PROCEDURE show_all()\nBEGIN\n    -- since 5.7.6\n    /*!50706\n    SELECT CONCAT('\\'', user, '\\'') AS users\n      FROM setup_actors\n     WHERE enabled = 'NO';\n    */\n    /*!40101 SET NAMES utf8 */;\nEND$$\nDELIMITER ;\n",
        Language::Sql,
        "… 1 line\nCREATE PROCEDURE show_all()\nBEGIN\n/*!50706\n    SELECT …\n      FROM setup_actors\n     WHERE enabled = 'NO';\n    */\n… 3 lines",
        Reason::Outlined,
    );
}

#[test]
fn a_trigger_of_a_dump_keeps_its_head() {
    let text = "/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 TRIGGER `ins_film` AFTER INSERT ON `film` FOR EACH ROW BEGIN\n    SET @last = NEW.film_id;\n    INSERT INTO film_text (film_id, title)\n        VALUES (new.film_id, new.title);\n  END */;;\n";
    check(
        text,
        Language::Sql,
        "/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 TRIGGER `ins_film` AFTER INSERT ON `film` FOR EACH ROW BEGIN\n    … 1 line\n    INSERT INTO film_text (film_id, title)\n        VALUES …;\n  END */;;",
        Reason::Outlined,
    );
}

#[test]
fn separates_marks_from_names() {
    check(
        "SELECT'a long literal'FROM one;\nSELECT (SELECT xmlelement(\"a\",\n  xmlagg(b))from two), c\nFROM three;\n",
        Language::Sql,
        "SELECT … FROM one;\nSELECT (SELECT … 2 lines from two),c\nFROM three;",
        Reason::Outlined,
    );
}

#[test]
fn removes_a_query_without_a_table() {
    check(
        "CREATE PROCEDURE p AS\nBEGIN\n  SELECT @a = 1, @b = 2\n  SELECT 1 UNION ALL SELECT 2;\n  SELECT @c = (SELECT MAX(Id) FROM dbo.Orders);\n  SELECT @d = COUNT(*)\n  FROM dbo.Lines;\nEND",
        Language::Sql,
        "CREATE PROCEDURE p AS\n… 3 lines\nSELECT … (SELECT … FROM dbo.Orders);\nSELECT …\nFROM dbo.Lines;\nEND",
        Reason::Outlined,
    );
}

#[test]
fn grants_are_not_queries() {
    check(
        "GRANT SELECT ON dbo.Orders TO reader; -- x\nREVOKE SELECT, INSERT\nON dbo.Lines FROM reader;\n",
        Language::Sql,
        "GRANT SELECT ON dbo.Orders TO reader;\nREVOKE SELECT,INSERT\nON dbo.Lines FROM reader;",
        Reason::Outlined,
    );
}

#[test]
fn an_outline_keeps_the_dialect_of_the_text() {
    let name = "'Shows \\'mark\\'@\\'localhost\\'\n +------+   +\n ends'";
    let text = format!(
        "DELIMITER $$\nCREATE PROCEDURE p (IN a   INT)\n    COMMENT 'what it does\nand why'\nBEGIN\n  SET @a = 1;\n  DELETE FROM t WHERE name = {name} ORDER BY a, b;\nEND$$\nDELIMITER ;\n"
    );
    let outline = format!(
        "… 1 line\nCREATE PROCEDURE p (IN a INT)\nCOMMENT … 2 lines\nBEGIN\n… 1 line\nDELETE FROM t WHERE name={name} …;\n… 2 lines"
    );
    check(&text, Language::Sql, &outline, Reason::Outlined);
}

#[test]
fn keywords_as_names_end_no_statement() {
    check(
        "CREATE VIEW v AS\n  SELECT a AS exit\n  FROM highway h -- x\n  JOIN ramp r ON r.a = h.a",
        Language::Sql,
        "CREATE VIEW v AS\nSELECT a AS exit\nFROM highway h\nJOIN ramp r ON r.a=h.a",
        Reason::Outlined,
    );
    check(
        "UPDATE spans\n  FOR PORTION OF valid FROM '2018-05-01' TO '2018-06-01'\n  SET name = 'May 2018', more = 2\n  FROM other AS o\n  WHERE spans.id = o.id;",
        Language::Sql,
        "UPDATE spans\nFOR PORTION OF valid FROM '2018-05-01' TO '2018-06-01'\nSET …\nFROM other AS o\nWHERE spans.id=o.id;",
        Reason::Outlined,
    );
}

#[test]
fn tables_filled_from_a_file_are_written() {
    check(
        "COPY orders FROM '/tmp/orders';  -- x\nBULK INSERT dbo.Lines FROM 'lines.csv';\nREPLACE INTO stock VALUES (1, 2, 3);\nLOAD DATA INFILE 'a.csv' INTO TABLE prices;",
        Language::Sql,
        "COPY orders FROM '/tmp/orders';\nBULK INSERT dbo.Lines FROM 'lines.csv';\nREPLACE INTO stock VALUES …;\nLOAD DATA INFILE 'a.csv' INTO TABLE prices;",
        Reason::Outlined,
    );
}

/// Checks that the outline contains a name, wherever the statement is in the text.
#[track_caller]
fn check_names(text: &str, names: &[&str]) {
    let options = CompactOptions {
        level: Level::Outline,
        ..CompactOptions::default()
    };
    // Long enough to shorten.
    let text = format!(
        "{text}\n{}",
        "PRINT 'padding, padding, padding';\n".repeat(9)
    );
    let outline = compact(&text, Language::Sql, &options);
    assert!(outline.compacted, "{text}");
    for name in names {
        assert!(
            outline.text.contains(name),
            "{name:?} of\n{text}\nis not in\n{}",
            outline.text
        );
    }
}

#[test]
fn statements_may_share_a_line() {
    check_names(
        "CREATE PROC p @a int AS\nIF @a = 1 DELETE dbo.Orders",
        &["DELETE dbo.Orders"],
    );
    check_names(
        "CREATE PROC p AS\nIF @a = 1 UPDATE T SET b = 2, c = 3 WHERE d = 4",
        &["UPDATE T", "d="],
    );
    check_names(
        "IF NOT EXISTS (SELECT * FROM sys.tables WHERE name='t') CREATE TABLE t (a int, b int)",
        &["sys.tables", "CREATE TABLE t (a int,b int)"],
    );
    check_names(
        "BEGIN TRY DELETE dbo.Orders END TRY BEGIN CATCH INSERT dbo.Log VALUES (1) END CATCH",
        &["dbo.Orders", "dbo.Log"],
    );
    check_names("BEGIN TRAN DELETE dbo.Orders COMMIT", &["dbo.Orders"]);
    check_names("again: DELETE dbo.Orders", &["dbo.Orders"]);
    check_names(
        "UPDATE t SET a=1,b=2 IF @@ROWCOUNT=0 INSERT u VALUES (1)",
        &["UPDATE t", "INSERT u"],
    );
    check_names("SELECT @a=1,@b=2 UPDATE T SET c = 3", &["UPDATE T"]);
    check_names(
        "BEGIN\n FORALL i IN 1..n INSERT INTO t VALUES (a(i), b(i));\nEND;",
        &["INSERT INTO t"],
    );
    check_names(
        "BEGIN <<again>> INSERT INTO t VALUES (1); END;",
        &["INSERT INTO t"],
    );
    check_names(
        "DECLARE CONTINUE HANDLER FOR NOT FOUND INSERT INTO t VALUES (1);",
        &["INSERT INTO t"],
    );
}

#[test]
fn keywords_inside_other_statements_begin_none() {
    check_names(
        "CREATE TRIGGER g ON t AFTER INSERT, UPDATE AS\nIF UPDATE(a) SET @b = 1",
        &["ON t AFTER INSERT,UPDATE AS"],
    );
    check(
        "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 1, b = 2, c = 3;",
        Language::Sql,
        "INSERT INTO t (a) VALUES …;",
        Reason::Outlined,
    );
}

#[test]
fn keeps_all_tables_that_a_statement_writes() {
    check_names(
        "INSERT ALL INTO a VALUES (1) INTO b VALUES (2) SELECT 1 FROM dual;",
        &["INTO a", "INTO b", "FROM dual"],
    );
    check_names(
        "MERGE t USING s ON t.a = s.a WHEN NOT MATCHED THEN INSERT VALUES (1, 2) OUTPUT $action INTO log;",
        &["MERGE t USING s", "INTO log"],
    );
    check_names("RENAME TABLE a TO b;", &["RENAME TABLE a TO b"]);
    check_names("REPLACE t VALUES (1, 2, 3);", &["REPLACE t"]);
    check_names(
        "DECLARE @t TABLE (a int, b int);",
        &["@t TABLE (a int,b int)"],
    );
}

#[test]
fn blocks_and_bodies_in_strings_stay() {
    check_names(
        "DO $$ BEGIN CREATE TABLE t (a int, b int); END $$;",
        &["CREATE TABLE t (a int"],
    );
    check_names(
        "CREATE FUNCTION f(a int) RETURNS int AS 'SELECT x FROM t WHERE y = a' LANGUAGE sql;",
        &["FROM t", "LANGUAGE sql"],
    );
    check_names(
        "CREATE FUNCTION f() RETURNS void AS $$\nBEGIN\n  PERFORM 1 FROM t;\n  PERFORM g(1);\nEND $$ LANGUAGE plpgsql;",
        &["FROM t"],
    );
    check_names(
        "SELECT * FROM t WHERE a = $$one\n  two   -- three\n$$ AND b = 1;",
        &["$$one\n  two   -- three\n$$"],
    );
}

#[test]
fn keeps_complete_heads() {
    check(
        "CREATE FUNCTION f (@a int)\nRETURNS table\nAS\nRETURN\nSELECT a, b, c\nFROM t\nLEFT JOIN u ON u.a = t.a\nGROUP BY a, b, c;",
        Language::Sql,
        "CREATE FUNCTION f (@a int)\nRETURNS table\nAS\nRETURN\nSELECT …\nFROM t\nLEFT JOIN u ON u.a=t.a\n…;",
        Reason::Outlined,
    );
    check_names(
        "CREATE DEFINER=`a`@`b` SQL SECURITY INVOKER VIEW v AS SELECT id AS order_id, total AS order_total FROM orders;",
        &["order_id", "order_total"],
    );
    check_names(
        "/*!50001 CREATE ALGORITHM=UNDEFINED */\n/*!50013 DEFINER=`root`@`localhost` SQL SECURITY DEFINER */\n/*!50001 VIEW `v` AS select `a`.`b` AS `c`,`a`.`d` AS `e` from `a` */;",
        &["AS `c`", "AS `e`"],
    );
    check_names(
        "CREATE PROC dbo.pp;2 (@a int, @b int) AS\nDELETE t",
        &["@a int,@b int", "DELETE t"],
    );
    check_names(
        "CREATE TRIGGER tg AFTER UPDATE ON orders REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION audit();",
        &["audit()"],
    );
    check_names(
        "SELECT /*+ INDEX(o ix) */ o.a, o.b, o.c FROM o;",
        &["/*+ INDEX(o ix) */", "FROM o"],
    );
    check_names(
        "UPDATE t SET a=1,b=2,c=3 OPTION (MAXDOP 1);",
        &["OPTION (MAXDOP 1)"],
    );
}

#[test]
fn an_ambiguous_text_is_unchanged() {
    let text = "SELECT a /* x /* y */ , b";
    check(text, Language::Sql, text, Reason::Ambiguous);
}

#[test]
fn sql_in_the_strings_of_a_body_stays() {
    check(
        r#"class Orders
{
    public int Close(int id)
    {
        log.LogInformation("closing the order with the number {id}", id);
        var done = db.Execute("UPDATE Orders SET Closed = 1 " + // all of it
            "WHERE Id = @id", new { id });
        return done + db.Execute(@"
            DELETE FROM Queue
            WHERE OrderId = @id", new { id });
    }
    public Order Find(int id) => db.QuerySingle<Order>($"SELECT * FROM {table} WHERE Id = @id", new { id, more });
    const string All = @"
        SELECT Id, Total
        FROM Orders";
    public void Log(int id)
    {
        log.LogInformation("the order with the number {id} was closed", id);
    }
}
"#,
        Language::DotnetWithSql,
        r#"class Orders{
public int Close(int id){… 3 lines;_ = "UPDATE Orders SET Closed = 1 " +
"WHERE Id = @id";_ = @"
            DELETE FROM Queue
            WHERE OrderId = @id";}
public Order Find(int id)=> … 1 line + $"SELECT * FROM {table} WHERE Id = @id";
const string All = @"
        SELECT Id, Total
        FROM Orders";
public void Log(int id){… 1 line}}"#,
        Reason::Outlined,
    );
}

#[test]
fn an_outline_is_code_except_for_marks() {
    let text = r#"class Orders
{
    void Close() { Check(); db.Run("DELETE FROM Queue WHERE Id = 1"); db.Run("DELETE FROM Orders"); }
    Order Find(int id) => db.QuerySingle<Order>("SELECT * FROM Orders WHERE Id = @id", new { id, more });
}"#;
    let options = CompactOptions {
        level: Level::Outline,
        ..CompactOptions::default()
    };
    let outline = compact(text, Language::Dotnet, &options).text;
    let code = outline
        .replace("{… 1 line", "{")
        .replace("=> … 1 line", "=> x");
    assert!(!code.contains('…'), "{code}");
    assert!(nodes(&code, Reading::CSharp).parsed, "{code}");
}
