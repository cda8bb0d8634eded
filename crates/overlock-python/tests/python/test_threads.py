"""Many threads at once: results are correct, and the interpreter is released."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import overlock

ROWS = json.dumps([{"id": n, "name": f"row {n}", "tags": ["a", "b"]} for n in range(3000)])
BROKEN = ROWS.replace('"id"', "id")[:-20]
CODE = "SELECT a, -- b\n  c FROM t WHERE x = '--'\n" * 2000


def work(number: int) -> None:
    assert len(overlock.loads(ROWS[: -20 - number])) == 3000
    assert len(json.loads(overlock.repair(BROKEN[: -number or None]).json)) >= 2999
    assert overlock.count_tokens(ROWS, encoding="o200k_base") == EXPECTED
    assert "--" in overlock.compact(CODE, language="sql").text
    scanner = overlock.Scanner()
    for at in range(0, len(ROWS), 1000 + number):
        scanner.feed(ROWS[at : at + 1000 + number])
        scanner.value()
    assert scanner.value() == json.loads(ROWS)


EXPECTED = overlock.count_tokens(ROWS, encoding="o200k_base")


def test_eight_threads_get_what_one_gets() -> None:
    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(work, number % 8) for number in range(32)]:
            future.result()


def test_one_scanner_in_eight_threads_raises_or_reads_and_never_crashes() -> None:
    scanner = overlock.Scanner()
    scanner.feed("[")

    def feed() -> None:
        for _ in range(500):
            try:
                scanner.feed('{"a": [1, 2]},')
                scanner.value()
            except RuntimeError:
                pass  # another thread is using it

    threads = [threading.Thread(target=feed) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(row == {"a": [1, 2]} for row in scanner.value())


def test_the_interpreter_is_free_while_work_is_done() -> None:
    text = "word " * 4_000_000
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.001)

    ticking = threading.Thread(target=tick)
    ticking.start()
    before = ticks
    overlock.count_tokens(text, encoding="o200k_base")
    during = ticks - before
    done.set()
    ticking.join()
    # With the interpreter held, the other thread could not have run.
    assert during > 3
