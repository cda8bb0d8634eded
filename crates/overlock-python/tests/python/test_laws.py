"""Properties of any text, however it is cut, split or malformed."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

import overlock

DOCUMENTS = [
    '{"name": "Ada", "tags": ["math", "engines"], "born": 1815, "alive": false, "x": null}',
    '[[], {}, [[[]]], {"a": {"b": {"c": [1, -0, 2.50, 1e3, -1.5E-7, 12345678901234567890123]}}}]',
    '{"é": "naïve \\u00e9 \\ud83d\\ude00 \\ud83d \\ude00 \\n\\t\\"\\\\ 😀", "": "", "\\u0061": [true]}',
    '{"a": 1, "a": [2], "a": "three"}',
    '"a root string \\ud83d\\ude00"',
    "-12.5e3",
    "true",
    ' [ 1 , "x" ,\n { "k" : "v" } ] ',
]


def random_document(random: random.Random, depth: int = 0) -> Any:
    kind = random.randrange(8 if depth < 5 else 6)
    if kind == 0:
        return random.choice([True, False, None])
    if kind == 1:
        return random.randrange(-(10**25), 10**25)
    if kind == 2:
        return random.uniform(-1e9, 1e9)
    if kind < 6:
        return "".join(random.choice('ab"\\\n\t/é€😀\ud83d\ude00\x00') for _ in range(random.randrange(9)))
    if kind == 6:
        return [random_document(random, depth + 1) for _ in range(random.randrange(5))]
    names = (random_document(random, 9) for _ in range(random.randrange(5)))
    return {str(name): random_document(random, depth + 1) for name in names}


def documents() -> Iterator[str]:
    yield from DOCUMENTS
    chosen = random.Random(1)
    for _ in range(60):
        yield json.dumps(random_document(chosen), ensure_ascii=chosen.random() < 0.7)


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal and of the same types."""
    return repr(one) == repr(other)


@pytest.mark.parametrize("text", list(documents()))
def test_loads_is_json_loads_for_every_whole_document(text: str) -> None:
    try:
        data: str | bytes = text.encode()
    except UnicodeEncodeError:
        return  # a lone surrogate is not UTF-8 and is left out
    assert same(overlock.loads(text), json.loads(text))
    assert same(overlock.loads(data), json.loads(text))


def numbers() -> Iterator[str]:
    """Numbers of all lengths and notations, and edge cases."""
    chosen = random.Random(2)
    for digits in range(1, 26):
        for _ in range(30):
            whole = str(chosen.randrange(10 ** (digits - 1) if digits > 1 else 0, 10**digits))
            sign = chosen.choice(["", "-"])
            fraction = "".join(chosen.choice("0123456789") for _ in range(chosen.randrange(1, 24)))
            exponent = f"{chosen.choice('eE')}{chosen.choice(['', '+', '-'])}{chosen.randrange(400)}"
            yield sign + whole
            yield f"{sign}{whole}.{fraction}"
            yield f"{sign}0.{fraction}"
            yield f"{sign}{whole}{exponent}"
            yield f"{sign}{whole}.{fraction}{exponent}"
    for power in (31, 32, 53, 63, 64):
        for near in range(-3, 4):
            yield str(2**power + near)
            yield str(-(2**power) + near)
            yield f"{2**power + near}.5"
    yield from ["0", "-0", "-0.0", "0.1", "9007199254740993.0", "5e-324", "1e400", "1.7976931348623157e308"]


def test_every_number_is_the_one_that_python_reads() -> None:
    written = list(numbers())
    for number in written:
        assert same(overlock.loads(number), json.loads(number)), number
        assert same(overlock.loads(f"[{number}]"), [json.loads(number)]), number
    text = "[" + ", ".join(written) + "]"
    assert same(overlock.loads(text), json.loads(text))
    hooked = json.loads(text, parse_int=str, parse_float=repr)
    assert overlock.loads(text, parse_int=str, parse_float=repr) == hooked


def test_a_number_that_python_refuses_is_refused() -> None:
    for text in ("1" * 5000, "[" + "1" * 5000, '{"a": ' + "1" * 5000 + "}"):
        with pytest.raises(ValueError, match="4300"):
            overlock.loads(text + " ]" * text.startswith("["))


def test_strings_that_are_kept_are_never_mixed_up() -> None:
    chosen = random.Random(3)
    alphabet = ["a", "b", "\u0061", "é", "\\n", "😀", "ab"]
    for _ in range(300):
        names = ["".join(chosen.choice(alphabet) for _ in range(chosen.randrange(45))) for _ in range(60)]
        text = "[" + ", ".join(f'{{"{name}": "{name}"}}' for name in names) + "]"
        assert same(overlock.loads(text), json.loads(text))
        scanner = overlock.Scanner()
        scanner.feed(text)
        assert same(scanner.value(), json.loads(text))


def test_loads_inside_of_loads_reads_right() -> None:
    inner = '{"name": "inner", "other": ["name"]}'
    read: list[Any] = []

    def hook(members: dict[str, Any]) -> dict[str, Any]:
        read.append(overlock.loads(inner))
        return members

    text = '[{"name": "a"}, {"other": {"name": "b"}}]'
    assert overlock.loads(text, object_hook=hook) == json.loads(text)
    assert read == [json.loads(inner)] * 3


def test_a_hook_hears_of_no_value_twice() -> None:
    heard: list[str] = []
    assert overlock.loads("[1, 2, {'a': 3}", parse_int=heard.append) == [None, None, {"a": None}]
    assert heard == ["1", "2", "3"]


@pytest.mark.parametrize("text", list(documents()))
def test_hooks_that_change_nothing_change_nothing(text: str) -> None:
    for end in range(1, len(text) + 1):
        try:
            value = overlock.loads(text[:end])
        except overlock.NoJson:
            continue
        assert same(overlock.loads(text[:end], parse_int=int, object_hook=lambda members: members), value)


def test_bytes_that_are_no_text_are_left_out_wherever_they_are() -> None:
    for data, value, kinds in (
        (b'["caf\xc3"]', ["caf"], {"encoding"}),
        (b'{"\xffa": "\\ud800\xed\xa0\x80"}', {"a": "\ud800"}, {"encoding"}),
        (b'["caf\xc3', ["caf"], set()),
    ):
        loaded = overlock.loads(data, report=True)
        assert loaded.value == value and {fix.kind for fix in loaded.fixes} == kinds
        scanner = overlock.Scanner()
        scanner.feed(data)
        assert scanner.value() == value


@pytest.mark.parametrize("text", list(documents()))
def test_loads_of_every_beginning_is_what_close_makes_of_it(text: str) -> None:
    for end in range(1, len(text)):
        try:
            closed = overlock.close(text[:end])
        except overlock.NoJson:
            with pytest.raises(overlock.NoJson):
                overlock.loads(text[:end])
            continue
        assert same(overlock.loads(text[:end]), json.loads(closed.json))


@pytest.mark.parametrize("text", list(documents()))
def test_a_scanner_has_the_value_of_every_beginning(text: str) -> None:
    data = text.encode("utf-8", "ignore")
    scanner = overlock.Scanner()
    for end in range(1, len(data) + 1):
        scanner.feed(data[end - 1 : end])
        plain = data[:end]
        if not scanner.has_value:
            with pytest.raises(overlock.NoJson):
                scanner.value()
            continue
        assert scanner.syntax_error is None
        closed = overlock.close(plain)
        assert same(scanner.value(), json.loads(closed.json)), plain
        assert scanner.is_complete == closed.complete
        assert scanner.cut() == overlock.cut(plain)
        assert scanner.losses() == (closed.truncated, closed.dropped)


@pytest.mark.parametrize("text", list(documents()))
def test_a_scanner_ends_the_same_however_the_text_was_split(text: str) -> None:
    data = text.encode("utf-8", "ignore")
    chosen = random.Random(len(data))
    for _ in range(20):
        scanner = overlock.Scanner()
        at = 0
        while at < len(data):
            piece = data[at : at + chosen.randrange(1, 12)]
            scanner.feed(piece)
            at += len(piece)
            if scanner.has_value and chosen.random() < 0.5:
                scanner.value()
        assert same(scanner.value(), json.loads(data))


OBJECT = '{"naïve": ["😀", 1.5, true], "b": {}}'
AMONG_TALK = [
    (before, document, after)
    for before, after in [
        ("", ""),
        ("\ufeff \n", "\n\n"),
        ("```json\n", "\n```"),
        ("Here you are, é [1]:\n\n```\n", '\n```\nAnything else? {"a": 1}'),
        ("<think>\n{no} 😀\n</think>\n", " That is all."),
    ]
    for document in (OBJECT, "[]", '[{"a": "\\ud83d\\ude00"}]')
] + [("As asked in [1]:\n", OBJECT, "")]


@pytest.mark.parametrize("before, document, after", AMONG_TALK)
def test_a_document_among_talk_is_read_however_the_answer_was_split(
    before: str, document: str, after: str
) -> None:
    text = before + document + after
    value = json.loads(document)
    start, end = len(before), len(before) + len(document)
    for pieces in ([text[:at], text[at:]] for at in range(len(text))):
        scanner = overlock.Scanner(extract=True)
        for piece in pieces:
            scanner.feed(piece)
        assert same(scanner.value(), value) and scanner.is_complete
        assert scanner.syntax_error is None and scanner.cut() is None and scanner.place is None
        assert scanner.start == start
    bare, among = overlock.Scanner(), overlock.Scanner(extract=True)
    for at, character in enumerate(text):
        among.feed(character)
        if at < start:
            assert among.start is None and not among.has_value and among.offset == at + 1
            with pytest.raises(overlock.NoJson):
                among.value()
            continue
        if at < end:
            bare.feed(character)
        assert same(among.value(), bare.value())
        assert (among.path, among.depth, among.is_complete) == (bare.path, bare.depth, bare.is_complete)
        assert among.losses() == bare.losses()
        if at < end:
            assert among.offset == start + bare.offset
    data = text.encode()
    for at in range(len(data)):
        scanner = overlock.Scanner(extract=True)
        scanner.feed(data[:at])
        scanner.feed(data[at:])
        assert same(scanner.value(), value) and scanner.start == len(before.encode())


WITHIN_A_LINE = [
    (before, document)
    for before in ("Sure! ", "For {name} é in [1]: ", "如下：", "```json ", "Sure:\n1. ")
    for document in (OBJECT, '[\n  {\n    "a": 1\n  }\n]', '["é", 1]')
]


@pytest.mark.parametrize("before, document", WITHIN_A_LINE)
def test_a_document_within_a_line_is_read_however_the_answer_was_split(
    before: str, document: str
) -> None:
    text = before + document + " {so} it is."
    assert same(overlock.loads(text), json.loads(document))
    for whole in (text, text.encode()):
        start = len(before if isinstance(whole, str) else before.encode())
        for at in range(len(whole)):
            scanner = overlock.Scanner(extract=True)
            scanner.feed(whole[:at])
            assert scanner.offset <= at
            scanner.feed(whole[at:])
            assert same(scanner.value(), json.loads(document)) and scanner.is_complete
            assert scanner.start == start and scanner.syntax_error is None
    scanner = overlock.Scanner(extract=True)
    for character in text:
        scanner.feed(character)
    assert same(scanner.value(), json.loads(document)) and scanner.start == len(before)


@pytest.mark.parametrize("talk", ["use {name} ", "as in [1] ", 'say `{"a": 1}` ', 'f({"a": 1}) ', "{} [] "])
def test_brackets_of_talk_are_no_document_that_streams_in(talk: str) -> None:
    scanner = overlock.Scanner(extract=True)
    for character in "Please " + talk:
        scanner.feed(character)
    assert scanner.start is None and not scanner.has_value
    scanner.feed('{"b": 2}')
    assert scanner.value() == {"b": 2} and scanner.start == len("Please " + talk)


def test_what_is_no_json_inside_of_a_document_stops_it_wherever_it_is() -> None:
    scanner = overlock.Scanner(extract=True)
    scanner.feed("Sure:\n{'a': 1}")
    assert scanner.syntax_error is not None and scanner.syntax_error.offset == 7
    assert not scanner.has_value and not scanner.is_complete
    with pytest.raises(overlock.JsonSyntaxError) as caught:
        scanner.value()
    assert caught.value.offset == 7
    scanner = overlock.Scanner()
    scanner.feed("Sure:\n[1]")
    assert scanner.syntax_error is not None and scanner.syntax_error.offset == 0


def test_megabytes_of_talk_are_read_once() -> None:
    scanner = overlock.Scanner(extract=True)
    for _ in range(100_000):
        scanner.feed("a line of talk\n `tick` {x} [1]\n")
    scanner.feed('{"a": 1}')
    assert scanner.value() == {"a": 1}


def test_what_is_finished_is_shared_and_only_the_cut_is_touched() -> None:
    scanner = overlock.Scanner()
    scanner.feed('{"rows": [{"id": 1}, {"id": 2, "text": "be')
    value = scanner.value()
    first, second = value["rows"]
    kept = copy.deepcopy(value)
    scanner.feed('es"}, {"id": 3')
    assert scanner.value() is value
    assert value["rows"][0] is first and value["rows"][1] is second
    assert value == {"rows": [{"id": 1}, {"id": 2, "text": "bees"}, {}]}
    assert kept == {"rows": [{"id": 1}, {"id": 2, "text": "be"}]}


def test_a_text_that_somebody_keeps_does_not_change() -> None:
    scanner = overlock.Scanner()
    scanner.feed('["' + "a" * 1000)
    kept = scanner.value()[0]
    hashed = {kept: 1}
    scanner.feed("b")
    assert scanner.value()[0] == "a" * 1000 + "b"
    assert kept == "a" * 1000 and hashed == {"a" * 1000: 1}


def test_a_document_that_was_changed_from_outside_is_an_error_and_no_crash() -> None:
    for text in ['{"a": "b', '["b']:
        scanner = overlock.Scanner()
        scanner.feed(text)
        scanner.value().clear()
        scanner.feed("c")
        with pytest.raises(RuntimeError, match="change a copy"):
            scanner.value()


def test_offsets_are_in_what_the_caller_slices_with() -> None:
    text = 'Olé! {"naïve": "😀'
    stopped = overlock.cut(text)
    assert stopped is not None and stopped.offset == len(text)
    found = overlock.extract(text)
    assert found is not None and text[found.start : found.end] == '{"naïve": "😀'
    data = text.encode()
    in_bytes = overlock.extract(data)
    assert in_bytes is not None and data[in_bytes.start : in_bytes.end].decode() == '{"naïve": "😀'
    fixes = overlock.repair("{'é': 1, 'ü': 2,}").fixes
    assert all("{'é': 1, 'ü': 2,}"[fix.offset] in "{',}" for fix in fixes)
    scanner = overlock.Scanner()
    scanner.feed('["😀😀')
    assert scanner.offset == 4


def test_random_bytes_are_a_value_or_an_exception() -> None:
    chosen = random.Random(7)
    alphabet = b'{}[]",:\\/ut0123eE+-. \n\'`<>#\xff\xc3\xa9\xed\xa0\x80\xf0\x9f\x98\x80nulltrue'
    for _ in range(4000):
        data = bytes(chosen.choice(alphabet) for _ in range(chosen.randrange(40)))
        for function in (overlock.loads, overlock.close, overlock.repair, overlock.contexts):
            try:
                function(data)
            except overlock.NoJson:
                pass
        scanner = overlock.Scanner()
        scanner.feed(data)
        try:
            scanner.value()
        except (overlock.NoJson, overlock.JsonSyntaxError):
            pass


def test_lone_surrogates_neither_crash_nor_stay() -> None:
    assert overlock.loads('{"a": "x\ud800y", "b": 1}') == {"a": "xy", "b": 1}
    assert overlock.loads(r'"\ud800"') == "\ud800"
    with pytest.raises(overlock.BadRequest) as caught:
        overlock.count_tokens("a\ud800")
    assert caught.value.code == "not-utf-8" and caught.value.offset == 1


@pytest.mark.parametrize("opener", ["[", '{"a":', '[{"b":'])
def test_a_million_levels_neither_overflow_nor_hang(opener: str) -> None:
    text = opener * 1_000_000
    value = overlock.loads(text)
    depth = 0
    while value:
        value = value[0] if isinstance(value, list) else next(iter(value.values()))
        depth += 1
    assert depth >= 999_999
    scanner = overlock.Scanner()
    scanner.feed(text)
    scanner.value()
    assert scanner.depth >= 1_000_000


def test_wrong_types_are_type_errors() -> None:
    wrongs: list[Any] = [None, 1, [], {}, object()]
    for wrong in wrongs:
        for function in (overlock.loads, overlock.close, overlock.repair, overlock.cut):
            with pytest.raises(TypeError):
                function(wrong)
        with pytest.raises(TypeError):
            overlock.Scanner().feed(wrong)
    positional: Any = overlock.close
    with pytest.raises(TypeError):
        positional("[", True)
    with pytest.raises(ValueError, match="must be `array` or `first`"):
        overlock.repair("[1]", several="none")  # type: ignore[arg-type]
    scanner = overlock.Scanner()
    scanner.feed("[")
    with pytest.raises(TypeError, match="either `str` or bytes"):
        scanner.feed(b"]")
