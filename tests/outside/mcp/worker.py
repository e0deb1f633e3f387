"""The tools, prompts and resources that the conformance suite of the Model Context Protocol asks a server for."""
import asyncio
import json
import os
import re
import xml.etree.ElementTree as ET
from xml.sax.saxutils import escape, quoteattr

from systole_sdk import call, draft, listener, run

NAMESPACE = "urn:example:conformance:v1"
MCP = "urn:systole:mcp:v1"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="


def content(*blocks: str) -> str:
    return f'<content xmlns="{MCP}">{"".join(blocks)}</content>'


def text(words: str) -> str:
    return f"<text>{escape(words)}</text>"


def media(kind: str, mime: str, data: str) -> str:
    return f'<{kind} mime="{mime}">{data}</{kind}>'


def resource(uri: str, mime: str, words: str) -> str:
    return f"<resource uri={quoteattr(uri)} mime={quoteattr(mime)}><text>{escape(words)}</text></resource>"


def argument(message: str, name: str) -> str:
    found = ET.fromstring(message).find(f"{{{NAMESPACE}}}{name}")
    return "" if found is None else found.text or ""


async def ask(**requests: tuple[str, dict]) -> dict[str, dict]:
    """Asks the client of the conversation, and returns its results by their keys."""
    written = "".join(
        f'<request key="{key}" method="{method}">{escape(json.dumps(params))}</request>'
        for key, (method, params) in requests.items()
    )
    answer = await call(f'<requests xmlns="{MCP}">{written}</requests>', to="user")
    return {response.get("key"): json.loads(response.text) for response in ET.fromstring(answer)}


def form(message: str, properties: dict, required: list[str] | None = None) -> tuple[str, dict]:
    schema = {"type": "object", "properties": properties, "required": list(properties) if required is None else required}
    return "elicitation/create", {"message": message, "requestedSchema": schema}


def sample(words: str, tokens: int = 100) -> tuple[str, dict]:
    return "sampling/createMessage", {
        "messages": [{"role": "user", "content": {"type": "text", "text": words}}],
        "maxTokens": tokens,
    }


def name_form(message: str = "What is your name?") -> tuple[str, dict]:
    return form(message, {"name": {"type": "string"}})


def said(response: dict, key: str, default: str = "nobody") -> str:
    given = response.get("content") or {}
    return str(given.get(key, default)) if isinstance(given, dict) else default


def sampled(response: dict) -> str:
    given = response.get("content") or {}
    return str(given.get("text", "")) if isinstance(given, dict) else ""


def done(response: dict) -> str:
    return f"action={response.get('action')}, content={json.dumps(response.get('content') or {})}"


def tool(name: str):
    return listener(f"{{{NAMESPACE}}}{name}")


@tool("test_simple_text")
async def simple_text(_: str) -> str:
    return content(text("This is a simple text response for testing."))


@tool("test_image_content")
async def image(_: str) -> str:
    return content(media("image", "image/png", PNG))


@tool("test_audio_content")
async def audio(_: str) -> str:
    return content(media("audio", "audio/wav", WAV))


@tool("test_embedded_resource")
async def embedded(_: str) -> str:
    return content(resource("test://embedded-resource", "text/plain", "This is an embedded resource content."))


@tool("test_multiple_content_types")
async def mixed(_: str) -> str:
    data = json.dumps({"test": "data", "value": 123})
    return content(
        text("Multiple content types test:"),
        media("image", "image/png", PNG),
        resource("test://mixed-content-resource", "application/json", data),
    )


async def drafted(*lines: str) -> None:
    for line in lines:
        draft(line + "\n")
        await asyncio.sleep(0.1)


@tool("test_tool_with_logging")
async def logging(_: str) -> str:
    await drafted("Tool execution started", "Tool processing data", "Tool execution completed")
    return content(text("Logged."))


@tool("test_logging_tool")
async def logs(message: str) -> str:
    return await logging(message)


@tool("test_tool_with_progress")
async def progressing(_: str) -> str:
    await drafted("0 of 100", "50 of 100", "100 of 100")
    return content(text("Done."))


@tool("test_error_handling")
async def failing(_: str) -> str:
    raise RuntimeError("This tool intentionally returns an error for testing")


@tool("test_sampling")
async def sampling(message: str) -> str:
    answer = await ask(sampled=sample(argument(message, "prompt")))
    return content(text(f"LLM response: {sampled(answer.get('sampled', {}))}"))


@tool("test_elicitation")
async def elicitation(message: str) -> str:
    properties = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    answer = await ask(user=form(argument(message, "message"), properties))
    return content(text(f"User response: {done(answer.get('user', {}))}"))


@tool("test_elicitation_sep1034_defaults")
async def defaults(_: str) -> str:
    properties = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    answer = await ask(user=form("Please review the defaults", properties, []))
    return content(text(f"Elicitation completed: {done(answer.get('user', {}))}"))


@tool("test_elicitation_sep1330_enums")
async def enumerations(_: str) -> str:
    def titled(*words: str) -> list[dict]:
        return [{"const": f"value{number}", "title": f"{word} Option"} for number, word in enumerate(words, 1)]

    options = ["option1", "option2", "option3"]
    properties = {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled("First", "Second", "Third")},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("First", "Second", "Third")}},
    }
    answer = await ask(user=form("Please choose", properties, []))
    return content(text(f"Elicitation completed: {done(answer.get('user', {}))}"))


@tool("test_input_required_result_elicitation")
async def required_elicitation(_: str) -> str:
    answer = await ask(user_name=name_form())
    return content(text(f"Hello, {said(answer.get('user_name', {}), 'name')}!"))


@tool("test_input_required_result_sampling")
async def required_sampling(_: str) -> str:
    answer = await ask(capital_question=sample("What is the capital of France?"))
    return content(text(f"The model says: {sampled(answer.get('capital_question', {}))}"))


@tool("test_input_required_result_list_roots")
async def required_roots(_: str) -> str:
    answer = await ask(client_roots=("roots/list", {}))
    return content(text(f"The roots: {json.dumps(answer.get('client_roots', {}))}"))


@tool("test_input_required_result_request_state")
async def required_state(_: str) -> str:
    await ask(confirm=form("Please confirm", {"ok": {"type": "boolean"}}))
    return content(text("state-ok"))


@tool("test_input_required_result_tampered_state")
async def tampered_state(_: str) -> str:
    await ask(confirm=form("Please confirm", {"ok": {"type": "boolean"}}))
    return content(text("state-ok"))


@tool("test_input_required_result_multiple_inputs")
async def required_inputs(_: str) -> str:
    answer = await ask(
        user_name=name_form(), greeting=sample("Generate a greeting", 50), client_roots=("roots/list", {})
    )
    return content(text(f"All of it: {json.dumps(answer)}"))


@tool("test_input_required_result_multi_round")
async def rounds(_: str) -> str:
    first = await ask(step1=name_form("Step 1: What is your name?"))
    color = {"color": {"type": "string"}}
    second = await ask(step2=form("Step 2: What is your favorite color?", color))
    return content(text(f"{said(first.get('step1', {}), 'name')} likes {said(second.get('step2', {}), 'color')}"))


@tool("test_input_required_result_capabilities")
async def capabilities(_: str) -> str:
    answer = await ask(user_name=name_form(), greeting=sample("Generate a greeting", 50))
    return content(text(f"What there was: {json.dumps(answer)}"))


@tool("test_missing_capability")
async def missing_capability(_: str) -> str:
    answer = await ask(sampled=sample("Hello"))
    return content(text(f"LLM response: {sampled(answer.get('sampled', {}))}"))


@tool("test_streaming_elicitation")
async def streaming(_: str) -> str:
    await drafted("Asking")
    answer = await ask(user_name=name_form())
    return content(text(f"Hello, {said(answer.get('user_name', {}), 'name')}!"))


@tool("greet")
async def greet(message: str) -> str:
    return content(text(f"Hello, {argument(message, 'name')}!"))


@tool("slow_compute")
async def slow_compute(message: str) -> str:
    seconds = float(argument(message, "seconds") or 0)
    await asyncio.sleep(seconds)
    return content(text(f"computed for {seconds} s"))


@tool("failing_job")
async def failing_job(_: str) -> str:
    await asyncio.sleep(1)
    raise RuntimeError("the job failed, as it should")


@tool("protocol_error_job")
async def protocol_error(_: str) -> str:
    os._exit(1)


@tool("confirm_delete")
async def confirm(message: str) -> str:
    name = argument(message, "filename")
    answer = await ask(confirm=form(f"Delete {name}?", {"confirm": {"type": "boolean"}}))
    return content(text(f"deleted {name}: {done(answer.get('confirm', {}))}"))


@tool("multi_input")
async def multi_input(_: str) -> str:
    first, second = await asyncio.gather(
        ask(first=name_form("Your first name?")), ask(second=name_form("Your second name?"))
    )
    return content(text(f"{said(first.get('first', {}), 'name')} {said(second.get('second', {}), 'name')}"))


@tool("test_tool_with_task")
async def with_task(_: str) -> str:
    answer = await ask(user_name=name_form())
    await asyncio.sleep(0.5)
    return content(text(f"Hello, {said(answer.get('user_name', {}), 'name')}!"))


@tool("test_simple_prompt")
async def simple_prompt(_: str) -> str:
    return content(text("This is a simple prompt for testing."))


@tool("test_prompt_with_arguments")
async def prompt_with_arguments(message: str) -> str:
    first, second = argument(message, "arg1"), argument(message, "arg2")
    return content(text(f"Prompt with arguments: arg1='{first}', arg2='{second}'"))


@tool("test_prompt_with_embedded_resource")
async def prompt_with_resource(message: str) -> str:
    uri = argument(message, "resourceUri")
    return content(
        resource(uri, "text/plain", "Embedded resource content for testing."),
        text("Please process the embedded resource above."),
    )


@tool("test_prompt_with_image")
async def prompt_with_image(_: str) -> str:
    return content(media("image", "image/png", PNG), text("Please analyze the image above."))


@tool("test_input_required_result_prompt")
async def prompt_with_input(_: str) -> str:
    answer = await ask(user_context=form("What context should the prompt use?", {"context": {"type": "string"}}))
    return content(text(f"Use this context: {said(answer.get('user_context', {}), 'context')}"))


@listener(f"{{{MCP}}}read")
async def read(message: str) -> str:
    uri = ET.fromstring(message).get("uri") or ""
    if uri == "test://static-binary":
        return content(f'<resource uri="{uri}" mime="image/png"><blob>{PNG}</blob></resource>')
    if found := re.fullmatch(r"test://template/([^/]+)/data", uri):
        data = {"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"}
        return content(resource(uri, "application/json", json.dumps(data)))
    return content(resource(uri, "text/plain", "This is the content of the static text resource."))


run()
