"""Repairs a log of malformed answers and prints the repairs.

    python repair_a_log.py [ANSWERS.jsonl]

Every line of the log is an object with the text of an answer: {"text": "…"}.
"""

import json
import sys
from collections import Counter

import overlock

LOG = [
    '{"text": "Sure! Here you are:\\n```json\\n{\\"city\\": \\"Bern\\", \\"people\\": 134000}\\n```"}',
    "{\"text\": \"{'city': 'Zürich', 'people': 434000, 'lake': True,}\"}",
    '{"text": "{\\"city\\": \\"Basel\\", \\"people\\": 17"}',
    '{"text": "I am sorry, I do not know."}',
]


def main() -> None:
    lines = open(sys.argv[1], encoding="utf-8") if len(sys.argv) > 1 else LOG
    kinds: Counter[str] = Counter()
    for number, line in enumerate(lines, 1):
        text = json.loads(line)["text"]
        try:
            loaded = overlock.loads(text, report=True)
        except overlock.NoJson as error:
            print(f"{number}: {error.code}: {error}")
            continue
        kinds.update(fix.kind for fix in loaded.fixes)
        missing = f", without {loaded.dropped}" if loaded.dropped else ""
        print(f"{number}: {loaded.value}{missing}")
    print("fixes:", dict(kinds))


if __name__ == "__main__":
    main()
