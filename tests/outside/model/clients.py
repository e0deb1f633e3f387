"""The official clients of OpenAI and Anthropic, against `systole model serve`: plain, streamed, tools, limits, refusals."""
import sys

import anthropic
import openai

url = sys.argv[1]
chat = openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)
claude = anthropic.Anthropic(base_url=url, api_key="any", max_retries=0)
SCHEMA = {"type": "object", "properties": {"article": {"type": "string"}, "count": {"type": "integer"}}}
ASK = [{"role": "user", "content": "Please order tea"}]
DONE = "Two packets of tea are on their way."
TOOLS = [{"type": "function", "function": {"name": "order", "parameters": SCHEMA}}]


def is_(found, expected):
    if found != expected:
        sys.exit(f"found {found!r}, expected {expected!r}")


# Chat Completions
first = chat.chat.completions.create(model="scripted", messages=ASK, tools=TOOLS).choices[0]
call = first.message.tool_calls[0]
is_((first.finish_reason, first.message.content), ("tool_calls", "I'll order it."))
is_((call.function.name, call.function.arguments), ("order", '{"article": "tea", "count": 2}'))
result = {"role": "tool", "tool_call_id": call.id, "content": "ordered 2"}
turns = [*ASK, first.message.model_dump(exclude_none=True), result]
second = chat.chat.completions.create(model="scripted", messages=turns, tools=TOOLS)
is_((second.choices[0].finish_reason, second.choices[0].message.content), ("stop", DONE))
assert second.usage.total_tokens == second.usage.prompt_tokens + second.usage.completion_tokens > 0
with chat.chat.completions.stream(model="scripted", messages=ASK, tools=TOOLS) as stream:
    whole = stream.get_final_completion().choices[0]
is_((whole.finish_reason, whole.message.tool_calls[0].function.name), ("tool_calls", "order"))
options = {"include_usage": True}
events = list(chat.chat.completions.create(model="scripted", messages=turns, stream=True, stream_options=options))
texts = [event.choices[0].delta.content for event in events if event.choices and event.choices[0].delta.content]
is_("".join(texts), DONE)
assert len(texts) > 5 and events[-1].usage.completion_tokens > 0
count = [{"role": "user", "content": "count to ten"}]
cut = chat.chat.completions.create(model="scripted", messages=count, max_tokens=3).choices[0]
is_((cut.finish_reason, cut.message.content), ("length", "one two thre"))
is_(chat.chat.completions.create(model="planner", messages=[{"role": "user", "content": "?"}]).choices[0].message.content, "I plan.")
is_([model.id for model in chat.models.list()], ["scripted", "planner"])
try:
    chat.chat.completions.create(model="scripted", messages=ASK)
    sys.exit("no rule fits a request without the tool")
except openai.BadRequestError as error:
    assert "offers no tools" in str(error), error

# Responses
tools = [{"type": "function", "name": "order", "parameters": SCHEMA, "strict": False}]
first = chat.responses.create(model="scripted", input="Please order tea", tools=tools)
is_((first.status, first.output_text), ("completed", "I'll order it."))
call = first.output[1]
is_((call.type, call.name, call.arguments), ("function_call", "order", '{"article": "tea", "count": 2}'))
items = [{"role": "user", "content": "Please order tea"}, *[item.model_dump(exclude_none=True) for item in first.output],
         {"type": "function_call_output", "call_id": call.call_id, "output": "ordered 2"}]
is_(chat.responses.create(model="scripted", input=items, tools=tools).output_text, DONE)
with chat.responses.stream(model="scripted", input=items, tools=tools) as stream:
    texts = [event.delta for event in stream if event.type == "response.output_text.delta"]
    is_(stream.get_final_response().output_text, DONE)
assert len(texts) > 5, texts
with chat.responses.stream(model="scripted", input="Please order tea", tools=tools) as stream:
    is_(stream.get_final_response().output[1].arguments, '{"article": "tea", "count": 2}')
cut = chat.responses.create(model="scripted", input="count to ten", max_output_tokens=3)
is_((cut.status, cut.incomplete_details.reason), ("incomplete", "max_output_tokens"))

# Messages
tools = [{"name": "order", "input_schema": SCHEMA}]
first = claude.messages.create(model="scripted", max_tokens=1000, messages=ASK, tools=tools)
is_((first.stop_reason, first.content[0].text), ("tool_use", "I'll order it."))
is_((first.content[1].name, first.content[1].input), ("order", {"article": "tea", "count": 2}))
result = {"type": "tool_result", "tool_use_id": first.content[1].id, "content": "ordered 2"}
turns = [*ASK, {"role": "assistant", "content": [block.model_dump() for block in first.content]},
         {"role": "user", "content": [result]}]
second = claude.messages.create(model="scripted", max_tokens=1000, messages=turns, tools=tools)
is_((second.stop_reason, second.content[0].text), ("end_turn", DONE))
assert second.usage.input_tokens > 0 and second.usage.output_tokens > 0
with claude.messages.stream(model="scripted", max_tokens=1000, messages=turns, tools=tools) as stream:
    texts = list(stream.text_stream)
    is_(stream.get_final_message().stop_reason, "end_turn")
is_("".join(texts), DONE)
assert len(texts) > 5, texts
with claude.messages.stream(model="scripted", max_tokens=1000, messages=ASK, tools=tools) as stream:
    is_(stream.get_final_message().content[1].input, {"article": "tea", "count": 2})
cut = claude.messages.create(model="scripted", max_tokens=3, messages=count)
is_((cut.stop_reason, cut.content[0].text), ("max_tokens", "one two thre"))
assert claude.messages.count_tokens(model="scripted", messages=ASK).input_tokens > 0
is_([model.id for model in claude.models.list()], ["scripted", "planner"])
try:
    claude.messages.create(model="scripted", max_tokens=3, messages=[{"role": "user", "content": "nothing"}])
    sys.exit("no rule fits")
except anthropic.BadRequestError as error:
    assert "no rule of" in str(error) and "says: nothing" in str(error), error
print("openai", openai.__version__, "and anthropic", anthropic.__version__, "are answered")
