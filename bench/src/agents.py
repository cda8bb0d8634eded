"""Conversations of agents, and what peers make of them in a small window.

`agents.py make OUT` writes the multi-turn conversations of `bfcl-eval`: the published calls are
executed on its simulated services, so calls and results are those of the benchmark. Each becomes a
request that ends with the results of its last calls.

`agents.py judge REQUESTS OURS` fits the same requests with peers, and prints a JSON list of what each
of them keeps. `OURS` has the messages that ours sends for every request and share, or nothing where
it refuses.
"""

import ast
import importlib.util
import json
import os
import sys
from collections import Counter
from pathlib import Path

KINDS = ["base", "long_context", "miss_func", "miss_param"]
# The window, as shares of the tokens of the conversation.
SHARES = [0.75, 0.5, 0.25]


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def called(call):
    """The name and the arguments of a call such as `cd(folder='a')`."""
    tree = ast.parse(call, mode="eval").body
    arguments = {keyword.arg: ast.literal_eval(keyword.value) for keyword in tree.keywords}
    arguments.update({f"argument{place}": ast.literal_eval(value) for place, value in enumerate(tree.args)})
    return ast.unparse(tree.func), json.dumps(arguments)


def conversation(entry, truth, kind, execute):
    messages = []
    for turn, (question, calls) in enumerate(zip(entry["question"], truth["ground_truth"])):
        messages.extend(question)
        results, _ = execute(
            calls,
            entry["initial_config"],
            entry["involved_classes"],
            "bench",
            entry["id"],
            long_context=kind == "long_context",
        )
        for place, (call, result) in enumerate(zip(calls, results)):
            name, arguments = called(call)
            id = f"call_{turn}_{place}"
            function = {"name": name, "arguments": arguments}
            messages.append(
                {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}
            )
            messages.append({"role": "tool", "tool_call_id": id, "content": str(result)})
    return {"model": "gpt-4o", "max_tokens": 1, "messages": messages}


def make(out):
    import bfcl_eval
    from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils import execute_multi_turn_func_call

    folder = Path(bfcl_eval.__file__).parent / "data"
    requests = []
    for kind in KINDS:
        name = f"BFCL_v4_multi_turn_{kind}.json"
        for entry, truth in zip(lines(folder / name), lines(folder / "possible_answer" / name)):
            assert entry["id"] == truth["id"]
            request = conversation(entry, truth, kind, execute_multi_turn_func_call)
            if request["messages"][-1]["role"] == "tool":
                requests.append(request)
    with open(out, "w", encoding="utf-8") as file:
        json.dump([{"request": request, "limits": limits(request["messages"])} for request in requests], file)


litellm_folder = importlib.util.find_spec("litellm").submodule_search_locations[0]
os.environ["TIKTOKEN_CACHE_DIR"] = os.path.join(litellm_folder, "litellm_core_utils", "tokenizers")
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import tiktoken

encoding = tiktoken.get_encoding("o200k_base")


def count(text):
    return len(encoding.encode_ordinary(text))


def message_tokens(message):
    tokens = 3 + count(message["role"])
    if message["role"] == "tool":
        tokens += 3
    if isinstance(message.get("content"), str):
        tokens += count(message["content"])
    for call in message.get("tool_calls") or []:
        tokens += 3 + count(call["function"]["name"]) + count(call["function"]["arguments"])
    return tokens


def total(messages):
    return 3 + sum(map(message_tokens, messages))


def limits(messages):
    return [int(total(messages) * share) for share in SHARES]


def orphans(messages):
    calls, answers = set(), set()
    for message in messages:
        calls.update(call["id"] for call in message.get("tool_calls") or [])
        if message["role"] == "tool":
            answers.add(message["tool_call_id"])
    return len(calls ^ answers)


def identity(message):
    """The message without the text of a result. An empty text is no text."""
    calls = tuple(call["id"] for call in message.get("tool_calls") or [])
    text = None if message["role"] == "tool" else message.get("content") or None
    return message["role"], message.get("tool_call_id"), calls, text


def open_exchange(messages):
    """The last user message and what follows it."""
    users = [place for place, message in enumerate(messages) if message["role"] == "user"]
    return [identity(message) for message in messages[users[-1] if users else 0 :]]


def unchanged(messages, sent):
    """How many messages are sent with their text."""
    whole = Counter((identity(message), message.get("content") or None) for message in sent)
    asked = Counter((identity(message), message.get("content") or None) for message in messages)
    return (whole & asked).total()


def judged(name, requests, fitted):
    rows = {"name": name, "requests": 0, "refused": 0, "over": 0, "orphans": 0, "no_open": 0, "valid": 0}
    kept = used = whole = 0.0
    for request, results in zip(requests, fitted):
        messages = request["request"]["messages"]
        for limit, sent in zip(request["limits"], results):
            rows["requests"] += 1
            if sent is None:
                rows["refused"] += 1
                continue
            tokens = total(sent)
            faults = {
                "over": tokens > limit,
                "orphans": orphans(sent) > 0,
                "no_open": open_exchange(messages) != open_exchange(sent),
            }
            for fault, is_so in faults.items():
                rows[fault] += is_so
            if not any(faults.values()):
                rows["valid"] += 1
                kept += len(sent) / len(messages)
                used += tokens / limit
                whole += unchanged(messages, sent) / len(messages)
    valid = max(rows["valid"], 1)
    rows.update(kept=kept / valid, used=used / valid, whole=whole / valid)
    return rows


def judge(requests, ours):
    from langchain.agents.middleware import ClearToolUsesEdit
    from langchain_core.messages import convert_to_messages, convert_to_openai_messages, trim_messages
    from litellm.utils import trim_messages as litellm_trim_messages

    def exact(messages):
        return total(convert_to_openai_messages(messages))

    def trimmed(chain, limit):
        return trim_messages(
            chain, max_tokens=limit, token_counter=exact, strategy="last", include_system=True, start_on="human"
        )

    def cleared(chain, limit):
        messages = list(chain)
        ClearToolUsesEdit(trigger=limit, keep=3).apply(messages, count_tokens=exact)
        return messages

    rows = [judged("overlock-budget", requests, ours)]
    for name, fit in [
        ("LangChain `trim_messages`, exact", trimmed),
        ("LangChain `ContextEditingMiddleware`", cleared),
        ("both of LangChain", lambda chain, limit: trimmed(cleared(chain, limit), limit)),
    ]:
        fitted = []
        for request in requests:
            chain = convert_to_messages(request["request"]["messages"])
            fitted.append([convert_to_openai_messages(fit(chain, limit)) for limit in request["limits"]])
        rows.append(judged(name, requests, fitted))
    fitted = []
    for request in requests:
        results = []
        for limit in request["limits"]:
            messages = [dict(message) for message in request["request"]["messages"]]
            results.append(litellm_trim_messages(messages, model="gpt-4o", max_tokens=limit))
        fitted.append(results)
    rows.append(judged("LiteLLM `trim_messages`", requests, fitted))
    return rows


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    with open(sys.argv[2], encoding="utf-8") as file, open(sys.argv[3], encoding="utf-8") as ours:
        json.dump(judge(json.load(file), json.load(ours)), sys.stdout)
