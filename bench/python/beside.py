"""The Python package beside its peers: right at every offset, and how fast.

    beside.py VOCABULARIES [--quick]

`cargo xtask bench python` builds the package as users get it and runs this. VOCABULARIES is the
folder that `tiktoken` reads its own from.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jiter
import json_repair
import langchain_core.messages
import langchain_core.utils.json
import partial_json_parser
import pydantic_core
import tiktoken
import tiktoken.load

import overlock

QUICK = "--quick" in sys.argv


def main() -> None:
    table("right at every offset of a cut document", correctness(sections(20 if QUICK else 40)))
    table("speed of one document (ms; the best of several)", speed())
    table("a value after every 20 bytes of a stream", streaming())
    table("one string of several megabytes that streams in, 20 bytes at a time", one_string())
    table("tokens", tokens())
    table("trimming a chat of 2,000 messages to 8,192 tokens", trimming())
    table("eight threads at once (each repairs and counts twice)", threads())


# What is measured with.


def sections(count: int) -> str:
    """A document of sections as models write them, with a number in every record."""
    chosen = random.Random(4)
    words = "the quick brown fox jumps over lazy dogs naïve café 😀 “quoted” 1 23".split()

    def text(length: int) -> str:
        return " ".join(chosen.choice(words) for _ in range(length)) + '\n\t"done"'

    made = [
        {
            "id": n * 137,
            "title": text(4),
            "score": chosen.uniform(-1000, 1000),
            "flags": [True, False, None],
            "content": text(20),
        }
        for n in range(count)
    ]
    return json.dumps({"sections": made, "count": count}, ensure_ascii=count % 2 == 1)


def best(work: Callable[[], Any], times: int = 5) -> float:
    """Milliseconds."""
    taken = []
    for _ in range(2 if QUICK else times):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return min(taken) * 1000


def table(title: str, rows: list[list[str]]) -> None:
    print(f"\n{title}\n")
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths)]
        print("  " + "  ".join(cells).rstrip(), flush=True)


def name_of(package: str) -> str:
    return f"{package} {version(package)}"


PARTIAL: list[tuple[str, Callable[[str], Any]]] = [
    ("overlock.loads", overlock.loads),
    (f"{name_of('jiter')} (partial)", lambda t: jiter.from_json(t.encode(), partial_mode="trailing-strings")),
    (f"{name_of('pydantic_core')} (partial)", lambda t: pydantic_core.from_json(t, allow_partial="trailing-strings")),
    (name_of("partial-json-parser"), partial_json_parser.loads),
    (f"LangChain parse_partial_json {version('langchain-core')}", langchain_core.utils.json.parse_partial_json),
    (name_of("json_repair"), json_repair.loads),
]


# Right at every offset.


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from leaves(inner, (*path, at))
    else:
        yield path, value


def whole_before(text: str) -> list[int]:
    """How many leaves are certainly whole before each offset: the scanner of Python's own `json`
    is asked for each value, and a number counts once something follows it."""
    counts = [0] * (len(text) + 1)
    decoder = json.JSONDecoder()
    at, is_key = 0, False
    stack: list[str] = []
    while at < len(text):
        character = text[at]
        if character in "{[":
            stack.append(character)
            is_key = character == "{"
            at += 1
        elif character in "}]":
            stack.pop()
            is_key = False
            at += 1
        elif character in " \n\t\r":
            at += 1
        elif character == ",":
            is_key = stack[-1] == "{"
            at += 1
        elif character == ":":
            is_key = False
            at += 1
        else:
            value, end = decoder.raw_decode(text, at)
            if not is_key:
                is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
                counts[min(end + is_number, len(text))] += 1
            at = end
    total = 0
    for offset, more in enumerate(counts):
        total += more
        counts[offset] = total
    return counts


def correctness(document: str) -> list[list[str]]:
    rows = [["", "right", "raised", "lost a whole value", "made one up"]]
    truth = dict(leaves(json.loads(document)))
    places = {path: at for at, path in enumerate(truth)}
    whole = whole_before(document)
    offsets = range(1, len(document) + 1, 5 if QUICK else 2)
    for name, parse in PARTIAL:
        right = raised = lost = invented = 0
        for offset in offsets:
            try:
                found = list(leaves(parse(document[:offset])))
            except Exception:
                raised += 1
                continue
            wrong = [(path, value) for path, value in found if not agrees(truth, path, value)]
            have = {places[path] for path, _ in found if path in places}
            # One string at the cut may be half; everything else must be as it was written.
            if len(wrong) > 1 or any(not is_half(truth, path, value) for path, value in wrong):
                invented += 1
            elif any(at not in have for at in range(whole[offset])):
                lost += 1
            else:
                right += 1
        count = len(offsets)
        shown = [f"{part * 100 / count:.1f} %" for part in (right, raised, lost, invented)]
        rows.append([name, *shown])
    return rows


def agrees(truth: dict[Any, Any], path: tuple[Any, ...], value: Any) -> bool:
    return path in truth and repr(truth[path]) == repr(value)


def is_half(truth: dict[Any, Any], path: tuple[Any, ...], value: Any) -> bool:
    written = truth.get(path)
    return isinstance(value, str) and isinstance(written, str) and written.startswith(value)


# How fast.


def speed() -> list[list[str]]:
    size = 300 if QUICK else 1000
    document = sections(size)
    cut = document[: len(document) * 9 // 10]
    broken = document.replace('"id":', "id:")
    small = sections(6)[:500]
    rows = [["", f"whole, {len(document) >> 10} KB", "cut at 90 %", "keys without quotes", "500 bytes, cut"]]

    def measured(name: str, parse: Callable[[str], Any]) -> list[str]:
        row = [name]
        for text, times in ((document, 1), (cut, 1), (broken, 1), (small, 200)):
            try:
                parse(text)
            except Exception:
                row.append("raises")
                continue
            taken = best(lambda: [parse(text) for _ in range(times)], 3 if times == 1 else 5) / times
            row.append(f"{taken:.4f}" if taken < 0.1 else f"{taken:.1f}")
        return row

    rows.append(measured("json.loads", json.loads))
    for name, parse in PARTIAL:
        rows.append(measured(name, parse))
    return rows


def streaming() -> list[list[str]]:
    sizes = [1 << 16, 1 << 17] if QUICK else [1 << 17, 1 << 18, 10_000_000]
    rows = [["", *(f"{size / 1e6:.2f} MB" for size in sizes)]]
    document = sections(40000 if not QUICK else 1000).encode()

    def scanned(size: int) -> float:
        scanner = overlock.Scanner()
        begun = time.perf_counter()
        for at in range(0, size, 20):
            scanner.feed(document[at : at + 20])
            scanner.value()
        return time.perf_counter() - begun

    def parsed_again(size: int) -> float | None:
        if size > 1 << 18:
            return None
        begun = time.perf_counter()
        for at in range(20, size, 20):
            jiter.from_json(document[:at], partial_mode="trailing-strings")
        return time.perf_counter() - begun

    shown = [f"{scanned(size):.2f} s" for size in sizes]
    rows.append(["overlock.Scanner", *shown])
    again = [parsed_again(size) for size in sizes]
    # Every time the size doubles the time is four times as long.
    last = [(taken, size) for taken, size in zip(again, sizes) if taken is not None][-1]
    shown = [
        f"{taken:.1f} s" if taken is not None else f"about {last[0] * (size / last[1]) ** 2 / 60:.0f} min (projected)"
        for taken, size in zip(again, sizes)
    ]
    rows.append([f"{name_of('jiter')}, from the beginning each time", *shown])
    return rows


def one_string() -> list[list[str]]:
    rows = [["size", "overlock.Scanner"]]
    for size in (1_000_000, 2_000_000) if QUICK else (2_500_000, 5_000_000, 10_000_000):
        scanner = overlock.Scanner()
        scanner.feed('{"text": "')
        piece = "twenty characters . "
        begun = time.perf_counter()
        for _ in range(0, size, 20):
            scanner.feed(piece)
            scanner.value()
        taken = time.perf_counter() - begun
        assert len(scanner.value()["text"]) == size
        rows.append([f"{size / 1e6:.1f} MB", f"{taken:.2f} s"])
    return rows


def tokens() -> list[list[str]]:
    vocabularies = Path(sys.argv[1])
    by_checksum = {
        hashlib.sha256(path.read_bytes()).hexdigest(): path for path in vocabularies.iterdir()
    }
    tiktoken.load.read_file_cached = lambda _, checksum: by_checksum[checksum].read_bytes()
    text = sections(3000 if not QUICK else 300)
    rows = [["", f"{len(text) >> 10} KB, o200k_base", "first call of a process"]]
    begun = time.perf_counter()
    ours = overlock.count_tokens("a", encoding="o200k_base")
    first = (time.perf_counter() - begun) * 1000
    taken = best(lambda: overlock.count_tokens(text, encoding="o200k_base"))
    rows.append(["overlock.count_tokens", f"{taken:.1f} ms", f"{first:.2f} ms"])
    begun = time.perf_counter()
    encoding = tiktoken.get_encoding("o200k_base")
    encoding.encode_ordinary("a")
    first = (time.perf_counter() - begun) * 1000
    taken = best(lambda: len(encoding.encode_ordinary(text)))
    rows.append([name_of("tiktoken"), f"{taken:.1f} ms", f"{first:.2f} ms"])
    assert ours == 1
    assert overlock.count_tokens(text, encoding="o200k_base") == len(encoding.encode_ordinary(text))
    return rows


def trimming() -> list[list[str]]:
    chosen = random.Random(5)
    chat: list[Any] = [langchain_core.messages.SystemMessage("Be brief.")]
    for at in range(2000):
        kind = (langchain_core.messages.HumanMessage, langchain_core.messages.AIMessage)[at % 2]
        chat.append(kind(f"{at} " + "some words " * chosen.randrange(5, 60)))
    chat.append(langchain_core.messages.HumanMessage("And now?"))
    encoding = tiktoken.get_encoding("cl100k_base")

    def counted(messages: list[Any]) -> int:
        return sum(len(encoding.encode_ordinary(m.content)) + 4 for m in messages) + 3

    def ours() -> list[Any]:
        return overlock.fit_messages(chat, model="gpt-4", max_tokens=1000)

    def theirs() -> list[Any]:
        return langchain_core.messages.trim_messages(
            chat, max_tokens=8192 - 1000 - 50, token_counter=counted, include_system=True
        )

    rows = [["", "time", "messages kept", "tokens", "first after the system prompt"]]
    for name, trim in (
        ("overlock.fit_messages", ours),
        (f"LangChain trim_messages {version('langchain-core')} with tiktoken", theirs),
    ):
        kept = trim()
        taken = best(trim, 3)
        rows.append([name, f"{taken:.1f} ms", str(len(kept)), str(counted(kept)), kept[1].type])
    return rows


def threads() -> list[list[str]]:
    document = sections(1500 if not QUICK else 300)
    broken = document.replace('"id":', "id:")
    expected = overlock.repair(broken).json

    def work(_: int) -> None:
        for _ in range(2):
            assert overlock.repair(broken).json == expected
            overlock.count_tokens(document, encoding="o200k_base")

    def run(count: int) -> tuple[float, float]:
        begun, used = time.perf_counter(), time.process_time()
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(work, range(8)))
        wall = time.perf_counter() - begun
        return wall, (time.process_time() - used) / wall

    rows = [["threads", "time", "cores in use"]]
    for count in (1, 8):
        wall, cores = run(count)
        rows.append([str(count), f"{wall:.2f} s", f"{cores:.2f}"])
    return rows


main()
