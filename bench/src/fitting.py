"""Fits a conversation with peers, and recounts what each of them kept.

Called with a request, the limit, and the messages that ours sends; prints a JSON list.
"""

import importlib.util
import json
import os
import sys
import time

litellm_folder = importlib.util.find_spec("litellm").submodule_search_locations[0]
os.environ["TIKTOKEN_CACHE_DIR"] = os.path.join(litellm_folder, "litellm_core_utils", "tokenizers")
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import tiktoken
from langchain_core.messages import convert_to_messages, convert_to_openai_messages, trim_messages
from langchain_core.messages.utils import count_tokens_approximately
from litellm.utils import trim_messages as litellm_trim_messages

request = json.load(open(sys.argv[1], encoding="utf-8"))
limit = int(sys.argv[2])
ours = json.load(open(sys.argv[3], encoding="utf-8"))
messages = request["messages"]
encoding = tiktoken.get_encoding("o200k_base")


def count(text):
    return len(encoding.encode_ordinary(text))


def message_tokens(message):
    tokens = 3 + count(message["role"]) + (3 if message["role"] == "tool" else 0)
    if isinstance(message.get("content"), str):
        tokens += count(message["content"])
    for call in message.get("tool_calls") or []:
        tokens += 3 + count(call["function"]["name"]) + count(call["function"]["arguments"])
    return tokens


def total(messages):
    return 3 + sum(map(message_tokens, messages))


def orphans(messages):
    calls, answers = set(), set()
    for message in messages:
        calls.update(call["id"] for call in message.get("tool_calls") or [])
        if message["role"] == "tool":
            answers.add(message["tool_call_id"])
    return len(calls ^ answers)


def report(name, seconds, kept):
    return {
        "name": name,
        "seconds": seconds,
        "kept": len(kept),
        "tokens": total(kept),
        "orphans": orphans(kept),
        "ends": kept[:1] == messages[:1] and kept[-1:] == messages[-1:],
    }


def timed(name, fit, runs=3):
    best = None
    for _ in range(runs):
        begun = time.process_time()
        kept = fit()
        seconds = time.process_time() - begun
        best = seconds if best is None else min(best, seconds)
    return name, best, kept


chain = convert_to_messages(messages)


def langchain(counter):
    return trim_messages(
        chain,
        max_tokens=limit,
        token_counter=counter,
        strategy="last",
        include_system=True,
        start_on="human",
    )


def exact(messages):
    return total(convert_to_openai_messages(messages))


rows = [report("ours, recounted", 0.0, ours)]
name, seconds, kept = timed("LangChain `trim_messages`, exact", lambda: langchain(exact))
rows.append(report(name, seconds, convert_to_openai_messages(kept)))
name, seconds, kept = timed("LangChain `trim_messages`, approximate", lambda: langchain(count_tokens_approximately))
rows.append(report(name, seconds, convert_to_openai_messages(kept)))
name, seconds, kept = timed(
    "LiteLLM `trim_messages`",
    lambda: litellm_trim_messages([dict(message) for message in messages], model="gpt-4o", max_tokens=limit),
    runs=1,
)
rows.append(report(name, seconds, kept))
json.dump(rows, sys.stdout)
