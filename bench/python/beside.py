"""Compares the Python package with its peers: correctness at every offset, and speed.

    beside.py VOCABULARIES [--quick]

`cargo xtask bench python` builds the release package and runs this. VOCABULARIES is the folder of
`tiktoken`'s vocabularies. Every row has one peer and one task, with the best of several alternating
rounds and the peer's best input type. A row where ours is slower has the reason.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

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

#: The time limit of a peer for one text, in seconds.
PATIENCE = 2 if QUICK else 8

PLACES = "ours records the position after every element, to locate a cut"
SHORT = "0.2 µs for the call, which supports hooks and all kinds of text; the rest records the cut"
NUMBERS = "ours records the position of every number, and reads its digits again for the value"


class Row(NamedTuple):
    task: str
    peer: str
    theirs: str
    ours: str
    verdict: str


def main() -> None:
    begun = time.perf_counter()
    rows: list[Row] = []
    for measured in (correctness, reading, streaming, growing, tokens, trimming, threads):
        for row in measured():
            rows.append(row)
            print(f"  {row.task} · {row.peer}", file=sys.stderr, flush=True)
    table([Row("task", "peer", "theirs", "ours", ""), *rows])
    print(f"\nmeasured in {time.perf_counter() - begun:.0f} s")


def table(rows: list[Row]) -> None:
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    for number, row in enumerate(rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths)]
        print("| " + " | ".join([*cells, row.verdict]) + " |")
        if number == 0:
            print("|" + "---|" * 5)


def name_of(package: str) -> str:
    return f"{package} {version(package)}"


LANGCHAIN = f"LangChain {version('langchain-core')}"


# The documents.


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
    return json.dumps({"sections": made, "count": count}, ensure_ascii=False)


def records(count: int) -> str:
    made = [
        {"id": n, "name": f"row {n}", "tags": ["a", "b"], "price": n * 1.25, "ok": n % 3 == 0}
        for n in range(count)
    ]
    return json.dumps(made)


def prose(count: int) -> str:
    text = "The quick brown fox jumps over the lazy dog. " * 4
    return json.dumps([{"id": n, "author": "somebody", "text": text} for n in range(count)])


# The measurement.


class TooSlow(Exception):
    pass


def in_time(work: Callable[[], Any]) -> float | None:
    """Seconds; nothing if it takes too long."""

    def stop(*_: Any) -> None:
        raise TooSlow

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        begun = time.perf_counter()
        work()
        return time.perf_counter() - begun
    except TooSlow:
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def turns(
    theirs: Callable[[Any], Any], ours: Callable[[Any], Any], given: Callable[[], Any], times: int
) -> tuple[float | None, float]:
    """The best time of each. The input is created anew each time, because Python caches the UTF-8
    of a `str`."""

    def once(work: Callable[[Any], Any]) -> float | None:
        texts = [given() for _ in range(times)]
        taken = in_time(lambda: [work(text) for text in texts])
        return taken and taken / times

    best_of_theirs, best_of_ours = once(theirs), once(ours)
    assert best_of_ours is not None
    begun, least = time.perf_counter(), 3 if QUICK else 7
    rounds = 1
    while rounds < least or time.perf_counter() - begun < (0.1 if QUICK else 0.5) and rounds < 200:
        rounds += 1
        again = once(ours)
        best_of_ours = min(best_of_ours, again or best_of_ours)
        # Slow peers are measured once.
        if best_of_theirs is not None and best_of_theirs * times < 1:
            again = once(theirs)
            best_of_theirs = min(best_of_theirs, again or best_of_theirs)
    return best_of_theirs, best_of_ours


def shown(seconds: float | None) -> str:
    if seconds is None:
        return f"over {PATIENCE} s"
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 0.995:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def verdict(theirs: float | None, ours: float, why: str) -> str:
    if theirs is None:
        return f"over {PATIENCE / ours:.0f} ×"
    times = theirs / ours
    if times >= 1:
        return f"{times:.3g} ×" if times < 100 else f"{times:,.0f} ×"
    return f"{times:.2f} ×: {why}"


def compared(task: str, peer: str, theirs: float | None, ours: float, why: str = "") -> Row:
    return Row(task, peer, shown(theirs), shown(ours), verdict(theirs, ours, why))


# Readers of cut JSON, with their best input type.

Parse = Callable[[Any], Any]

READERS: list[tuple[str, Callable[[str], Any], Parse]] = [
    (name_of("jiter"), str.encode, lambda t: jiter.from_json(t, partial_mode="trailing-strings")),
    (
        name_of("pydantic_core"),
        str,
        lambda t: pydantic_core.from_json(t, allow_partial="trailing-strings"),
    ),
    (name_of("partial-json-parser"), str, partial_json_parser.loads),
    (f"{LANGCHAIN} parse_partial_json", str, langchain_core.utils.json.parse_partial_json),
    (name_of("json_repair"), str, json_repair.loads),
]


# Correctness at every offset.


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
    """The number of complete leaves before each offset, found with Python's own `json`. A number
    counts once something follows it."""
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


def correctness() -> Iterator[Row]:
    document = sections(4 if QUICK else 12)
    truth = dict(leaves(json.loads(document)))
    places = {path: at for at, path in enumerate(truth)}
    whole = whole_before(document)
    offsets = range(1, len(document) + 1)

    def judged(parse: Parse, given: Callable[[str], Any]) -> tuple[float, str]:
        counts = {"right": 0, "raises": 0, "loses": 0, "invents": 0}
        for offset in offsets:
            try:
                found = list(leaves(parse(given(document[:offset]))))
            except Exception:
                counts["raises"] += 1
                continue
            wrong = [(path, value) for path, value in found if not agrees(truth, path, value)]
            have = {places[path] for path, _ in found if path in places}
            # Only the string at the cut may be incomplete.
            if len(wrong) > 1 or any(not is_half(truth, path, value) for path, value in wrong):
                counts["invents"] += 1
            elif any(at not in have for at in range(whole[offset])):
                counts["loses"] += 1
            else:
                counts["right"] += 1
        shares = {name: count * 100 / len(offsets) for name, count in counts.items()}
        rest = [f"{name} {share:.1f}" for name, share in shares.items() if share and name != "right"]
        result = f"{shares['right']:.1f} %" + (f" ({', '.join(rest)})" if rest else "")
        return shares["right"], result

    ours, our_result = judged(overlock.loads, str)
    for peer, given, parse in READERS:
        theirs, result = judged(parse, given)
        ahead = "" if ours > theirs else "both right" if ours == theirs else "fewer"
        yield Row(f"right at all {len(offsets):,} offsets of a cut document", peer, result, our_result, ahead)


def agrees(truth: dict[Any, Any], path: tuple[Any, ...], value: Any) -> bool:
    return path in truth and repr(truth[path]) == repr(value)


def is_half(truth: dict[Any, Any], path: tuple[Any, ...], value: Any) -> bool:
    written = truth.get(path)
    return isinstance(value, str) and isinstance(written, str) and written.startswith(value)


# How fast a text is read.


def reading() -> Iterator[Row]:
    chosen = random.Random(6)
    document = sections(60 if QUICK else 260)
    fast = [("json.loads", str, json.loads), *READERS[:2]]
    texts = [
        ("sections", document, [*fast, *READERS[2:]], PLACES),
        ("records", records(900), fast, PLACES),
        ("prose", prose(300), fast, PLACES),
        ("floats", json.dumps([chosen.random() for _ in range(3500)]), fast, NUMBERS),
        ("integers", json.dumps([chosen.randrange(10**6) for _ in range(8000)]), fast, NUMBERS),
        ("sections cut at 90 %", document[: len(document) * 9 // 10], READERS, PLACES),
        ("sections with keys unquoted", document.replace('"id":', "id:"), READERS[4:], ""),
        ("500 characters, cut", document[:500], READERS, SHORT),
    ]
    for task, text, readers, why in texts:
        size = f"{len(text.encode()) / 1000:.0f} KB" if len(text) > 1000 else ""
        times = 1 if len(text) > 1000 else 200
        for peer, given, parse in readers:
            data = text.encode()
            fresh = (lambda: data) if given is str.encode else data.decode
            theirs, ours = turns(parse, overlock.loads, fresh, times)
            yield compared(f"loads: {task}" + (f", {size}" if size else ""), peer, theirs, ours, why)


# How fast a text is read that streams in.


def streaming() -> Iterator[Row]:
    whole = 1_000_000 if QUICK else 10_000_000
    document = sections(whole // 250).encode()[:whole]
    assert len(document) == whole

    def scanned(size: int) -> float:
        scanner = overlock.Scanner()
        begun = time.perf_counter()
        for at in range(0, size, 20):
            scanner.feed(document[at : at + 20])
            scanner.value()
        return time.perf_counter() - begun

    def parsed_again(size: int) -> float:
        begun = time.perf_counter()
        for at in range(20, size, 20):
            jiter.from_json(document[:at], partial_mode="trailing-strings")
        return time.perf_counter() - begun

    part = 1 << (15 if QUICK else 17)
    peer = f"{name_of('jiter')}, from the beginning each time"
    task = "a value after every 20 bytes of"
    again, ours = parsed_again(part), scanned(part)
    yield compared(f"{task} {part >> 10} KB", peer, again, ours)
    # Every time the size doubles the time is four times as long.
    projected, ours = again * (whole / part) ** 2, scanned(whole)
    result = f"about {projected / 3600:.1f} h (projected)"
    yield Row(f"{task} {whole / 1e6:.0f} MB", peer, result, shown(ours), verdict(projected, ours, ""))
    half = scanned(whole // 2)
    yield Row(
        f"{task} {whole / 1e6:.0f} MB", "Scanner, half as much", shown(half), shown(ours), grows(half, ours)
    )


def growing() -> Iterator[Row]:
    """One string that streams in."""

    def scanned(size: int) -> float:
        scanner = overlock.Scanner()
        scanner.feed('{"text": "')
        begun = time.perf_counter()
        for _ in range(0, size, 20):
            scanner.feed("twenty characters . ")
            scanner.value()
        taken = time.perf_counter() - begun
        assert len(scanner.value()["text"]) == size
        return taken

    size = 1_000_000 if QUICK else 10_000_000
    half, ours = scanned(size // 2), scanned(size)
    task = f"one string of {size / 1e6:.0f} MB, 20 bytes at a time"
    yield Row(task, "Scanner, half as much", shown(half), shown(ours), grows(half, ours))


def grows(half: float, whole: float) -> str:
    return f"twice as much takes {whole / half:.1f} × as long"


# Tokens and chats.


def tokens() -> Iterator[Row]:
    vocabularies = Path(sys.argv[1])
    by_checksum = {
        hashlib.sha256(path.read_bytes()).hexdigest(): path for path in vocabularies.iterdir()
    }
    tiktoken.load.read_file_cached = lambda _, checksum: by_checksum[checksum].read_bytes()
    begun = time.perf_counter()
    encoding = tiktoken.get_encoding("o200k_base")
    encoding.encode_ordinary("a")
    first = time.perf_counter() - begun
    # Ours is asked in a process that has not counted anything yet.
    script = (
        "import overlock, time\nbegun = time.perf_counter()\n"
        "overlock.count_tokens('a', encoding='o200k_base')\nprint(time.perf_counter() - begun)"
    )
    asked = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    peer = name_of("tiktoken")
    yield compared("the first count of a process, o200k_base", peer, first, float(asked.stdout))
    text = sections(200 if QUICK else 2000)
    assert overlock.count_tokens(text, encoding="o200k_base") == len(encoding.encode_ordinary(text))
    theirs, ours = turns(
        lambda t: len(encoding.encode_ordinary(t)),
        lambda t: overlock.count_tokens(t, encoding="o200k_base"),
        text.encode().decode,
        1,
    )
    yield compared(f"count_tokens: {len(text.encode()) / 1000:.0f} KB, the same count", peer, theirs, ours)


def trimming() -> Iterator[Row]:
    chosen = random.Random(5)
    chat: list[Any] = [langchain_core.messages.SystemMessage("Be brief.")]
    for at in range(2000):
        kind = (langchain_core.messages.HumanMessage, langchain_core.messages.AIMessage)[at % 2]
        chat.append(kind(f"{at} " + "some words " * chosen.randrange(5, 60)))
    chat.append(langchain_core.messages.HumanMessage("And now?"))
    encoding = tiktoken.get_encoding("cl100k_base")

    def counted(messages: list[Any]) -> int:
        return sum(len(encoding.encode_ordinary(m.content)) + 4 for m in messages) + 3

    def ours(chat: list[Any]) -> list[Any]:
        return overlock.fit_messages(chat, model="gpt-4", max_tokens=1000)

    def theirs(chat: list[Any]) -> list[Any]:
        return langchain_core.messages.trim_messages(
            chat, max_tokens=8192 - 1000 - 50, token_counter=counted, include_system=True
        )

    for kept in (ours(chat), theirs(chat)):
        assert counted(kept) <= 8192 - 1000 and kept[0] is chat[0] and kept[-1] is chat[-1]
    taken = turns(theirs, ours, lambda: chat, 1)
    task = "fit_messages: 2,000 messages into 8,192 tokens"
    yield compared(task, f"{LANGCHAIN} trim_messages with tiktoken", *taken)


def threads() -> Iterator[Row]:
    document = sections(200 if QUICK else 1000)
    broken = document.replace('"id":', "id:")
    expected = overlock.repair(broken).json

    def work(_: int) -> None:
        assert overlock.repair(broken).json == expected
        overlock.count_tokens(document, encoding="o200k_base")

    def run(count: int) -> float:
        gc.collect()
        begun = time.perf_counter()
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(work, range(16)))
        return time.perf_counter() - begun

    alone, together = min(run(1), run(1)), min(run(8), run(8))
    cores = len(os.sched_getaffinity(0))
    yield compared(
        f"repair and count_tokens, 16 times, in 8 threads on {cores} cores",
        "overlock in one thread",
        alone,
        together,
        "the machine has one core, or others use it",
    )


main()
