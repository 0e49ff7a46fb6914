"""Pages on loopback: names that lead there, a gate that lets one port through, and a server that
says what it is told.

For tests alone: no plan, no option and no variable of the product leads to it.
"""

import asyncio
import socket
from contextlib import asynccontextmanager

from aiohttp.abc import AbstractResolver

from medassay.context.tools.fetch import Fetcher
from medassay.core.address import is_public


class LoopbackResolver(AbstractResolver):
    """Leads names to addresses: `known` first to last, one a call, the last for ever.

    Others are unknown.
    """

    def __init__(self, known):
        self.known = {name: list(found) for name, found in known.items()}
        self.asked = []

    async def resolve(self, host, port=0, family=socket.AF_UNSPEC):
        """Return where a name leads."""
        self.asked.append(host)
        if host not in self.known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        answers = self.known[host]
        given = answers.pop(0) if len(answers) > 1 else answers[0]
        addresses = [given] if isinstance(given, str) else given
        return [
            {
                "hostname": host,
                "host": address,
                "port": port,
                "family": socket.AF_INET6 if ":" in address else socket.AF_INET,
                "proto": 0,
                "flags": socket.AI_NUMERICHOST,
            }
            for address in addresses
        ]

    async def close(self):
        """Nothing to free."""


def loopback_fetcher(port, known=None, **rules):
    """Return a fetcher that reaches one port of 127.0.0.1, and else the public internet only."""
    resolver = LoopbackResolver({"page.test": ["127.0.0.1"], **(known or {})})
    return Fetcher(
        resolver=resolver,
        gate=lambda address, at: is_public(address) or (address, at) == ("127.0.0.1", port),
        **rules,
    )


class Site:
    """Serves bytes by path; `pages` maps a path to a reply or a coroutine that writes one."""

    def __init__(self, pages):
        self.pages, self.asked = pages, []
        self.port = 0

    async def _serve(self, reader, writer):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            line, *headers = head.split("\r\n")
            path = line.split()[1]
            self.asked.append((path, dict(h.split(": ", 1) for h in headers if ": " in h)))
            page = self.pages.get(path.partition("?")[0], reply(b"no such page", status=404))
            if callable(page):
                await page(writer)
            else:
                writer.write(page)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    @asynccontextmanager
    async def open(self, host="127.0.0.1"):
        """Serve within a block."""
        server = await asyncio.start_server(self._serve, host, 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()


def reply(body=b"", *, status=200, kind="text/html", **headers):
    told = {"Content-Type": kind, "Connection": "close", **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in told.items())
    return f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode() + body


def moved(to, status=302):
    return reply(status=status, Location=to)
