"""Serving: where the app may be reached from, behind what, and the commands around it."""

import datetime as dt
import http.client
import json
import re
import resource
import ssl
import subprocess
import sys
import time
from typing import NamedTuple

import pytest
from tests import makers
from tests.web.review.desk import GOOD, Client, add_account, cookie_of, furnish

from medassay.review.store import accounts, reviews, studies
from medassay.review.store.database import open_database
from medassay.review.store.schema import Study
from medassay.web.request_context import SESSION


@pytest.fixture
def medassay(cli):
    """Run commands of the group in a folder of their own; returns code, output and errors."""
    return lambda *arguments: Done(*cli("review", *arguments))


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def address(tmp_path):
    return str(tmp_path / "review.sqlite")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["serve", "--host", "0.0.0.0"], 3, "plain HTTP is served on this machine only"),
        (["serve", "--certificate", "x.pem"], 3, "--certificate and --key come together"),
        (["serve", "--certificate", "x.pem", "--key", "y.pem"], 3, "x.pem: no such file"),
        (["serve", "--url", "review.example.org"], 3, "expected https://"),
        (["serve", "--root-path", "review"], 3, "expected it to begin with /"),
        (["user", "invite", "x", "--role", "admin"], 3, "expected an e-mail address"),
        (["user", "invite", "x@y.org", "--role", "king"], 2, "needs --study"),
        (
            ["user", "invite", "x@y.org", "--role", "reviewer", "--study", "no"],
            3,
            "no study 'no'",
        ),
        (["user", "disable", "x@y.org"], 3, "nobody has the address"),
        (["study", "close", "no", "--yes"], 3, "no study 'no'"),
        (["study", "assign", "no"], 3, "no study 'no'"),
        (["export", "no"], 3, "no study 'no'"),
        (["apply", "no", "--bank", "b", "--by", "w", "--reason", "r"], 3, "no study 'no'"),
        (["import", "nowhere", "--study", "s"], 3, "nowhere"),
        (["import", "demo", "--study", "A B"], 3, "expected a name of a-z"),
        (["import", "demo", "--study", "s", "--form", "x"], 2, "expected answer, item"),
        (["import", "demo", "--study", "s", "--form", "judge"], 2, "import a run"),
        (["import", "demo", "--study", "s", "--form", "pair"], 2, "--original"),
        (["import", "demo", "--study", "s", "--n", "3"], 3, "one of each category"),
        (["import", "demo", "--study", "s", "--due", "2027-13-45"], 3, "expected a day such as"),
        (["import", "demo", "--study", "s", "--overlap", "0"], 3, "0 reviewers an entry"),
    ],
)
def test_bad_input_gets_one_line_and_its_exit_code(medassay, address, arguments, code, says):
    open_database(address).close()
    done = medassay(*arguments, "--database", address)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    told = medassay(*arguments, "--database", address, "--json")
    assert says in json.loads(told.stdout)["error"]["message"]


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("no/such/folder/review.sqlite", "its folder does not exist"),
        ("postgresql://medassay@127.0.0.1:1/none", "refused"),
        ("mysql://x/y", "expected postgresql://"),
        ("postgresql://medassay:secret-word@127.0.0.1:1/none", "refused"),
    ],
)
def test_a_database_that_cannot_be_had_is_named_without_its_password(medassay, address, says):
    done = medassay("import", "demo", "--study", "s", "--database", address)
    assert done.returncode == 3
    assert says in done.stderr
    assert "secret-word" not in done.stderr


def test_files_that_are_no_database_of_ours_are_left_alone(medassay, tmp_path):
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(b"this is a text, not a database" * 50)
    before = broken.read_bytes()
    done = medassay("study", "list", "--database", broken)
    assert done.returncode == 3
    assert "not a database" in done.stderr
    assert broken.read_bytes() == before


def test_a_database_of_a_later_version_is_refused(medassay, address):
    database = open_database(address)
    with database.write() as db:
        db.connection().exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    database.close()
    done = medassay("study", "list", "--database", address)
    assert done.returncode == 3
    assert "later version of medassay (9999)" in done.stderr


def test_the_commands_take_a_bank_to_a_revised_one(medassay, tmp_path, address):
    items = [{**one, "category": "law"} for one in makers.law_items()]
    bank = makers.write_bank(tmp_path / "law", items)
    done = medassay(
        "import",
        bank,
        "--study",
        "law",
        "--no-training",
        "--overlap",
        "1",
        "--database",
        address,
        "--json",
    )
    assert json.loads(done.stdout)["entries"] == len(items)
    database = open_database(address)
    with database.write() as db:
        study = db.get_one(Study, "law")
        ada = add_account(db, "ada", qualified=("physician", "", 3))
        judy, jon = (add_account(db, name) for name in ("judy", "jon"))
        for account, role in ((ada, "reviewer"), (judy, "adjudicator"), (jon, "adjudicator")):
            accounts.grant(db, account, "law", role, who="tests")
    assert (
        f"{len(items)} assignments"
        in medassay("study", "assign", "law", "--database", address).stdout
    )
    with database.write() as db:
        study = db.get_one(Study, "law")
        for number in range(1, len(items) + 1):
            work = reviews.work_at(db, study, ada.id, number)
            reviews.submit(db, study, work, {k: GOOD[k] for k in ("question", "answer")}, version=0)
        from medassay.review.store import tickets

        entry = studies.entry_at(db, "law", 1)
        tickets.decide(db, study, entry, {"verdict": "remove", "reason": "r"}, judy)
        step = tickets.last_decision(db, tickets.ticket_of(db, study, entry))
        tickets.check(db, study, entry, jon, decision=step.id, confirmed=True)
        gone = entry.item
    refused = medassay("export", "law", "--database", address)
    assert refused.returncode == 1
    assert "exported after closing" in refused.stderr
    closed = medassay("study", "close", "law", "--yes", "--database", address).stdout.strip()
    assert re.fullmatch("[0-9a-f]{64}", closed)
    document = json.loads(medassay("export", "law", "--json", "--database", address).stdout)
    assert document["schema_version"] == 1
    assert document["sha256"] == closed
    votes = medassay("export", "law", "--votes", tmp_path / "votes.csv", "--database", address)
    assert votes.returncode == 0
    assert (tmp_path / "votes.csv").read_text().startswith("item,evaluator,vote\n")
    assert medassay("export", "law", "--bank", bank, "--database", address).returncode == 0
    assert (bank / "REVIEWS.json").exists()
    preview = medassay(
        "apply",
        "law",
        "--bank",
        bank,
        "--by",
        "Max",
        "--reason",
        "r",
        "--plan",
        "--database",
        address,
    )
    assert preview.stdout.strip() == f"remove  {gone}"
    lock = tmp_path / "banks.lock"
    applied = medassay(
        "apply",
        "law",
        "--bank",
        bank,
        "--by",
        "Max",
        "--reason",
        "r",
        "--lock",
        lock,
        "--database",
        address,
        "--json",
    )
    assert json.loads(applied.stdout)["decisions"] == {"remove": 1}
    assert gone not in (bank / "items.jsonl").read_text()
    again = medassay(
        "apply",
        "law",
        "--bank",
        bank,
        "--by",
        "Max",
        "--reason",
        "r",
        "--lock",
        lock,
        "--database",
        address,
    )
    assert again.returncode == 1
    listed = json.loads(medassay("study", "list", "--json", "--database", address).stdout)[
        "studies"
    ]
    assert listed[0]["closed_at"]
    year = dt.datetime.now(dt.UTC).year + 2
    due = medassay("study", "due", "--on", f"{year}-12-31", "--json", "--database", address)
    assert len(json.loads(due.stdout)["due"]) == len(items)
    assert json.loads(medassay("study", "due", "--json", "--database", address).stdout)["due"] == []
    database.close()


def test_below_a_path_of_a_proxy_links_stay_below_it(address, serve):
    database = open_database(address)
    furnish(database, n=1)
    server = serve(address, "--root-path", "/med/assay", "--proxy", "127.0.0.1")
    base = server.url.removesuffix("/med/assay")
    client = Client(base, {SESSION: cookie_of(database, "ada")})
    for prefix in ("", "/med/assay"):  # proxies strip their path, or leave it
        page = client.get(f"{prefix}/s/hearts/i/1")
        assert page.status == 200
        links = re.findall(r'(?:href|src|action|data-draft|data-next)="(/[^"]*)"', page.text)
        assert links
        assert all(link.startswith("/med/assay/") for link in links), links
    sent = client.post("/s/hearts/i/1", version=page.version, do="submit", **GOOD)
    assert sent.goes_to == "/med/assay/s/hearts/done"
    # What the proxy says of where a request came from is believed; HTTPS is then asked of browsers.
    far = {"x-forwarded-for": "203.0.113.9", "x-forwarded-proto": "https"}
    assert "strict-transport-security" in client.get("/login", **far).headers
    assert client.get("/login", **{**far, "x-forwarded-proto": "http"}).status == 403
    database.close()


def test_forwarded_headers_of_anybody_else_are_not_believed(address, serve):
    open_database(address).close()
    client = Client(serve(address).url)
    told = {"x-forwarded-for": "203.0.113.9", "x-forwarded-proto": "https"}
    reply = client.get("/login", **told)
    assert reply.status == 200  # still plain HTTP from this machine
    assert "strict-transport-security" not in reply.headers


def test_with_a_certificate_it_is_served_to_others(address, tmp_path, serve):
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    start = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + dt.timedelta(days=3))
        .sign(key, hashes.SHA256())
    )
    (tmp_path / "c.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (tmp_path / "k.pem").write_bytes(private)
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "medassay",
            "review",
            "serve",
            "--database",
            address,
            "--port",
            "0",
            "--host",
            "0.0.0.0",
            "--certificate",
            tmp_path / "c.pem",
            "--key",
            tmp_path / "k.pem",
        ],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    try:
        port = next(
            int(found[1])
            for line in process.stderr
            if (found := re.search(r"https://0\.0\.0\.0:(\d+)/", line))
        )
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=20)
        for _ in range(50):
            try:
                connection.request("GET", "/login")
                break
            except OSError:
                connection.close()
                time.sleep(0.1)
        reply = connection.getresponse()
        assert reply.status == 200
        assert reply.getheader("strict-transport-security")
        connection.close()
    finally:
        process.terminate()
        process.wait(20)
        process.stderr.close()


def test_a_disk_that_takes_no_more_loses_nothing_and_says_so(address, tmp_path, serve):
    database = open_database(address)
    furnish(database, n=2)
    server = serve(address)
    client = Client(server.url, {SESSION: cookie_of(database, "ada")})
    page = client.get("/s/hearts/i/1")
    # As a full disk: no file of the server's may grow any more.
    full = (4096, resource.RLIM_INFINITY)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, full)
    fields = {"version": page.version, "do": "submit", "comment": "mine", **GOOD}
    reply = client.post("/s/hearts/i/1", **fields)
    assert reply.status == 503
    assert "go back" in reply.text
    draft = client.ask("PUT", "/api/s/hearts/i/1/draft", {"fields": GOOD, "version": 0})
    assert draft.status == 503
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    assert client.post("/s/hearts/i/1", **fields).status == 303
    database.close()
