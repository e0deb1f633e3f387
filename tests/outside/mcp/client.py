"""The client of PyPI's package mcp, unmodified, on standard input and output and over HTTP: lists, calls, answers, cancels, and
calls while the organism is killed. PROGRAM URL TOKEN-FILE PID are its arguments; PID is the process of the organism."""
import asyncio
import os
import signal
import sys
from contextlib import AsyncExitStack

import anyio
import httpx2 as httpx
from mcp import Client, StdioServerParameters, types
from mcp.client.streamable_http import streamable_http_client

PROGRAM, URL, TOKEN, PID = sys.argv[1:5]


async def answer(_, params: types.ElicitRequestParams) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "Ada"})


def text(result: types.CallToolResult) -> str:
    return result.content[0].text


async def exercise(server, mode: str) -> None:
    async with Client(server, mode=mode, elicitation_callback=answer, read_timeout_seconds=60) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert "greet" in names, names
        assert text(await client.call_tool("greet", {"name": "Ada"})) == "Hello, Ada!"
        wrong = await client.call_tool("greet", {"nme": "Ada"})
        assert wrong.is_error and "nme" in text(wrong), wrong
        asked = await client.call_tool("test_input_required_result_elicitation", {})
        assert text(asked) == "Hello, Ada!", asked
        with anyio.move_on_after(0.5) as scope:
            await client.call_tool("slow_compute", {"seconds": 600})
        assert scope.cancelled_caught
        assert (await client.read_resource("test://static-text")).contents[0].text
        assert (await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})).messages


async def survive() -> None:
    server = StdioServerParameters(command=PROGRAM, args=["mcp", "organism.yaml"])
    async with Client(server, read_timeout_seconds=60) as client:
        await client.list_tools()
        call = asyncio.ensure_future(client.call_tool("slow_compute", {"seconds": 3}))
        await asyncio.sleep(1)
        os.kill(int(PID), signal.SIGKILL)
        assert text(await call) == "computed for 3.0 s"


async def main() -> None:
    for mode in ("auto", "legacy"):
        await exercise(StdioServerParameters(command=PROGRAM, args=["mcp", "organism.yaml"]), mode)
        async with AsyncExitStack() as stack:
            with open(TOKEN, encoding="utf-8") as file:
                headers = {"Authorization": f"Bearer {file.read().strip()}"}
            http = await stack.enter_async_context(httpx.AsyncClient(headers=headers, timeout=60))
            await exercise(streamable_http_client(f"{URL}/mcp", http_client=http), mode)
    await survive()
    print("the client of PyPI: ok")


asyncio.run(main())
