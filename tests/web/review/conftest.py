import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.conftest import absent
from tests.web.review.desk import Desk, Server, close_connections, cookie_of

from medassay.review.store.database import open_database
from medassay.web.request_context import SESSION


def _free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _runs(number):
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


class Postgres:
    """A real PostgreSQL in a folder of its own."""

    def __init__(self):
        places = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
        found = next((str(p) for p in places if (p / "initdb").exists()), None)
        found = found or (
            str(Path(shutil.which("initdb")).parent) if shutil.which("initdb") else None
        )
        if found is None:
            absent("no PostgreSQL: install Debian's postgresql")
        self.programs = found
        self.folder = Path(tempfile.mkdtemp(prefix="medassay-pg-"))
        self.port = _free_port()
        self.made = 0
        # PostgreSQL refuses root: there the account that Debian's package makes runs it.
        self.as_root = os.getuid() == 0
        if self.as_root:
            shutil.chown(self.folder, "postgres", "postgres")
        data = ("-D", f"{self.folder}/data")
        self.run("initdb", *data, "-U", "medassay", "-A", "trust", "-E", "UTF8", "--no-sync")
        self.start()

    def run(self, program, *options):
        command = [f"{self.programs}/{program}", *options]
        words = ["runuser", "-u", "postgres", "--", *command] if self.as_root else command
        subprocess.run(words, check=True, cwd="/", stdout=subprocess.DEVNULL)

    def control(self, *options):
        self.run("pg_ctl", "-D", f"{self.folder}/data", "-w", *options)

    def start(self):
        options = (
            f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c max_connections=200"
        )
        self.control("-o", options, "-l", f"{self.folder}/log", "start")

    def kill(self):
        """End the whole server by kill -9, as a machine that loses its power does."""
        first = (self.folder / "data" / "postmaster.pid").read_text().split()[0]
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        for number in (first, *children):
            with suppress(ProcessLookupError):
                os.kill(int(number), signal.SIGKILL)
        # What they share is free only once all are gone.
        while any(_runs(number) for number in (first, *children)):
            time.sleep(0.05)
        # Where nobody collects the dead, their numbers still look taken; after a loss of power they
        # would not.
        (self.folder / "data" / "postmaster.pid").unlink(missing_ok=True)
        (self.folder / f".s.PGSQL.{self.port}.lock").unlink(missing_ok=True)

    def database(self):
        """Make a new database and return its address."""
        name = f"review{self.made}"
        self.made += 1
        self.run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "medassay", name)
        return f"postgresql://medassay@127.0.0.1:{self.port}/{name}"

    def end(self):
        self.control("-m", "immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres():
    """Start a PostgreSQL for all tests.

    Returns a function that makes a new database and gives its address.
    """
    server = Postgres()
    yield server.database
    server.end()


@pytest.fixture
def own_postgres():
    """Start a PostgreSQL for one test, which may kill it."""
    server = Postgres()
    yield server
    server.end()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def kind(request):
    """Return a kind of database: a test runs on each."""
    return request.param


@pytest.fixture(scope="session")
def new_address(request, tmp_path_factory):
    """Return a function that gives the address of an empty database of a kind."""

    def address_on(kind):
        if kind == "sqlite":
            return str(tmp_path_factory.mktemp("review") / "review.sqlite")
        return request.getfixturevalue("postgres")()

    return address_on


@pytest.fixture(scope="module")
def address(kind, new_address):
    """Return the address of an empty database."""
    return new_address(kind)


@pytest.fixture(scope="session")
def open_desk(new_address, tmp_path_factory):
    """Return a function that gives the desk of a kind of database.

    A server takes a second of computing to start, so that all files of tests share one of a kind.
    """
    opened = {}

    def desk_on(kind):
        if kind not in opened:
            address = new_address(kind)
            server = Server(address, folder=tmp_path_factory.mktemp("server"))
            opened[kind] = Desk(open_database(address), server)
        return opened[kind]

    yield desk_on
    for desk in opened.values():
        desk.server.stop()
        desk.database.close()


@pytest.fixture(scope="module")
def desk(kind, open_desk):
    """Return an open database, the server on it, and what furnishes studies."""
    yield open_desk(kind)
    close_connections()


@pytest.fixture
def serve(tmp_path_factory):
    """Start servers that one test needs for itself."""
    started = []

    def start(address, *options, **more):
        folder = tmp_path_factory.mktemp("server")
        started.append(Server(address, *options, folder=folder, **more))
        return started[-1]

    yield start
    close_connections()
    for one in started:
        if one.process.poll() is None:
            one.stop()


@pytest.fixture
def small(tmp_path):
    """Return a new SQLite database, for what does not depend on the kind."""
    opened = open_database(str(tmp_path / "review.sqlite"))
    yield opened
    opened.close()


@pytest.fixture
def visit(browser, desk):
    """Open pages as somebody.

    Returns a function of the name and of what the context is to be like.
    """
    contexts = []

    def open_(who="", **more):
        plain = {"viewport": {"width": 1200, "height": 900}, "reduced_motion": "reduce"}
        context = browser.new_context(**{**plain, **more})
        contexts.append(context)
        if who:
            cookie = {"name": SESSION, "value": cookie_of(desk.database, who)}
            context.add_cookies(
                [{**cookie, "url": desk.url.replace("http:", "https:"), "secure": True}]
            )
        page = context.new_page()
        page.problems = []
        page.on(
            "console",
            lambda one: (
                page.problems.append(one.text)
                if not one.text.startswith(("Failed to load resource", "Clear-Site-Data"))
                else None
            ),
        )
        page.on("pageerror", lambda one: page.problems.append(str(one)))
        page.on(
            "request",
            lambda one: (
                None if one.url.startswith((desk.url, "data:")) else page.problems.append(one.url)
            ),
        )
        return page

    yield open_
    for context in contexts:
        for page in context.pages:
            assert getattr(page, "problems", []) == []
        context.close()
