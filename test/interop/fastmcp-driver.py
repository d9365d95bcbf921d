"""Drives the client of fastmcp for a test: takes orders as lines of JSON on stdin, answers each on stdout."""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

calls = {}


def answer(order, **fields):
    print(json.dumps({"order": order, **fields}), flush=True)


def connect(target, mode):
    if "url" in target:
        return Client(StreamableHttpTransport(target["url"]), mode=mode)
    command, *args = target["command"]
    # Kept alive, the process of the server would outlive the client.
    return Client(StdioTransport(command, args, env=target["env"], keep_alive=False), mode=mode)


async def carry_out(client, order):
    number, what = order["order"], order["what"]
    try:
        if what == "version":
            answer(number, value=client.protocol_version)
        elif what == "tools":
            answer(number, value=[tool.name for tool in await client.list_tools()])
        elif what == "call":
            result = await client.call_tool(order["name"], order["args"], timeout=order.get("timeoutSeconds"), raise_on_error=False)
            answer(number, value=result.structured_content)
    except asyncio.CancelledError:
        answer(number, error="cancelled")
    except Exception as error:
        answer(number, error=f"{type(error).__name__}: {error}")


async def main():
    opening = json.loads(sys.stdin.readline())
    async with connect(opening["target"], opening["mode"]) as client:
        answer(opening["order"], value=None)
        while line := await asyncio.to_thread(sys.stdin.readline):
            order = json.loads(line)
            if order["what"] == "close":
                break
            if order["what"] == "cancel":
                calls[order["call"]].cancel()
            else:
                calls[order["order"]] = asyncio.create_task(carry_out(client, order))
    answer("closed", value=None)


asyncio.run(main())
