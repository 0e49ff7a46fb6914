import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from tests.conftest import absent
from tests.web.review.desk import Desk, Server, close_connections

from medassay.review.store.database import open_database


def _free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture(scope="session")
def postgres():
    """Start a real PostgreSQL of its own; returns a function that makes a new database and gives its address."""
    places = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    found = next((str(p) for p in places if (p / "initdb").exists()), None)
    found = found or (
        str(Path(shutil.which("initdb")).parent) if shutil.which("initdb") else None
    )
    if found is None:
        absent("no PostgreSQL: install Debian's postgresql")
    folder = Path(tempfile.mkdtemp(prefix="medassay-pg-"))
    port = _free_port()
    # PostgreSQL refuses root: there the account that Debian's package makes runs it.
    asroot = os.getuid() == 0
    if asroot:
        shutil.chown(folder, "postgres", "postgres")

    def run(*command):
        words = ["runuser", "-u", "postgres", "--", *command] if asroot else command
        subprocess.run(words, check=True, cwd="/", stdout=subprocess.DEVNULL)

    data = str(folder / "data")
    run(
        f"{found}/initdb",
        "-D",
        data,
        "-U",
        "medassay",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--no-sync",
    )
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c max_connections=200"
    run(f"{found}/pg_ctl", "-D", data, "-o", options, "-l", f"{folder}/log", "-w", "start")
    made = []

    def database():
        name = f"review{len(made)}"
        made.append(name)
        run(f"{found}/createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "medassay", name)
        return f"postgresql://medassay@127.0.0.1:{port}/{name}"

    yield database
    run(f"{found}/pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def address(request, tmp_path_factory):
    """Return the address of an empty database of each kind."""
    if request.param == "sqlite":
        return str(tmp_path_factory.mktemp("review") / "review.sqlite")
    return request.getfixturevalue("postgres")()


@pytest.fixture(scope="module")
def desk(address):
    """Return an open database, the server on it, and what furnishes studies."""
    database = open_database(address)
    made = Desk(database, Server(address))
    yield made
    made.server.stop()
    close_connections()
    database.close()


@pytest.fixture
def serve():
    """Start servers that one test needs for itself."""
    started = []

    def start(address, *options, **more):
        started.append(Server(address, *options, **more))
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
