"""Asks for the same report with the clients that Python programs use, unchanged.

Reads from standard input, as JSON, at which addresses each trial is to be made, and writes to
standard output what each client gave its program: what it got, or what it raised.
"""

import asyncio
import json
import sys

import anthropic
import instructor
import openai
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

MODEL = "gpt-4o"
KEY = "sk-none"
QUESTION = "Write the report as JSON."
MESSAGES = [{"role": "user", "content": QUESTION}]
JSON_MODE = {"type": "json_object"}
# A time limit in seconds.
TIMEOUT = 60

TRIALS = {}
REFUSALS = {}


class Section(BaseModel):
    id: str
    rows: list[list[str | int | bool] | None]
    note: str


class Report(BaseModel):
    title: str
    sections: list[Section]


def main():
    asked = json.load(sys.stdin)
    assert asked["trials"].keys() == TRIALS.keys(), sorted(TRIALS)
    assert asked["refusals"].keys() == REFUSALS.keys(), sorted(REFUSALS)
    trials = {
        name: {way: outcome(TRIALS[name], base) for way, base in bases.items()}
        for name, bases in asked["trials"].items()
    }
    refusals = {name: outcome(REFUSALS[name], base) for name, base in asked["refusals"].items()}
    json.dump({"trials": trials, "refusals": refusals}, sys.stdout)


def outcome(trial, base):
    try:
        got = trial(base)
    except Exception as error:
        code = getattr(error, "code", None)
        return {"error": type(error).__name__, "code": code, "message": str(error)[:500]}
    return {"got": got.model_dump(mode="json") if isinstance(got, BaseModel) else got}


def trial(name):
    return lambda function: TRIALS.setdefault(name, function)


def refusal(name):
    return lambda function: REFUSALS.setdefault(name, function)


def client(base):
    return openai.OpenAI(base_url=base, api_key=KEY, timeout=TIMEOUT)


def async_client(base):
    return openai.AsyncOpenAI(base_url=base, api_key=KEY, timeout=TIMEOUT)


# The official client.


@trial("openai create")
def _(base):
    completion = client(base).chat.completions.create(
        model=MODEL, messages=MESSAGES, response_format=JSON_MODE, max_tokens=1000
    )
    return whole_content(completion)


def whole_content(completion):
    (choice,) = completion.choices
    json.loads(choice.message.content)
    assert choice.finish_reason == "stop", choice.finish_reason
    usage = completion.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens, usage
    return choice.message.content


@trial("openai create, async")
def _(base):
    async def ask():
        async with async_client(base) as client:
            completion = await client.chat.completions.create(
                model=MODEL, messages=MESSAGES, response_format=JSON_MODE
            )
            return whole_content(completion)

    return asyncio.run(ask())


@trial("openai parse")
def _(base):
    completion = client(base).chat.completions.parse(
        model=MODEL, messages=MESSAGES, response_format=Report
    )
    return completion.choices[0].message.parsed


@trial("openai stream")
def _(base):
    chunks = client(base).chat.completions.create(
        model=MODEL,
        messages=MESSAGES,
        response_format=JSON_MODE,
        stream=True,
        stream_options={"include_usage": True},
    )
    return whole_stream(list(chunks))


def whole_stream(chunks):
    choices = [choice for chunk in chunks for choice in chunk.choices]
    content = "".join(choice.delta.content or "" for choice in choices)
    json.loads(content)
    finishes = [choice.finish_reason for choice in choices if choice.finish_reason]
    assert finishes == ["stop"], finishes
    assert [bool(chunk.usage) for chunk in chunks[-2:]] == [False, True], chunks[-2:]
    assert not any(chunk.usage for chunk in chunks[:-1])
    assert len({chunk.id for chunk in chunks}) == 1
    return content


@trial("openai stream, async")
def _(base):
    async def ask():
        async with async_client(base) as client:
            chunks = await client.chat.completions.create(
                model=MODEL,
                messages=MESSAGES,
                response_format=JSON_MODE,
                stream=True,
                stream_options={"include_usage": True},
            )
            return whole_stream([chunk async for chunk in chunks])

    return asyncio.run(ask())


@trial("openai stream and parse")
def _(base):
    ask = client(base).chat.completions.stream
    with ask(model=MODEL, messages=MESSAGES, response_format=Report) as stream:
        return stream.get_final_completion().choices[0].message.parsed


@trial("openai stream that breaks off")
def _(base):
    return TRIALS["openai stream"](base)


REPORT_TOOL = openai.pydantic_function_tool(Report)
CALL_REPORT = {"type": "function", "function": {"name": "Report"}}


@trial("openai tool call")
def _(base):
    completion = client(base).chat.completions.create(
        model=MODEL, messages=MESSAGES, tools=[REPORT_TOOL], tool_choice=CALL_REPORT
    )
    (choice,) = completion.choices
    (call,) = choice.message.tool_calls
    json.loads(call.function.arguments)
    assert call.function.name == "Report", call
    assert choice.finish_reason in ["stop", "tool_calls"], choice.finish_reason
    return call.function.arguments


@trial("openai tool call, stream")
def _(base):
    chunks = client(base).chat.completions.create(
        model=MODEL, messages=MESSAGES, tools=[REPORT_TOOL], tool_choice=CALL_REPORT, stream=True
    )
    choices = [choice for chunk in chunks for choice in chunk.choices]
    calls = [call for choice in choices for call in choice.delta.tool_calls or []]
    arguments = "".join(call.function.arguments or "" for call in calls)
    json.loads(arguments)
    assert [call.id for call in calls if call.id] == ["call_scripted"]
    assert [call.function.name for call in calls if call.function.name] == ["Report"]
    finishes = [choice.finish_reason for choice in choices if choice.finish_reason]
    assert finishes == ["tool_calls"], finishes
    return arguments


@trial("openai tool call, parse")
def _(base):
    completion = client(base).chat.completions.parse(
        model=MODEL, messages=MESSAGES, tools=[REPORT_TOOL], tool_choice=CALL_REPORT
    )
    return completion.choices[0].message.tool_calls[0].function.parsed_arguments


# The same client with Responses.


def responses(base):
    return client(base).responses


RESPONSES_JSON = {"format": {"type": "json_object"}}
WRITE_TOOL = {
    "type": "function",
    "name": "write",
    "strict": False,
    "parameters": {"type": "object", "properties": {}},
}
FORCED = {"type": "function", "name": "write"}


def whole_response(response):
    assert response.status == "completed", response.status
    assert response.incomplete_details is None
    assert all(item.status in (None, "completed") for item in response.output)
    usage = response.usage
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens, usage
    assert response.output[0].encrypted_content == "gAAAAABscripted"
    return checked(response, openai.types.responses.Response)


def checked(model, kind):
    # The client does not check what it receives unless its own types are asked to.
    kind.model_validate(model.to_dict())
    return model


@trial("responses create")
def _(base):
    response = responses(base).create(
        model=MODEL, input=QUESTION, text=RESPONSES_JSON, max_output_tokens=1000
    )
    return whole_response(response).output_text


@trial("responses parse")
def _(base):
    response = responses(base).parse(model=MODEL, input=QUESTION, text_format=Report)
    return whole_response(response).output_parsed


@trial("responses stream")
def _(base):
    events = responses(base).create(model=MODEL, input=QUESTION, text=RESPONSES_JSON, stream=True)
    events = [checked(event, type(event)) for event in events]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].type == "response.completed", events[-1].type
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == whole_response(events[-1].response).output_text
    return text


@trial("responses stream and parse")
def _(base):
    with responses(base).stream(model=MODEL, input=QUESTION, text_format=Report) as stream:
        for _ in stream:
            pass
        return whole_response(stream.get_final_response()).output_parsed


@trial("responses tool call")
def _(base):
    response = responses(base).create(
        model=MODEL, input=QUESTION, tools=[WRITE_TOOL], tool_choice=FORCED
    )
    return whole_response(response).output[1].arguments


@trial("responses tool call, stream")
def _(base):
    with responses(base).stream(
        model=MODEL, input=QUESTION, tools=[WRITE_TOOL], tool_choice=FORCED
    ) as stream:
        done = [event for event in stream if event.type == "response.output_item.done"]
        whole_response(stream.get_final_response())
    (call,) = [event.item for event in done if event.item.type == "function_call"]
    return call.arguments


# Anthropic.


def messages(base):
    base = base.removesuffix("/v1")
    return anthropic.Anthropic(base_url=base, api_key=KEY, timeout=TIMEOUT, max_retries=0).messages


CLAUDE = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 1000,
    "messages": MESSAGES,
}
MESSAGES_JSON = {"format": {"type": "json_schema", "schema": {"type": "object"}}}
MESSAGES_TOOL = {
    "tools": [{"name": "write", "input_schema": {"type": "object", "properties": {}}}],
    "tool_choice": {"type": "tool", "name": "write"},
}


def whole_message(message, reason="end_turn"):
    anthropic.types.Message.model_validate(message.to_dict())
    assert message.stop_reason == reason, message.stop_reason
    (block,) = message.content
    return block.text if reason == "end_turn" else json.dumps(block.input, ensure_ascii=False)


@trial("messages create")
def _(base):
    return whole_message(messages(base).create(**CLAUDE))


@trial("messages create with a format")
def _(base):
    return whole_message(messages(base).create(**CLAUDE, output_config=MESSAGES_JSON))


@trial("messages stream")
def _(base):
    with messages(base).stream(**CLAUDE) as stream:
        text = "".join(stream.text_stream)
        assert text == whole_message(stream.get_final_message())
    return text


@trial("messages create, stream")
def _(base):
    events = [
        checked(event, type(event))
        for event in messages(base).create(**CLAUDE, output_config=MESSAGES_JSON, stream=True)
    ]
    assert (events[0].type, events[-1].type) == ("message_start", "message_stop")
    assert events[-2].delta.stop_reason == "end_turn", events[-2]
    deltas = [event.delta for event in events if event.type == "content_block_delta"]
    return "".join(delta.text for delta in deltas)


@trial("messages tool call")
def _(base):
    message = messages(base).create(**CLAUDE, **MESSAGES_TOOL)
    return json.loads(whole_message(message, "tool_use"))


@trial("messages tool call, stream")
def _(base):
    with messages(base).stream(**CLAUDE, **MESSAGES_TOOL) as stream:
        return json.loads(whole_message(stream.get_final_message(), "tool_use"))


# LangChain.


def structured(base, method):
    chat = ChatOpenAI(model=MODEL, base_url=base, api_key=KEY, timeout=TIMEOUT)
    return chat.with_structured_output(Report, method=method)


for method in ["json_mode", "json_schema", "function_calling"]:

    @trial(f"langchain {method}")
    def _(base, method=method):
        return structured(base, method).invoke(QUESTION)

    @trial(f"langchain {method}, stream")
    def _(base, method=method):
        return list(structured(base, method).stream(QUESTION))[-1]


# Instructor.


for mode in [instructor.Mode.JSON, instructor.Mode.TOOLS]:

    @trial(f"instructor {mode.name}")
    def _(base, mode=mode):
        ask = instructor.from_openai(client(base), mode=mode)
        return ask.chat.completions.create(model=MODEL, messages=MESSAGES, response_model=Report)

    @trial(f"instructor {mode.name}, stream")
    def _(base, mode=mode):
        ask = instructor.from_openai(client(base), mode=mode)
        reports = ask.chat.completions.create_partial(
            model=MODEL, messages=MESSAGES, response_model=Report
        )
        return list(reports)[-1]


# What is refused.


@refusal("stays cut")
def _(base):
    return TRIALS["openai parse"](base)


@refusal("tool call stays cut")
def _(base):
    return TRIALS["openai tool call, parse"](base)


@refusal("too long for the model")
def _(base):
    messages = [{"role": "user", "content": "word " * 9000}]
    client(base).chat.completions.create(model="gpt-4", messages=messages)


@refusal("too many requests")
def _(base):
    patient = client(base).with_options(max_retries=0)
    patient.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True)


main()
