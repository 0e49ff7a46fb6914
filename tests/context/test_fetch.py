"""url_fetch meets hostile addresses, hostile servers and hostile pages."""

import asyncio
import contextlib
import gzip
import resource
import socket
import sys
import time
import zlib
from functools import cache

import pytest
from tests.conftest import absent
from tests.context.loopback import LoopbackResolver, Site, loopback_fetcher, moved, reply

from medassay.context.tools import fetch
from medassay.context.tools.fetch import Fetcher
from medassay.core.address import is_public
from medassay.errors import GateError, MedassayError, ToolError

CONNECTED = []
_WATCHING = [False]


def _heard(event, arguments):
    if event == "socket.connect" and _WATCHING[0]:
        CONNECTED.append(arguments[1])


@cache
def _watch():
    # A hook cannot be taken back and costs at every event: only the process that needs it has one.
    sys.addaudithook(_heard)


@pytest.fixture
def connections():
    """Return the addresses that anything in this process connects to during a test."""
    _watch()
    CONNECTED.clear()
    _WATCHING[0] = True
    yield CONNECTED
    _WATCHING[0] = False


@pytest.fixture(autouse=True)
def needs_extractor():
    try:
        import trafilatura  # noqa: F401
    except ImportError:
        absent("the extra [tools] is not installed")


# Every one leads to a listener of this machine or to a network that is nobody's page, PORT is that
# of a listener here.
WRITTEN = """
http://127.0.0.1:PORT/ http://127.0.0.2:PORT/ http://127.255.255.254:PORT/ http://127.1:PORT/
http://127.0.1:PORT/ http://2130706433:PORT/ http://0x7f000001:PORT/ http://0x7f.0.0.1:PORT/
http://0x7f.1:PORT/ http://0177.0.0.1:PORT/ http://0177.1:PORT/ http://017700000001:PORT/
http://127.0.0.1.:PORT/ http://0.0.0.0:PORT/ http://0:PORT/ http://0.0.0.1:PORT/
http://localhost:PORT/ http://LOCALHOST:PORT/ http://localhost.:PORT/ http://ip6-localhost:PORT/
http://[::1]:PORT/ http://[0:0:0:0:0:0:0:1]:PORT/ http://[::]:PORT/ http://[::ffff:127.0.0.1]:PORT/
http://[::ffff:7f00:1]:PORT/ http://[0:0:0:0:0:ffff:127.0.0.1]:PORT/ http://[::127.0.0.1]:PORT/
http://[64:ff9b::127.0.0.1]:PORT/ http://[64:ff9b::7f00:1]:PORT/ http://[2002:7f00:1::]:PORT/
http://[2001:0:7f00:1::1]:PORT/ http://[::1%25lo]:PORT/ http://[fe80::1%25lo]:PORT/
http://①②⑦.⓪.⓪.①:PORT/ http://127。0。0。1:PORT/ http://ｌｏｃａｌｈｏｓｔ:PORT/
http://169.254.169.254/latest/meta-data/ http://2852039166/ http://0xa9fea9fe/ http://0251.0376.0251.0376/
http://169.254.170.2/v2/credentials http://[fd00:ec2::254]/ http://[::ffff:169.254.169.254]/
http://100.100.100.200/ http://168.63.129.16/ http://192.0.0.192/ http://metadata/
http://10.0.0.1/ http://10.255.255.255/ http://172.16.0.1/ http://172.31.255.255/ http://192.168.0.1/
http://192.168.255.255/ http://100.64.0.1/ http://100.127.255.255/ http://198.18.0.1/ http://198.19.255.255/
http://192.0.2.1/ http://198.51.100.1/ http://203.0.113.1/ http://192.88.99.1/ http://224.0.0.1/
http://239.255.255.255/ http://240.0.0.1/ http://255.255.255.255/ http://[fc00::1]/ http://[fd12:3456::1]/
http://[fe80::1]/ http://[fec0::1]/ http://[ff02::1]/ http://[2001:db8::1]/ http://[100::1]/
http://[64:ff9b:1::1]/ http://[2002:c0a8:1::]/ http://[3fff::1]/ http://[5f00::1]/ http://[::ffff:0:127.0.0.1]/
file:///etc/passwd ftp://127.0.0.1:PORT/ gopher://127.0.0.1:PORT/_x dict://127.0.0.1:PORT/ data:text/html,x
javascript:alert(1) unix:///run/docker.sock //127.0.0.1:PORT/ 127.0.0.1:PORT http:///127.0.0.1:PORT
http:127.0.0.1:PORT http://user@127.0.0.1:PORT/ http://example.org@127.0.0.1:PORT/
http://example.org:80@127.0.0.1:PORT/ http://127.0.0.1:PORT\\@example.org/ http://127.0.0.1:0/
http://[::1/ http://127.0.0.1:99999/ http://:PORT/ http://%31%32%37.0.0.1:PORT/ http://127.0.0.1%23.org:PORT/
http://127.0.0.1%00.example.org:PORT/ https://127.0.0.1:PORT/ https://localhost:PORT/
""".split()  # noqa: SIM905 -- a list of a hundred addresses reads better so
PLACES = [
    *("127.0.0.1", "10.1.2.3", "172.20.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0"),
    *("100.64.3.4", "::1", "fe80::1", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "::"),
    *("168.63.129.16", "224.0.0.251", "255.255.255.255", "2002:7f00:1::1", "198.18.3.4"),
]


class Listener:
    """Counts what reaches a port of loopback, on IPv4 and where there is one on IPv6."""

    def __init__(self):
        self.reached = 0

    async def __aenter__(self):
        async def note(reader, writer):
            self.reached += 1
            writer.close()

        self._servers = [await asyncio.start_server(note, "127.0.0.1", 0)]
        self.port = self._servers[0].sockets[0].getsockname()[1]
        if socket.has_ipv6:
            with contextlib.suppress(OSError):
                self._servers.append(await asyncio.start_server(note, "::1", self.port))
        return self

    async def __aexit__(self, *error):
        for server in self._servers:
            server.close()


def test_the_corpus_is_large():
    assert len(WRITTEN) + len(PLACES) >= 80
    assert len(set(WRITTEN)) == len(WRITTEN)


def test_no_written_address_reaches_a_listener_that_is_forbidden(connections):
    async def work():
        async with Listener() as listener:
            for written in WRITTEN:
                url = written.replace("PORT", str(listener.port))
                with pytest.raises(MedassayError) as caught:
                    await Fetcher().text(url)
                assert isinstance(caught.value, GateError | ToolError), url
                assert "\n" not in str(caught.value)
            return listener.reached

    assert asyncio.run(work()) == 0
    assert [place for place in connections if isinstance(place, tuple)] == []


@pytest.mark.parametrize("address", PLACES)
def test_no_name_leads_to_an_address_that_is_forbidden(connections, address):
    resolver = LoopbackResolver({"evil.test": [address], "both.test": [["9.9.9.9", address]]})
    for name in ("evil.test", "both.test"):
        with pytest.raises(GateError, match="which is no public address"):
            asyncio.run(Fetcher(resolver=resolver).text(f"http://{name}/"))
    assert connections == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("hops", [1, 3])
def test_no_redirect_leads_to_a_forbidden_address(connections, status, hops):
    async def work():
        async with Listener() as listener, Site({}).open() as site:
            targets = [w.replace("PORT", str(listener.port)) for w in WRITTEN]
            fetcher = loopback_fetcher(site.port, {"inner.test": ["10.0.0.7"]})
            for target in [*targets, f"http://inner.test:{listener.port}/"]:
                chain = [f"/{n}" for n in range(1, hops)]
                site.pages = {
                    at: moved(to, status)
                    for at, to in zip(["/", *chain], [*chain, target], strict=True)
                }
                with pytest.raises((GateError, ToolError)):
                    await fetcher.text(f"http://page.test:{site.port}/")
            assert len(site.asked) >= hops * len(targets)
            return listener.reached, site.port

    reached, port = asyncio.run(work())
    assert reached == 0
    assert {place[:2] for place in connections if isinstance(place, tuple)} == {("127.0.0.1", port)}


def test_a_name_that_changes_its_address_between_two_requests_gains_nothing(connections):
    async def work():
        async with Listener() as listener, Site({}).open() as site:
            site.pages["/"] = moved(f"http://rebind.test:{listener.port}/")
            fetcher = loopback_fetcher(site.port, {"rebind.test": ["127.0.0.1", "127.0.0.1"]})
            with pytest.raises(GateError, match=r"rebind\.test is at 127\.0\.0\.1"):
                await fetcher.text(f"http://page.test:{site.port}/")
            return listener.reached

    assert asyncio.run(work()) == 0


def test_the_address_is_checked_once_more_where_the_socket_is_made(connections):
    asked = []

    def gate(address, port):  # what was resolved looked public, what is connected to does not
        asked.append(address)
        return len(asked) == 1

    resolver = LoopbackResolver({"page.test": ["127.0.0.1"]})
    with pytest.raises(GateError, match="no public address"):
        asyncio.run(Fetcher(resolver=resolver, gate=gate).text("http://page.test:9/"))
    assert asked == ["127.0.0.1", "127.0.0.1"]
    assert connections == []


def test_the_product_lets_nothing_through_but_the_public_internet():
    assert Fetcher()._gate is fetch.public_only
    assert not any(is_public(address) for address in PLACES)
    assert all(map(is_public, ["9.9.9.9", "1.1.1.1", "2606:4700:4700::1111", "151.101.1.69"]))
    assert not is_public("example.org")


def get(pages, path="/", host="page.test", **rules):
    async def work():
        async with Site(pages).open() as site:
            found = await loopback_fetcher(site.port, **rules).text(
                f"http://{host}:{site.port}{path}"
            )
            return found, site.asked

    return asyncio.run(work())


ARTICLE = b"""<html><head><title>Gout</title><script>alert(1)</script><style>p{}</style></head><body>
<nav><a href=/>Home</a></nav><article><h1>Gout</h1><p>Urate crystals in the joint prove gout. Aspirate before you
treat, since an infected joint looks alike and does not wait.</p><p>Colchicine helps in the first day.</p>
</article><script>steal()</script></body></html>"""


def test_a_page_becomes_its_text_without_script_and_style():
    text, asked = get({"/": reply(ARTICLE)})
    assert "Urate crystals in the joint prove gout." in text
    assert not any(word in text for word in ("alert", "steal", "p{}", "<p>"))
    headers = asked[0][1]
    assert not {"Cookie", "Authorization", "Referer", "Proxy-Authorization"} & set(headers)


def test_cookies_are_never_sent_back_and_redirects_are_followed():
    pages = {
        "/": reply(status=302, Location="/next", Set_Cookie="a=1"),
        "/next": reply(ARTICLE),
    }
    text, asked = get(pages)
    assert "Colchicine" in text
    assert [path for path, _ in asked] == ["/", "/next"]
    assert "Cookie" not in asked[1][1]


def test_plain_text_is_cut_at_twenty_thousand_characters():
    text, _ = get({"/": reply("ä".encode("latin-1") * 50_000, kind="text/plain; charset=latin-1")})
    assert text == "ä" * 20_000


@pytest.mark.parametrize(
    ("page", "says"),
    [
        (reply(status=404), "HTTP 404"),
        (reply(b"%PDF", kind="application/pdf"), "application/pdf is no text"),
        (reply(b"x", Content_Encoding="br"), "packed as 'br'"),
        (reply(b"not gzip", Content_Encoding="gzip"), "packed, and damaged"),
        (reply(b"  ", kind="text/plain"), "holds no text"),
        (reply(b"<html></html>"), "holds no text"),
        (b"nonsense\r\n\r\n", "url_fetch: "),
        (b"HTTP/1.1 200 X\r\nX: " + b"y" * 100_000 + b"\r\n\r\n", "url_fetch: "),
        (moved("/"), "more than 5 redirects"),
        (moved("http://unknown.test/"), "no such host"),
    ],
)
def test_what_is_no_page_with_text_is_told_in_one_line(page, says):
    with pytest.raises(ToolError) as caught:
        get({"/": page})
    assert says in str(caught.value)
    assert not caught.value.unavailable
    assert len(str(caught.value)) < 300


def test_a_machine_without_a_network_makes_the_tool_unavailable():
    resolver = LoopbackResolver({})
    with pytest.raises(ToolError) as caught:
        asyncio.run(Fetcher(resolver=resolver).text("http://example.org/"))
    assert caught.value.unavailable


def bomb(kind):
    """Return 400 MB of blanks packed into some hundred kilobytes."""
    packer = zlib.compressobj(9, wbits=31 if kind == "gzip" else 15)
    block = b"<p>" + b" " * 2**20
    return b"".join(packer.compress(block) for _ in range(400)) + packer.flush()


@pytest.mark.parametrize("kind", ["gzip", "deflate"])
def test_a_bomb_is_unpacked_no_further_than_the_bound(kind):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    packed = bomb(kind)
    started = time.monotonic()
    with pytest.raises(ToolError, match="holds no text"):
        get({"/": reply(packed, Content_Encoding=kind)})
    assert time.monotonic() - started < 15
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024  # KiB


def test_a_bomb_in_a_bomb_is_unpacked_once():
    inner = gzip.compress(b"x" * 10**7)
    with pytest.raises(ToolError):
        get({"/": reply(gzip.compress(inner), Content_Encoding="gzip")})


def test_an_endless_stream_is_read_as_far_as_the_bound(monkeypatch):
    sent = [0]

    async def stream(writer):
        writer.write(reply(kind="text/plain"))
        while sent[0] < 10**9:
            writer.write(b"word " * 20_000)
            await writer.drain()
            sent[0] += 100_000

    text, _ = get({"/": stream})
    assert len(text) == 20_000
    assert sent[0] < 30 * 2**20


@pytest.mark.parametrize("where", ["head", "body", "extraction"])
def test_what_takes_too_long_is_given_up(monkeypatch, where):
    monkeypatch.setattr(fetch, "TIMEOUT", 1.0)

    async def drip(writer):
        writer.write(reply(kind="text/plain") if where == "body" else b"HTTP/1.1 200 X\r\nX: ")
        for _ in range(100):
            writer.write(b"y")
            await writer.drain()
            await asyncio.sleep(0.1)

    page = drip
    if where == "extraction":
        page = reply(ARTICLE)
        monkeypatch.setattr(fetch.sys, "executable", str(SLEEPER))
    started = time.monotonic()
    with pytest.raises(ToolError, match="no whole page within 1 s"):
        get({"/": page})
    assert time.monotonic() - started < 5


@pytest.fixture(autouse=True)
def sleeper(tmp_path):
    global SLEEPER  # noqa: PLW0603 -- a path that the test above needs
    SLEEPER = tmp_path / "sleeper"
    SLEEPER.write_text("#!/bin/sh\nexec sleep 60\n")
    SLEEPER.chmod(0o755)


def test_an_extractor_that_dies_is_a_failure_and_no_crash(monkeypatch, tmp_path):
    died = tmp_path / "died"
    died.write_text("#!/bin/sh\nkill -9 $$\n")
    died.chmod(0o755)
    monkeypatch.setattr(fetch.sys, "executable", str(died))
    with pytest.raises(ToolError, match="cannot be extracted"):
        get({"/": reply(ARTICLE)})


@pytest.mark.parametrize(
    "page",
    [
        b"<div>" * 200_000 + b"deep",
        b"<p>" + b"<b><i>" * 50_000 + b"mixed",
        b"&amp;" * 300_000,
        b"<!--" * 100_000,
        b"\x00\xff\xfe" * 100_000,
        b"<table>" + b"<tr><td>x" * 30_000,
    ],
)
def test_markup_made_to_hurt_ends_within_bounds(page):
    started = time.monotonic()
    try:
        text, _ = get({"/": reply(page)})
        assert len(text) <= 20_000
    except ToolError:
        pass
    assert time.monotonic() - started < 25


def test_hosts_that_are_denied_or_not_allowed_are_not_asked():
    for rules in (
        {"deny": ["test"]},
        {"deny": ["page.test"]},
        {"allow": ["example.org", "edu"]},
    ):
        with pytest.raises(GateError, match="not among those that may be reached"):
            get({"/": reply(ARTICLE)}, **rules)
    assert "Gout" in get({"/": reply(ARTICLE)}, allow=["test"])[0]
    assert "Gout" in get({"/": reply(ARTICLE)}, deny=["notpage.test"])[0]


@pytest.mark.parametrize(
    "written",
    [
        "ｂlocked.test",
        "ⓑlocked.test",
        "blocked。test",
        "blocked．test",
        "BLOCKED.test",
        "blocked.test.",
    ],
)
def test_no_other_way_to_write_a_host_passes_a_list(written):
    known = {"blocked.test": ["127.0.0.1"]}

    async def work():
        async with Site({"/": reply(ARTICLE)}).open() as site:
            fetcher = loopback_fetcher(site.port, known, deny=["blocked.test"])
            await fetcher.text(f"http://{written}:{site.port}/")

    with pytest.raises(GateError, match="not among those that may be reached"):
        asyncio.run(work())
    with pytest.raises(GateError):
        asyncio.run(Fetcher(allow=["good.org"]).text("http://[2606:4700::1%25.good.org]/"))


@pytest.mark.parametrize(
    "charset",
    [
        "punycode",
        "undefined",
        "idna",
        "unicode_escape",
        "raw_unicode_escape",
        "utf-7",
        "rot13",
        "no-such",
        "zlib",
    ],
)
def test_a_charset_that_is_none_neither_hangs_nor_breaks(charset):
    page = b"plain \\ud800 words +2AA- " * 100_000
    started = time.monotonic()
    text, _ = get({"/": reply(page, kind=f"text/plain; charset={charset}")})
    assert time.monotonic() - started < 5
    assert text.startswith("plain")
    assert text.encode()  # no lone surrogate


def test_the_extractor_sees_no_secret(monkeypatch, tmp_path):
    monkeypatch.setenv("SOME_API_KEY", "s3cret-value")
    shown = tmp_path / "shown"
    spy = tmp_path / "spy"
    said = '{"text": "text", "headings": []}'
    spy.write_text(f"#!/bin/sh\nenv > {shown}\ncat > /dev/null\necho '{said}'\n")
    spy.chmod(0o755)
    monkeypatch.setattr(fetch.sys, "executable", str(spy))
    assert get({"/": reply(ARTICLE)})[0] == "text"
    assert "s3cret" not in shown.read_text()
