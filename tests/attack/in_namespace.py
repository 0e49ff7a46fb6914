"""Attacks that need addresses of the public internet, a resolver of our own, or both: run in a
network namespace, where these are on loopback.

    unshare --net --mount [--map-root-user] python -m tests.attack.in_namespace

Prints one JSON object: case → what came of it.
"""

import asyncio
import json
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from medassay.context.tools.fetch import Fetcher
from medassay.errors import MedassayError
from medassay.model import connection
from tests.attack.redirects import KEY, PROMPT, SAMPLING, WAYS, entry
from tests.attack.servers import Canary, Hostile, says

PUBLIC, PUBLIC6 = "93.184.216.34", "2606:2800:220:1::34"
PAGE = (
    "<html><body><article><p>Aspirin lowers the risk of a second stroke in many"
    " patients.</p></article></body></html>"
)


class Names(threading.Thread):
    """A resolver on port 53 that gives each name its answers in turn, the last one for ever."""

    def __init__(self, answers):
        super().__init__(daemon=True)
        self.answers = {name: list(found) for name, found in answers.items()}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 53))

    def run(self):
        while True:
            asked, who = self._socket.recvfrom(512)
            self._socket.sendto(self._reply(asked), who)

    def _reply(self, asked):
        labels, at = [], 12
        while asked[at]:
            labels.append(asked[at + 1 : at + 1 + asked[at]].decode())
            at += asked[at] + 1
        (kind,) = struct.unpack(">H", asked[at + 1 : at + 3])
        name, question = ".".join(labels).casefold(), asked[12 : at + 5]
        turns = self.answers.get(name, [[]])
        family, wanted = (socket.AF_INET6, ":") if kind == 28 else (socket.AF_INET, ".")
        given = [a for a in turns[0] if wanted in a and ((":" in a) == (kind == 28))]
        if len(turns) > 1 and given:  # a name is asked for both kinds; its turn ends with an answer
            turns.pop(0)
        code = 0 if name in self.answers else 3
        head = asked[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(given), 0, 0)
        records = b"".join(
            b"\xc0\x0c"
            + struct.pack(">HHIH", kind, 1, 0, len(socket.inet_pton(family, a)))
            + socket.inet_pton(family, a)
            for a in given
        )
        return head + question + records


def prepare():
    """Bring loopback up with public addresses, and let names be asked of our own resolver."""
    for command in (
        "link set lo up",
        f"addr add {PUBLIC}/32 dev lo",
        f"-6 addr add {PUBLIC6}/128 dev lo nodad",
    ):
        subprocess.run(["ip", *command.split()], check=True)
    for path, text in (
        ("/etc/resolv.conf", "nameserver 127.0.0.1\noptions attempts:1 timeout:2\n"),
        ("/etc/hosts", "127.0.0.1 localhost\n"),
    ):
        with tempfile.NamedTemporaryFile("w", delete=False) as file:
            file.write(text)
        Path(file.name).chmod(0o644)
        subprocess.run(["mount", "--bind", file.name, path], check=True)


def told(work):
    """Return what came of some asking: the result, or the error with its kind."""
    try:
        return str(asyncio.run(work()))[:200]
    except MedassayError as error:
        return f"{type(error).__name__}: {error}"


def rebinding(names):
    """Ask a local entry whose name is at loopback when it is looked at, and at a public address
    when it is connected to.
    """
    found = {}
    for way in WAYS:
        if way in ("own header",):
            continue
        canary = Canary(PUBLIC)
        for turns, case in (
            ([["127.0.0.1"], [PUBLIC]], "changes"),
            ([["127.0.0.1", PUBLIC]], "has both"),
            ([[PUBLIC]], "is elsewhere"),
        ):
            name = f"{case.replace(' ', '-')}.{way.replace(' ', '-')}.example"
            names.answers[name] = turns
            spec = entry(way, f"http://{name}:{canary.port}", location="local")
            looked = connection.why_elsewhere(spec)
            said = told(lambda spec=spec, way=way: asked_once(way, spec))
            found[f"{way} whose name {case}"] = {
                "looked": looked,
                "said": said,
                "heard": canary.connections,
            }
        canary.close()
    return found


async def asked_once(way, spec):
    from medassay.model.catalog import PROVIDERS
    from medassay.model.embeddings import EndpointEmbedder

    made = EndpointEmbedder if way == "embeddings" else PROVIDERS[spec.provider]
    asked = made(spec, {"KEY": KEY})
    try:
        if way == "embeddings":
            return await asked.embed(["Q"])
        return await asked.complete(PROMPT, SAMPLING, repeat=0)
    finally:
        await asked.close()


def trusted(names):
    """Ask a host of this place that has a public address, by its name among those trusted."""
    server = Hostile(lambda path, headers, body: (200, {}, says("A")), PUBLIC)
    names.answers["llm.hospital.example"] = [[PUBLIC]]
    spec = entry(
        "chat",
        f"http://llm.hospital.example:{server.port}",
        location="local",
        trusted_hosts=("llm.hospital.example",),
    )
    return told(lambda: asked_once("chat", spec))


def fetching(names):
    """Fetch pages over IPv6, and by names that lead elsewhere."""
    from http.server import ThreadingHTTPServer

    ThreadingHTTPServer.address_family = socket.AF_INET6
    page = Hostile(lambda path, headers, body: answer(path, headers), PUBLIC6)
    inner = Canary("::1")
    names.answers |= {
        "six.example": [[PUBLIC6]],
        "inner.example": [["::1"]],
        "both.example": [[PUBLIC6, "::1"]],
        "changes.example": [[PUBLIC6], ["::1"]],
        "mapped.example": [["::ffff:127.0.0.1"]],
    }

    def answer(path, headers):
        if path == "/in":
            return 302, {"Location": f"http://[::1]:{inner.port}/"}, ""
        if path == "/name":
            return 302, {"Location": f"http://inner.example:{inner.port}/"}, ""
        return 200, {"Content-Type": "text/html"}, PAGE

    port = page.port
    addresses = {
        "an address": f"http://[{PUBLIC6}]:{port}/",
        "a name": f"http://six.example:{port}/",
        "loopback": f"http://[::1]:{inner.port}/",
        "a name at loopback": f"http://inner.example:{inner.port}/",
        "a name at both": f"http://both.example:{inner.port}/",
        "a mapped address": f"http://mapped.example:{inner.port}/",
        "a redirect to loopback": f"http://six.example:{port}/in",
        "a redirect to a name at loopback": f"http://six.example:{port}/name",
        "no such name": "http://nobody.example/",
    }
    found = {
        f"fetching {what}": told(lambda url=url: Fetcher().text(url))
        for what, url in addresses.items()
    }
    # The same name, twice: at a public address first, then at loopback.
    first = told(lambda: Fetcher().text(f"http://changes.example:{port}/"))
    second = told(lambda: Fetcher().text(f"http://changes.example:{inner.port}/"))
    return found | {
        "fetching a name that changes": [first, second],
        "heard at loopback": inner.connections,
    }


def main():
    prepare()
    names = Names({})
    names.start()
    found = {"rebinding": rebinding(names), "trusted": trusted(names)}
    found["fetching"] = fetching(names)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
