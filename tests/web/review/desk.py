"""What tests of the review app share: accounts, a study, and a client that keeps cookies and
tokens.
"""

import http.client
import json
import re
import subprocess
import sys
import time
import urllib.parse
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

from medassay.core.clock import now
from medassay.review.store import accounts, sessions, studies
from medassay.review.store.schema import Account
from medassay.review.store.studies import NewEntry
from medassay.review.training import training_entries
from medassay.web.request_context import SESSION

PASSWORD = "correct horse battery"
ROLES = {
    "ada": "reviewer",
    "ben": "reviewer",
    "cleo": "reviewer",
    "judy": "adjudicator",
    "jon": "adjudicator",
    "coco": "coordinator",
    "max": "maintainer",
    "aud": "auditor",
}
QUALIFIED = {
    "ada": ("student", "", 1),
    "ben": ("physician", "", 7),
    "cleo": ("specialist", "cardiology", 15),
}


@lru_cache(maxsize=1)
def hashed():
    from argon2 import PasswordHasher

    # As weak as argon2 can be: tests sign in often.
    return PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)


def question(number, **more):
    return {
        "question": f"Case {number}: which drug comes first?",
        "options": [
            {"letter": letter, "text": f"drug {letter}{number}"} for letter in ("A", "B", "C", "D")
        ],
        "expected": "A",
        "path": "Stable -> Short of breath -> Give drug A",
        "condition": "heart failure",
        "language": "en",
        **more,
    }


def entry(number, **more):
    return NewEntry(
        item=f"item-{number:04}",
        content=question(number, **more),
        hidden={"revision": 1, "domain": "cardiology", "kind": "public"},
        category=("heart", "lung", "skin")[number % 3],
        iteration=str(1 + number % 2),
    )


def add_account(db, name, *, admin=False, creator=False, qualified=None):
    account = Account(
        email=f"{name}@example.org",
        name=name.title(),
        password=hashed(),
        admin=admin,
        may_create=creator,
        made_at=now(),
    )
    if qualified:
        account.qualification, account.specialty, account.years = qualified
        account.agreement, account.agreed_at = accounts.AGREEMENT, now()
    db.add(account)
    db.flush()
    return account


def furnish(  # noqa: PLR0913 -- what studies differ in
    database,
    *,
    name="hearts",
    form="item",
    entries=None,
    n=6,
    overlap=3,
    training=False,
    people=ROLES,
):
    """Make a study with everybody in it; accounts that are there are used again."""
    with database.write() as db:
        if accounts.account_of(db, "root@example.org") is None:
            add_account(db, "root", admin=True)
            add_account(db, "maker", creator=True)
            add_account(db, "nobody")
        study = studies.create_study(
            db, name, form, who="tests", title=f"Study of {name}", seed="7", overlap=overlap
        )
        for who, role in people.items():
            account = accounts.account_of(db, f"{who}@example.org") or add_account(
                db,
                who,
                qualified=QUALIFIED.get(who)
                or (("physician", "", 3) if role == "reviewer" else None),
            )
            accounts.grant(db, account, study.id, role, who="tests")
        if training:
            studies.add_entries(db, study, training_entries(form), who="tests")
        made = [entry(at) for at in range(1, n + 1)] if entries is None else entries
        studies.add_entries(db, study, made, who="tests")
        studies.assign_all(db, study, who="tests")
    return name


def cookie_of(database, name):
    """Return the session cookie of somebody, as if they had just signed in."""
    with database.write() as db:
        return sessions.open_session(db, accounts.account_of(db, f"{name}@example.org"))


@dataclass
class Reply:
    status: int
    headers: dict
    text: str

    @property
    def json(self):
        return json.loads(self.text)

    @property
    def version(self):
        return re.search(r'name="version" value="(\d+)"', self.text)[1]

    @property
    def csrf(self):
        return re.search(r'name="csrf" value="([0-9a-f]+)"', self.text)[1]

    @property
    def goes_to(self):
        return self.headers.get("location", "")


@dataclass
class Client:
    """A browser without a screen: cookies, the token of the last page, and where it comes from."""

    OPEN: ClassVar[list] = []
    url: str
    cookies: dict = field(default_factory=dict)
    token: str = ""
    connection: http.client.HTTPConnection | None = None

    def ask(self, method, path, /, body=None, headers=None, **fields):
        sent = {"cookie": "; ".join(f"{k}={v}" for k, v in self.cookies.items())}
        if method != "GET":
            sent["origin"] = self.url
        if fields:
            body = urllib.parse.urlencode({"csrf": self.token, **fields})
            sent["content-type"] = "application/x-www-form-urlencoded"
        elif isinstance(body, dict):
            body = json.dumps(body)
            sent |= {"content-type": "application/json", "x-csrf-token": self.token}
        elif method == "POST" and body is None:
            body = urllib.parse.urlencode({"csrf": self.token})
            sent["content-type"] = "application/x-www-form-urlencoded"
        host = self.url.removeprefix("http://")
        for attempt in (1, 2):  # a kept connection may have been closed meanwhile
            if self.connection is None:
                self.connection = http.client.HTTPConnection(host, timeout=30)
                self.OPEN.append(self.connection)
            try:
                self.connection.request(method, path, body, {**sent, **(headers or {})})
                found = self.connection.getresponse()
                text = found.read().decode()
                break
            except (http.client.RemoteDisconnected, ConnectionError):
                self.connection.close()
                self.connection = None
                if attempt == 2:
                    raise
        for name, value in found.getheaders():
            if name == "set-cookie":
                key, _, rest = value.partition("=")
                self.cookies[key] = rest.partition(";")[0]
        reply = Reply(found.status, dict(found.getheaders()), text)
        if 'name="csrf"' in text:
            self.token = reply.csrf
        return reply

    def get(self, path, **headers):
        return self.ask("GET", path, headers=headers)

    def post(self, path, /, **fields):
        return self.ask("POST", path, **fields)


def signed_in(url, database, name):
    """Return a client of somebody with a session and the token of a page."""
    client = Client(url, {SESSION: cookie_of(database, name)})
    client.get("/me")
    return client


class Server:
    """The app as its users start it: a process of its own.

    `folder` takes its log.
    """

    def __init__(self, address, *options, folder, port=0):
        self.address, self.options, self.port = address, options, port
        self.log = folder / "log"
        self.start()

    def said(self):
        """Return everything that the server wrote to standard error."""
        return self.log.read_text()

    def start(self):
        command = [
            sys.executable,
            "-m",
            "medassay",
            "review",
            "serve",
            "--port",
            str(self.port),
        ]
        with self.log.open("ab") as file:
            self.process = subprocess.Popen(
                [*command, "--database", self.address, *self.options],
                stderr=file,
                stdout=subprocess.DEVNULL,
            )
        until = time.monotonic() + 30
        found = None
        while found is None and time.monotonic() < until and self.process.poll() is None:
            found = re.search(r"medassay review: (\S+)/ \(", self.said())
            time.sleep(0.02)
        assert found, self.said()
        self.url = found[1]
        self.port = int(self.url.rpartition(":")[2].partition("/")[0])
        self._wait()

    def _wait(self):
        until = time.monotonic() + 20
        while time.monotonic() < until:
            try:
                if Client(f"http://127.0.0.1:{self.port}").get("/healthz").status == 200:
                    return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the server does not answer")

    def kill(self):
        """End it as a failing machine does."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        """End it as its owner does."""
        self.process.terminate()
        self.process.wait(15)


@dataclass
class Desk:
    """A database with the server on it.

    Studies get names of their own, so that tests share both.
    """

    database: object
    server: Server
    made: int = 0

    @property
    def url(self):
        return self.server.url

    def study(self, **more):
        self.made += 1
        return furnish(self.database, name=f"study-{self.made}", **more)

    def client(self, name):
        return signed_in(self.url, self.database, name)


def close_connections():
    for connection in Client.OPEN:
        connection.close()
    Client.OPEN.clear()


GOOD = {"question": "5", "answer": "4", "path": "4"}


def choose(page, name, value):
    """Score one aspect by its label: Playwright waits until that stands still, where a forced click
    may miss.
    """
    page.click(f'label:has(input[name="{name}"][value="{value}"])')
    assert page.is_checked(f'input[name="{name}"][value="{value}"]')
