"""Shows a document while it streams in, without parsing it again from the start."""

from collections.abc import Iterator

import overlock

ANSWER = """{
  "title": "A day in the hive",
  "chapters": [
    {"name": "Morning", "text": "The first foragers leave at dawn."},
    {"name": "Noon", "text": "The dancers tell where the lime trees are."}
  ]
}"""


def stream() -> Iterator[str]:
    """Yields an answer a few characters at a time."""
    for at in range(0, len(ANSWER), 16):
        yield ANSWER[at : at + 16]


def main() -> None:
    scanner = overlock.Scanner()
    for piece in stream():
        scanner.feed(piece)
        if not scanner.has_value:
            continue
        document = scanner.value()  # the same object every time, and it grows
        chapters = document.get("chapters", [])
        shown = chapters[-1].get("text", "") if chapters else ""
        print(f"{document.get('title', '')!r:22} {len(chapters)} chapters  {shown[-30:]!r}")
    assert scanner.is_complete


if __name__ == "__main__":
    main()
