//! The nodes of a file, and what they mention.

use std::fmt::Write;

use overlock_code::{MentionKind, Nodes, Owner, Reading, nodes};

/// The nodes as lines: depth, kind, qualified name, first and last line.
fn tree(parts: &Nodes) -> String {
    let mut lines = String::new();
    for node in &parts.nodes[1..] {
        let mut depth = 0;
        let mut parent = node.parent;
        while let Some(above) = parent.filter(|&above| above > 0) {
            depth += 1;
            parent = parts.nodes[above].parent;
        }
        let indent = "  ".repeat(depth);
        let (detail, qualified) = (node.detail, &node.qualified);
        let (first, last) = (node.first_line, node.last_line);
        let _ = writeln!(lines, "{indent}{detail} {qualified} {first}-{last}");
    }
    lines
}

#[track_caller]
fn check_tree(text: &str, reading: Reading, expected: &str) {
    let parts = nodes(text, reading);
    let expected: Vec<_> = expected.lines().map(str::trim_end).collect();
    let found = tree(&parts);
    let found: Vec<_> = found.lines().collect();
    assert_eq!(found, expected, "of {text}");
}

/// The mentions of one node, as text.
fn mentions_of(parts: &Nodes, qualified: &str) -> Vec<String> {
    let node = parts
        .nodes
        .iter()
        .find(|node| node.qualified == qualified)
        .unwrap_or_else(|| panic!("there is no {qualified} in {}", tree(parts)));
    let mut mentions: Vec<_> = node
        .mentions
        .iter()
        .map(|mention| {
            let kind = match mention.kind {
                MentionKind::Calls => "calls",
                MentionKind::References => "names",
                MentionKind::Inherits => "inherits",
                MentionKind::Implements => "implements",
                MentionKind::ReadsTable => "reads",
                MentionKind::WritesTable => "writes",
            };
            let of = match &mention.owner {
                Owner::Named(of) => format!("{of}."),
                Owner::Nearest => String::new(),
                Owner::Unknown => "?.".to_owned(),
            };
            format!("{kind} {of}{}", mention.name)
        })
        .collect();
    mentions.sort();
    mentions
}

#[track_caller]
fn check_said(text: &str, reading: Reading, qualified: &str, expected: &[&str]) {
    assert_eq!(
        mentions_of(&nodes(text, reading), qualified),
        expected,
        "of {text}"
    );
}

const SERVICE: &str = r"using System;
namespace Shop.Orders;

/// <summary>Keeps orders.</summary>
[Scoped]
public partial class OrderService<T>(IOrders orders, ILogger log) : Service<T>(log), IOrderService where T : class
{
    private readonly Clock _clock = new();
    public int Count { get; private set; }

    // Finds one.
    public async Task<Order> Find(int id)
    {
        var sender = new Sender(log);
        sender.Send(id);
        await orders.Get<Order>(id);
        Missing.Report(OrderState.Lost);
        return Local(id);
        Order Local(int key) => Find(key.ToString());
    }

    public Order Find(string key) => _clock.Stamp(key);

    void IOrderService.Close() { this.Count.Reset(); }

    public class Line
    {
        public decimal Price;
        public record struct Tax(int Percent) : ITax;
    }
}

public static class Extensions
{
    public static bool IsOpen(this Order order) => order.State is OrderState.Open;
}
";

#[test]
fn types_members_and_nested_types_are_nodes() {
    check_tree(
        SERVICE,
        Reading::CSharp,
        "\
class Shop.Orders.OrderService 4-31
  properties Shop.Orders.OrderService.properties 8-9
  method Shop.Orders.OrderService.Find 11-20
  method Shop.Orders.OrderService.Find 22-22
  method Shop.Orders.OrderService.Close 24-24
  class Shop.Orders.OrderService.Line 26-30
    properties Shop.Orders.OrderService.Line.properties 28-28
    record Shop.Orders.OrderService.Line.Tax 29-29
class Shop.Orders.Extensions 33-36
  method Shop.Orders.Extensions.IsOpen 35-35",
    );
}

#[test]
fn a_type_mentions_its_bases() {
    check_said(
        SERVICE,
        Reading::CSharp,
        "Shop.Orders.OrderService",
        &[
            "calls Service",
            "implements IOrderService",
            "inherits Service",
            "names ILogger",
            "names IOrders",
            "names Scoped",
            "names ScopedAttribute",
        ],
    );
    check_said(
        SERVICE,
        Reading::CSharp,
        "Shop.Orders.OrderService.Line.Tax",
        &["implements ITax"],
    );
}

#[test]
fn a_call_mentions_the_type_of_the_method_if_known() {
    check_said(
        SERVICE,
        Reading::CSharp,
        "Shop.Orders.OrderService.Find",
        &[
            "calls ?.ToString",
            "calls Find",
            "calls IOrders.Get",
            "calls Missing.Report",
            "calls Sender",
            "calls Sender.Send",
            "names Missing",
            "names Order",
            "names OrderState",
            "names Sender",
            "names Task",
        ],
    );
    check_said(
        SERVICE,
        Reading::CSharp,
        "Shop.Orders.OrderService.Close",
        &["calls ?.Reset", "names IOrderService"],
    );
}

#[test]
fn base_is_the_base_class() {
    let text = "using Old = Legacy.Shapes;
namespace Shop;
class Square : Lib.Shape<int>, IDraw
{
    Square(int side) : base(side) { }
    Square() : this(1) { }
    void Draw() { base.Draw(); this.Fill(); }
}
class Round : IDraw { void Draw() { base.ToString(); } }
partial class Half { void Draw() { base.Draw(); } }
class Circle : Old.Circle { void Draw() { base.Draw(); } }
";
    check_said(
        text,
        Reading::CSharp,
        "Shop.Square",
        &["implements IDraw", "inherits Lib.Shape"],
    );
    let parts = nodes(text, Reading::CSharp);
    let constructors: Vec<_> = parts
        .nodes
        .iter()
        .filter(|node| node.detail == "constructor")
        .map(|node| (&node.mentions[0].owner, &*node.mentions[0].name))
        .collect();
    let of = |name: &str| Owner::Named(name.to_owned());
    assert_eq!(
        constructors,
        [(&of("Lib"), "Shape"), (&of("Square"), "Square")]
    );
    check_said(
        text,
        Reading::CSharp,
        "Shop.Square.Draw",
        &["calls Fill", "calls Lib.Shape.Draw"],
    );
    check_said(text, Reading::CSharp, "Shop.Round.Draw", &[]);
    check_said(text, Reading::CSharp, "Shop.Half.Draw", &["calls ?.Draw"]);
    check_said(
        text,
        Reading::CSharp,
        "Shop.Circle.Draw",
        &["calls Legacy.Shapes.Circle.Draw"],
    );
}

#[test]
fn a_type_is_mentioned_with_its_namespace_if_written() {
    let text = "using System;
using static Shop.Tools;
using Y = Other.Parts;
namespace Shop.Web
{
    using Data;
    class Page
    {
        X.Foo one;
        void Show(Y.Foo two, global::X.List<X.Bar> three)
        {
            one.Run();
            two.Run();
            three.Run();
            new X.Foo().Stop();
            Shop.Data.Rows.Load();
            Context.Rows.Load();
        }
    }
}
";
    let parts = nodes(text, Reading::CSharp);
    assert_eq!(
        parts.imports,
        ["Data", "Shop.Tools", "Shop.Web.Data", "System"]
    );
    check_said(
        text,
        Reading::CSharp,
        "Shop.Web.Page.Show",
        &[
            "calls Other.Parts.Foo.Run",
            "calls Rows.Load",
            "calls Shop.Data.Rows.Load",
            "calls X.Foo",
            "calls X.Foo.Run",
            "calls X.Foo.Stop",
            "calls X.List.Run",
            "names Context",
            "names Other.Parts.Foo",
            "names Shop",
            "names X.Bar",
            "names X.Foo",
            "names X.List",
        ],
    );
}

#[test]
fn a_type_shows_its_members_without_their_bodies() {
    let parts = nodes(SERVICE, Reading::CSharp);
    let own = parts.text_of(SERVICE, 1);
    assert!(
        own.starts_with("/// <summary>Keeps orders.</summary>\n[Scoped]"),
        "{own}"
    );
    assert!(
        own.contains("public async Task<Order> Find(int id)\n    { … 6 lines }"),
        "{own}"
    );
    assert!(
        own.contains("public int Count { get; private set; }"),
        "{own}"
    );
    assert!(
        !own.contains("sender.Send") && own.ends_with("\n}"),
        "{own}"
    );
    let file = parts.text_of(SERVICE, 0);
    assert!(
        file.starts_with("using System;") && file.contains("{ … 19 lines }"),
        "{file}"
    );
    assert!(parts.text_of(SERVICE, 3).contains("sender.Send(id);"));
    assert_eq!(parts.text_of(SERVICE, 99), "");
}

#[test]
fn both_branches_of_a_directive_are_read() {
    check_tree(
        "class A\n{\n    int a;\n#if NET8\n    void M(int a) { N(); }\n    int b;\n#else\n    void M() { }\n#endif\n    int c;\n}\n",
        Reading::CSharp,
        "\
class A 1-11
  properties A.properties 3-3
  method A.M 5-5
  properties A.properties 6-6
  method A.M 8-8
  properties A.properties 10-10",
    );
}

#[test]
fn top_level_statements_are_a_method() {
    let text = "using System;\n\n// Starts.\nvar app = Build(args);\napp.Run();\n\nstatic App Build(string[] args) => new App();\n\nConsole.WriteLine();\nnamespace A.B { class C { void D() { } } namespace E { struct F; } }\n";
    check_tree(
        text,
        Reading::CSharp,
        "\
statements Program.Main 3-5
function Build 7-7
statements Program.Main 9-9
class A.B.C 10-10
  method A.B.C.D 10-10
struct A.B.E.F 10-10",
    );
    check_said(text, Reading::CSharp, "Build", &["calls App", "names App"]);
}

#[test]
fn sql_in_a_string_belongs_to_its_method() {
    let text = r#"class Carts
{
    const string All = "SELECT * FROM Carts";
    void One(IDbConnection db, int id)
    {
        db.Query("SELECT c.Id, " + columns + " FROM dbo.[Carts] c "
            + "JOIN Lines l ON l.CartId = c.Id");
        db.Execute(@"UPDATE Carts
            SET Note = ""x"" WHERE Id = @id");
    }
    void Two(IDbConnection db)
    {
        db.Execute($"DELETE FROM {table} WHERE Id = {id}");
        db.Execute($"INSERT INTO Log_{year} (A) SELECT A FROM Source");
        db.Execute("""
            MERGE INTO Totals AS t USING Sums AS s ON t.Id = s.Id WHEN MATCHED THEN UPDATE SET N = s.N;
            """);
        db.Execute("EXEC dbo.Rebuild @id");
        Log("Select an item from the list");
    }
}
"#;
    let tables = |qualified: &str| {
        let mut said = mentions_of(&nodes(text, Reading::CSharp), qualified);
        said.retain(|said| {
            !said.starts_with("names ")
                && !said.contains("IDbConnection")
                && !said.ends_with("calls Log")
        });
        said
    };
    assert_eq!(tables("Carts.properties"), ["reads Carts"]);
    assert_eq!(
        tables("Carts.One"),
        ["reads Lines", "reads dbo.Carts", "writes Carts"]
    );
    assert_eq!(
        tables("Carts.Two"),
        [
            "calls dbo.Rebuild",
            "reads Source",
            "reads Sums",
            "writes Totals"
        ]
    );
}

#[test]
fn finds_calls_of_stored_procedures_by_name_in_a_string() {
    let text = r#"class Carts
{
    void Close(SqlConnection c)
    {
        var command = new SqlCommand("dbo.[CloseCart]", c) { CommandType = CommandType.StoredProcedure };
        command.Parameters.AddWithValue("@id", 1);
        var name = command.ExecuteReader()["Cart"];
    }
    void Show() { Print("CloseCart"); }
}
"#;
    let parts = nodes(text, Reading::CSharp);
    let close = mentions_of(&parts, "Carts.Close");
    assert!(
        close.contains(&"calls dbo.CloseCart".to_owned()),
        "{close:?}"
    );
    assert!(
        !close
            .iter()
            .any(|said| said.ends_with("Cart") && !said.ends_with("CloseCart")),
        "{close:?}"
    );
    assert_eq!(mentions_of(&parts, "Carts.Show"), ["calls Print"]);
}

const BATCHES: &str = "\
SET ANSI_NULLS ON
GO
-- Closes orders.
CREATE OR ALTER PROCEDURE [dbo].[CloseOrders]
    @customer int, @note AS nvarchar(50) = N'x'
WITH EXECUTE AS OWNER
AS
BEGIN
    CREATE TABLE #t (Id int);
    WITH old AS (SELECT Id FROM dbo.Orders), newer (a) AS (SELECT 1 FROM old)
    INSERT INTO #t SELECT Id FROM newer n JOIN dbo.Lines (NOLOCK) AS l ON l.Id = n.a
    UPDATE o SET Closed = 1 FROM dbo.Orders AS o INNER JOIN #t t ON t.Id = o.Id
    DELETE l FROM [dbo].[Lines] l WHERE EXISTS (SELECT 1 FROM [Old Archive].[Old Lines] x WHERE x.Id = l.Id)
    MERGE INTO dbo.Stats AS target USING dbo.NewStats AS source ON target.Id = source.Id
      WHEN MATCHED THEN UPDATE SET n = source.n
      WHEN NOT MATCHED THEN INSERT (n) VALUES (source.n);
    INSERT dbo.Log (At) SELECT GETDATE() FROM dbo.Clock;
    EXEC @r = dbo.Notify @customer, 'closed';
    SELECT * INTO dbo.Backup FROM dbo.fnOpen(@customer) f CROSS APPLY dbo.fnMore(f.Id);
    EXEC sp_executesql N'SELECT * FROM dbo.Dynamic WHERE a = ''b''';
    SELECT dbo.fnTax(1), COUNT(*) FROM sys.objects, dbo.A a, dbo.B;
    TRUNCATE TABLE dbo.Scratch
END
GO
CREATE VIEW dbo.[Open] AS SELECT * FROM dbo.Older v UNION ALL SELECT * FROM dbo.Newer
GO
CREATE TRIGGER trg ON dbo.Orders AFTER INSERT, UPDATE AS
  IF UPDATE(Closed) INSERT INTO dbo.Audit SELECT * FROM inserted
GO
IF OBJECT_ID('x') IS NULL
CREATE TABLE dbo.Orders (
  Id int PRIMARY KEY,
  CustomerId int REFERENCES dbo.Customers(Id) ON DELETE CASCADE
)
CREATE INDEX ix ON dbo.Orders (CustomerId)
ALTER TABLE dbo.Orders ADD CONSTRAINT fk FOREIGN KEY (a) REFERENCES dbo.Other (b)
GO
INSERT INTO dbo.Seeds VALUES (1)
GO
";

#[test]
fn finds_procedures_views_triggers_and_tables_in_batches() {
    check_tree(
        BATCHES,
        Reading::Sql,
        "\
procedure dbo.CloseOrders 3-23
view dbo.Open 25-25
trigger trg 27-28
table dbo.Orders 31-34",
    );
}

#[test]
fn a_procedure_mentions_what_it_reads_writes_and_calls() {
    check_said(
        BATCHES,
        Reading::Sql,
        "dbo.CloseOrders",
        &[
            "calls dbo.Notify",
            "calls dbo.fnMore",
            "calls dbo.fnOpen",
            "calls dbo.fnTax",
            "calls sp_executesql",
            "reads Old Archive.Old Lines",
            "reads dbo.A",
            "reads dbo.B",
            "reads dbo.Clock",
            "reads dbo.Dynamic",
            "reads dbo.Lines",
            "reads dbo.NewStats",
            "reads dbo.Orders",
            "writes dbo.Backup",
            "writes dbo.Lines",
            "writes dbo.Log",
            "writes dbo.Orders",
            "writes dbo.Scratch",
            "writes dbo.Stats",
        ],
    );
    check_said(
        BATCHES,
        Reading::Sql,
        "dbo.Open",
        &["reads dbo.Newer", "reads dbo.Older"],
    );
    check_said(
        BATCHES,
        Reading::Sql,
        "trg",
        &["names dbo.Orders", "writes dbo.Audit"],
    );
    check_said(
        BATCHES,
        Reading::Sql,
        "dbo.Orders",
        &["names dbo.Customers"],
    );
    check_said(
        BATCHES,
        Reading::Sql,
        "",
        &["names dbo.Orders", "names dbo.Other", "writes dbo.Seeds"],
    );
}

const POSTGRES: &str = "\
CREATE OR REPLACE FUNCTION shop.close(a int) RETURNS void AS $body$
DECLARE n int := 5;
BEGIN
  SELECT count(*) INTO n FROM orders o WHERE o.id = a AND extract(year FROM o.at) = 2000;
  UPDATE ONLY orders SET closed = now() WHERE id = a;
  PERFORM shop.notify(a);
  IF a IS DISTINCT FROM 3 THEN DELETE FROM lines USING \"Old Orders\" x WHERE lines.id = x.id; END IF;
END;
$body$ LANGUAGE plpgsql;
CREATE TABLE IF NOT EXISTS orders (id serial PRIMARY KEY, customer int REFERENCES customers);
CREATE TEMP TABLE scratch AS SELECT * FROM orders;
SELECT * FROM scratch;
CREATE TRIGGER t AFTER UPDATE OF a ON orders FOR EACH ROW EXECUTE FUNCTION shop.close();
CREATE MATERIALIZED VIEW totals AS WITH x AS (SELECT * FROM orders) SELECT * FROM x, LATERAL (SELECT 1 FROM lines) l;
";

#[test]
fn functions_of_postgres_have_their_bodies_in_strings() {
    check_tree(
        POSTGRES,
        Reading::Sql,
        "\
function shop.close 1-9
table orders 10-10
trigger t 13-13
view totals 14-14",
    );
    check_said(
        POSTGRES,
        Reading::Sql,
        "shop.close",
        &[
            "calls shop.notify",
            "reads Old Orders",
            "reads orders",
            "writes lines",
            "writes orders",
        ],
    );
    check_said(
        POSTGRES,
        Reading::Sql,
        "t",
        &["calls shop.close", "names orders"],
    );
    check_said(
        POSTGRES,
        Reading::Sql,
        "totals",
        &["reads lines", "reads orders"],
    );
    check_said(POSTGRES, Reading::Sql, "", &["reads orders"]);
}

#[test]
fn statements_of_mysql_end_at_the_delimiter() {
    let text = "\
DELIMITER $$
CREATE DEFINER=`root`@`localhost` PROCEDURE `in stock`(IN p INT)
BEGIN
  SELECT id FROM `shop`.`inventory` WHERE a = 'it\\'s';
  INSERT IGNORE INTO log SELECT 1 FROM inventory;
END$$
CREATE TRIGGER ins AFTER INSERT ON film FOR EACH ROW BEGIN INSERT INTO film_text VALUES (1); END$$
DELIMITER ;
CREATE TABLE actor (id INT, KEY idx (id)) ENGINE=InnoDB;
";
    check_tree(
        text,
        Reading::Sql,
        "\
procedure in stock 2-6
trigger ins 7-7
table actor 9-9",
    );
    check_said(
        text,
        Reading::Sql,
        "in stock",
        &["reads inventory", "reads shop.inventory", "writes log"],
    );
    check_said(
        text,
        Reading::Sql,
        "ins",
        &["names film", "writes film_text"],
    );
}

#[test]
fn reads_executed_comments_of_mysql() {
    let text = "\
DELIMITER $$
CREATE PROCEDURE show_all()
BEGIN
  /*!50706
  SELECT user FROM setup_actors;
  */
  DELETE FROM log;
END$$
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 TRIGGER ins AFTER INSERT ON film FOR EACH ROW
BEGIN INSERT INTO film_text VALUES (1); END */$$
DELIMITER ;
";
    check_tree(
        text,
        Reading::Sql,
        "\
procedure show_all 2-8
trigger ins 9-10",
    );
    check_said(
        text,
        Reading::Sql,
        "show_all",
        &["reads setup_actors", "writes log"],
    );
    check_said(
        text,
        Reading::Sql,
        "ins",
        &["names film", "writes film_text"],
    );
}

#[test]
fn a_run_of_hints_hides_nothing() {
    let hints = "/*+ x */ ".repeat(5_000);
    let text = format!("CREATE PROCEDURE p AS BEGIN\n{hints}\nDELETE FROM t; END\n");
    assert_eq!(mentions_of(&nodes(&text, Reading::Sql), "p"), ["writes t"]);
}

#[test]
fn queries_without_a_result_and_inserts_into_several_tables_are_read() {
    check_said(
        "CREATE FUNCTION f() RETURNS void AS $$\nBEGIN\n  PERFORM 1 FROM t;\n  PERFORM g(1);\nEND $$ LANGUAGE plpgsql;",
        Reading::Sql,
        "f",
        &["calls g", "reads t"],
    );
    check_said(
        "CREATE OR REPLACE PROCEDURE p AS\nBEGIN\n  INSERT ALL INTO a VALUES (1) INTO b (x) VALUES (2) SELECT 1 FROM c;\nEND;\n/\n",
        Reading::Sql,
        "p",
        &["reads c", "writes a", "writes b"],
    );
}

#[test]
fn an_oracle_package_contains_its_procedures() {
    let text = "\
CREATE OR REPLACE PACKAGE BODY pay.staff AS
  g_rate NUMBER := 1;
  -- hires
  FUNCTION hire (name VARCHAR2) RETURN NUMBER IS
    n NUMBER;
  BEGIN
    SELECT seq.NEXTVAL INTO n FROM dual;
    INSERT INTO employees VALUES (n, name);
    RETURN n;
  END;
  PROCEDURE fire(id NUMBER) IS
  BEGIN
    DELETE FROM employees WHERE employee_id = id;
    log_it(id);
  END fire;
END staff;
/
CREATE OR REPLACE PROCEDURE p AS BEGIN NULL; END;
/
";
    check_tree(
        text,
        Reading::Sql,
        "\
package pay.staff 1-16
  function pay.staff.hire 3-10
  procedure pay.staff.fire 11-15
procedure p 18-18",
    );
    check_said(text, Reading::Sql, "pay.staff.hire", &["writes employees"]);
    check_said(
        text,
        Reading::Sql,
        "pay.staff.fire",
        &["calls log_it", "writes employees"],
    );
}

#[test]
fn a_package_on_one_line_contains_its_procedures() {
    let text = "create or replace package body pk is procedure p1 is begin p2; end; procedure p2 is begin null; end; end pk;\n/\n";
    check_tree(
        text,
        Reading::Sql,
        "\
package pk 1-1
  procedure pk.p1 1-1
  procedure pk.p2 1-1",
    );
    check_said(text, Reading::Sql, "pk.p1", &["calls p2"]);
    check_tree(
        "create package body a as procedure b is begin null; end; end;",
        Reading::Sql,
        "package a 1-1\n  procedure a.b 1-1",
    );
}

#[test]
fn a_procedure_is_called_by_its_name_alone() {
    let text = "\
CREATE OR REPLACE PROCEDURE p AS
  total NUMBER;
BEGIN
  p2;
  pk.p3; <<again>> p4;
  IF total > 1 THEN p5; ELSE \"P six\"; END IF;
  LOOP p7; EXIT; END LOOP;
  NULL;
  COMMIT;
  total := p8;
  RETURN;
EXCEPTION WHEN OTHERS THEN RAISE;
END p;
/
";
    check_said(
        text,
        Reading::Sql,
        "p",
        &[
            "calls P six",
            "calls p2",
            "calls p4",
            "calls p5",
            "calls p7",
            "calls pk.p3",
        ],
    );
    // In other dialects, a name alone is not a call.
    check_said(
        "SELECT 1;\nGO\nSELECT a FROM t\nb;\n",
        Reading::Sql,
        "",
        &["reads t"],
    );
}

#[test]
fn sections_of_markdown_end_at_the_next_heading_of_their_level() {
    let text = "---\ntitle: x\n---\nIntro\n\n# Usage\nSee `OrderService.Find()`.\n## Options #\n```sh\n# no heading\n```\nSetext\n------\ntext\n# Other\n";
    check_tree(
        text,
        Reading::Markdown,
        "\
section Usage 6-14
  section Usage > Options 8-11
  section Usage > Setext 12-14
section Other 15-15",
    );
    check_said(
        text,
        Reading::Markdown,
        "Usage",
        &["names OrderService.Find"],
    );
    let parts = nodes(text, Reading::Markdown);
    assert_eq!(
        parts.text_of(text, 1),
        "# Usage\nSee `OrderService.Find()`.\n## Options #\n… 3 lines\nSetext\n------\ntext\n"
    );
}

#[test]
fn ignores_headings_in_comments_of_markdown() {
    check_tree(
        "# One\n<!-- # Not one -->\n<!--\n# Two\n```\nThree\n=====\n--> # Still not\n# Four\nMore <!-- x\n## Five\n",
        Reading::Markdown,
        "\
section One 1-8
section Four 9-11
  section Four > Five 11-11",
    );
}

#[test]
fn carriage_returns_end_lines() {
    for (text, reading, expected) in [
        (
            "class A\r{\r    // Runs.\r    void B()\r    {\r        C();\r    }\r}\r",
            Reading::CSharp,
            "class A 1-8\n  method A.B 3-7",
        ),
        (
            "Class A\r    Sub B()\r    End Sub\rEnd Class\r",
            Reading::VisualBasic,
            "class A 1-4\n  method A.B 2-3",
        ),
        (
            "-- one\rCREATE TABLE t (a int);\r-- two\rCREATE VIEW v AS\rSELECT a FROM t;\r",
            Reading::Sql,
            "table t 1-2\nview v 3-5",
        ),
        (
            "# A\rb\r# C\r",
            Reading::Markdown,
            "section A 1-2\nsection C 3-3",
        ),
    ] {
        check_tree(text, reading, expected);
        let feeds = text.replace('\r', "\n");
        assert_eq!(nodes(text, reading), nodes(&feeds, reading));
    }
}

#[test]
fn visual_basic_is_read_by_its_lines() {
    let text = "\
Imports System
Namespace Shop
    ''' <summary>A form.</summary>
    Public Class Form1
        Inherits Form
        Implements IForm, Other.IMore

        Public Sub New(ByVal a As Clock)
            Dim list As New Orders(a)
        End Sub
        Private Async Function Click(sender As Object) As Task(Of Integer) Handles Button1.Click
            Return Await Load(sender)
        End Function
        MustOverride Sub Later()
    End Class
    Interface IForm
        Sub Show()
    End Interface
End Namespace
";
    check_tree(
        text,
        Reading::VisualBasic,
        "\
class Shop.Form1 3-15
  constructor Shop.Form1.New 8-10
  method Shop.Form1.Click 11-13
  method Shop.Form1.Later 14-14
interface Shop.IForm 16-18
  method Shop.IForm.Show 17-17",
    );
    let class = mentions_of(&nodes(text, Reading::VisualBasic), "Shop.Form1");
    assert_eq!(
        class,
        [
            "implements IForm",
            "implements Other.IMore",
            "inherits Form"
        ]
    );
    let new = mentions_of(&nodes(text, Reading::VisualBasic), "Shop.Form1.New");
    assert!(
        new.contains(&"calls Orders".to_owned()) && new.contains(&"names Clock".to_owned()),
        "{new:?}"
    );
}

#[test]
fn statements_of_visual_basic_can_share_a_line() {
    let text = "\
Class One : Inherits W1 : Sub Go() : Stop() : End Sub
    Public Sub Say(text As String) : Print(\"a: Class B\") : End Sub ' : Class C
End Class
<Serializable> Public Class Two : End Class
";
    check_tree(
        text,
        Reading::VisualBasic,
        "\
class One 1-3
  method One.Go 1-1
  method One.Say 2-2
class Two 4-4",
    );
    check_said(text, Reading::VisualBasic, "One", &["inherits W1"]);
    check_said(text, Reading::VisualBasic, "One.Go", &["calls Stop"]);
    let parts = nodes(text, Reading::VisualBasic);
    assert!(parts.parsed);
    assert_eq!(parts.text_of(text, 2), "Sub Go() : Stop() : End Sub");
}

#[test]
fn properties_and_members_of_interfaces_are_nodes_in_visual_basic() {
    let text = "\
Public Class Cart
    Private ReadOnly _lines As New List(Of Line)
    ''' <summary>How many.</summary>
    Public Property Count As Integer
    <Obsolete>
    Public ReadOnly Property Total() As Decimal
        Get
            Return Sum(_lines)
        End Get
    End Property
    Public Event Changed(sender As Object)
    Public Sub Clear()
        Dim property1 As Integer = 1
    End Sub
    Public Const Most As Integer = 12
End Class
Public Interface ICart
    Property Count As Integer
    ReadOnly Property Total As Decimal
    Sub Clear()
    Function Find(id As Integer) As Line
End Interface
Public Delegate Sub Changed(sender As Object)
Module Native
    Declare Auto Function Beep Lib \"kernel32\" (a As Integer) As Boolean
End Module
";
    check_tree(
        text,
        Reading::VisualBasic,
        "\
class Cart 1-16
  properties Cart.properties 2-11
  method Cart.Clear 12-14
  properties Cart.properties 15-15
interface ICart 17-22
  properties ICart.properties 18-19
  method ICart.Clear 20-20
  method ICart.Find 21-21
delegate Changed 23-23
module Native 24-26
  method Native.Beep 25-25",
    );
    let parts = nodes(text, Reading::VisualBasic);
    assert_eq!(parts.nodes[2].name, "_lines, Count, Total, Changed");
    let own = parts.text_of(text, 1);
    assert!(
        own.contains("Property Total() As Decimal … 3 lines\n") && !own.contains("Return Sum"),
        "{own}"
    );
    assert!(mentions_of(&parts, "Cart.properties").contains(&"calls Sum".to_owned()));
}

#[test]
fn sql_in_the_strings_of_visual_basic_is_read() {
    let text = "\
Class Carts
    Sub One(c As SqlConnection)
        Dim sql As String = \"SELECT c.Id FROM dbo.Carts c \" & _
            \"JOIN Lines l ON l.CartId = c.Id\" & vbCrLf &
            \"WHERE c.Id = \" & id & \" ORDER BY c.Id\"
        Run($\"UPDATE Totals SET A = {value} WHERE B = \"\"x\"\"\")
        Dim command As New SqlCommand(\"CloseCart\", c)
        command.CommandType = CommandType.StoredProcedure
    End Sub
    Sub Two()
        Log(\"Select an item from the list\")
    End Sub
End Class
";
    let parts = nodes(text, Reading::VisualBasic);
    let of = |name: &str| {
        let mut said = mentions_of(&parts, name);
        said.retain(|said| !said.starts_with("names "));
        said
    };
    assert_eq!(
        of("Carts.One"),
        [
            "calls CloseCart",
            "calls Run",
            "calls SqlCommand",
            "reads Lines",
            "reads dbo.Carts",
            "writes Totals"
        ]
    );
    assert_eq!(of("Carts.Two"), ["calls Log"]);
}

#[test]
fn me_and_mybase_are_the_type_and_its_base() {
    let text = "\
Imports Shop.Data, System
Class Page
    Inherits Lib.Form
    Private store As Shop.Store
    Sub New() : MyBase.New(1) : End Sub
    Sub Go()
        Me.Go()
        Me.Stop()
        MyBase.Go()
        store.Save()
        Other().Save()
        Dim list As New X.List(2)
    End Sub
End Class
Class Bare
    Sub Go() : MyBase.ToString() : Me.Run() : End Sub
End Class
";
    check_said(
        text,
        Reading::VisualBasic,
        "Page.New",
        &["calls Lib.Form", "calls Lib.Form.New"],
    );
    check_said(
        text,
        Reading::VisualBasic,
        "Page.Go",
        &[
            "calls ?.Save",
            "calls Lib.Form.Go",
            "calls Lib.Form.Stop",
            "calls Other",
            "calls Page.Go",
            "calls Page.Stop",
            "calls Shop.Store.Save",
            "calls X.List",
            "names X.List",
        ],
    );
    check_said(text, Reading::VisualBasic, "Bare.Go", &["calls Bare.Run"]);
    assert_eq!(
        nodes(text, Reading::VisualBasic).imports,
        ["Shop.Data", "System"]
    );
}

#[test]
fn a_long_file_without_parts_has_sections() {
    let text = "one line of a file that has no other parts\n".repeat(1000);
    let parts = nodes(&text, Reading::Plain);
    assert_eq!(parts.nodes.len(), 12, "{}", tree(&parts));
    assert!(
        parts.nodes[1..]
            .iter()
            .all(|node| node.detail == "lines" && node.span.len() <= 5 * 1024)
    );
    assert_eq!(nodes("short", Reading::Plain).nodes.len(), 1);
}

#[test]
fn detects_the_language_by_name_or_text() {
    for (path, text, reading) in [
        ("a/b.cs", "", Reading::CSharp),
        ("README.MD", "x", Reading::Markdown),
        ("Orders.vb", "", Reading::VisualBasic),
        ("Page.cshtml", "", Reading::Dotnet),
        (
            "dump",
            "CREATE TABLE t (id int);\nSELECT * FROM t;",
            Reading::Sql,
        ),
        ("a.py", "def f():\n    return 1\n", Reading::Plain),
        ("", "", Reading::Plain),
    ] {
        assert_eq!(Reading::of_file(path, text), reading, "{path}");
    }
}

#[test]
fn strings_in_rows_are_not_statements() {
    check_said(
        "CREATE PROCEDURE p AS\nBEGIN\n  INSERT INTO dbo.Log (Said) VALUES (N'DELETE FROM dbo.Customers');\n  EXEC (N'DELETE FROM dbo.Queue');\nEND",
        Reading::Sql,
        "p",
        &["writes dbo.Log", "writes dbo.Queue"],
    );
}
