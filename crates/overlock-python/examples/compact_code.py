"""Compacts code for a prompt: without comments, and as an outline."""

import overlock

CODE = """
/// <summary>Finds customers.</summary>
public class Customers(IDbConnection connection)
{
    // The index is on City, so that this is cheap.
    [Cached]
    public IEnumerable<Customer> In(string city)
    {
        var trimmed = city.Trim();
        return connection.Query<Customer>("SELECT * FROM Customer WHERE City = @trimmed", new { trimmed });
    }

    public int Count() => connection.ExecuteScalar<int>("SELECT COUNT(*) FROM Customer");
}
"""


def main() -> None:
    known = overlock.classify(CODE)
    print(f"{known.language}, {known.syntax}")
    print("original:", overlock.count_tokens(CODE, model="gpt-4o"), "tokens")
    lossless = overlock.compact(CODE)
    print("lossless:", overlock.count_tokens(lossless.text, model="gpt-4o"), "tokens")
    outline = overlock.compact(CODE, level="outline")
    print("outline:", overlock.count_tokens(outline.text, model="gpt-4o"), "tokens")
    print(outline.text)


if __name__ == "__main__":
    main()
