"""A disputed number has a claim, a check and a decision: lines of the log, and a page of its own."""

import functools
import http.server
import json
import threading

import pytest
from tests import makers

import medassay
from medassay.cli.main import call
from medassay.core.canonical import canonical
from medassay.core.ledger import LEDGER, disputes_of, status_of
from medassay.core.records.dispute import DisputedThing
from medassay.errors import GateError, InputError, IntegrityError
from medassay.publishing.disputes import answer_dispute, close_dispute, open_dispute
from medassay.publishing.history import set_status
from medassay.storage.ledger import chained, read_ledger
from medassay.storage.signature import Signer, new_key

BOARD = """
title = "Law"
purpose = "How models answer questions of law. For people who choose one."
publisher = "The house of law"
contact = "board@example.org"
address = "https://board.example.org/"
"""


@pytest.fixture
def site(tmp_path):
    plan = makers.workspace(
        tmp_path / "w", makers.law_items(), makers.fake("m", reply="A"), makers.fake("n", reply="B")
    )
    medassay.publish(medassay.run(plan, secrets={}), tmp_path / "site", publication="one")
    return tmp_path / "site"


def an_answer(site):
    page = next((site / "p/one/cell/n").rglob("index.html"))
    sha256 = page.read_text().partition('data-sha256="')[2][:64]
    return page.relative_to(site / "p/one").as_posix(), sha256


def test_an_answer_is_disputed_checked_and_decided(site):
    before = {p: p.read_bytes() for p in (site / "p").rglob("*") if p.is_file()}
    page, sha256 = an_answer(site)
    claim = "The reply was <b>right</b>:\n\u202eread wrongly."
    assert (
        open_dispute(
            site, "one", claim, about=DisputedThing(answer=sha256[:12]), by="The maker of n"
        )
        == 1
    )
    (told,) = status_of(read_ledger(site))["one"].open_disputes
    assert (told.number, told.model) == (1, "n")
    (told,) = json.loads((site / "status/one.json").read_text())["open_disputes"]
    assert (told["number"], told["model"]) == (1, "n")
    assert "dispute 1</a>." in (site / "index.html").read_text()
    answer_dispute(site, 1, "Both raw replies were read again.")
    close_dispute(site, 1, "upheld", reason="The rule misread it.")
    (dispute,) = disputes_of(read_ledger(site))
    assert (dispute.state, dispute.opening.about.model) == ("upheld", "n")
    assert [step.step for step, _ in dispute.steps] == ["opened", "answered", "closed"]
    told = (site / "dispute/1/index.html").read_text()
    assert "<b>right" not in told
    assert "&lt;b&gt;right" in told
    assert "U+202E" in told
    assert f'href="../../p/one/{page}#' in told
    for part in (sha256, "read again", "The rule misread it.", "The maker of n", "upheld"):
        assert part in told
    assert status_of(read_ledger(site))["one"].status == "current"
    assert "open_disputes" not in (site / "status/one.json").read_text()
    assert "upheld" in (site / "log/index.html").read_text()
    assert "upheld" in (site / "dispute/index.html").read_text()
    assert "upheld" in (site / "status/one/index.html").read_text()
    assert before == {p: p.read_bytes() for p in (site / "p").rglob("*") if p.is_file()}
    assert medassay.verify(site).ok


def test_a_model_an_item_and_a_publication_can_be_disputed(site):
    name = json.loads((site / "p/one/data/run/items.jsonl").read_text().splitlines()[0])["id"]
    open_dispute(site, "one", "Asked with the wrong version.", about=DisputedThing(model="m"))
    open_dispute(site, "one", "Its key is wrong.", about=DisputedThing(item=name))
    open_dispute(site, "one", "Its key is old.", about=DisputedThing(item=f"law/{name}"))
    open_dispute(site, "one", "The title misleads.")
    abouts = [dispute.opening.about for dispute in disputes_of(read_ledger(site))]
    assert abouts[0].page == "model/m/index.html"
    assert abouts[1] == abouts[2]
    assert abouts[1].item == f"law/{name}"
    for about in abouts:
        assert (site / "p/one" / about.page.partition("#")[0]).is_file()
    anchor = abouts[1].page.partition("#")[2]
    page = (site / "p/one" / abouts[1].page.partition("#")[0]).read_text()
    assert f'id="{anchor}"' in page
    set_status(site, "one", "corrected", reason="A key was wrong.")
    told = status_of(read_ledger(site))["one"].open_disputes
    assert [(one.number, one.model) for one in told] == [(1, "m"), (2, ""), (3, ""), (4, "")]
    assert medassay.verify(site).ok


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (("two", "x"), InputError, "no publication 'two'; there are one"),
        (("one", "  "), InputError, "--claim: empty"),
        (("one", "x" * 5000), InputError, "5,000 characters"),
        (("one", "key sk-" + "a1" * 15), GateError, "looks like a secret"),
        (("one", "x", {"model": "z"}), InputError, "no model 'z'; there are m, n"),
        (("one", "x", {"item": "z"}), InputError, "no item 'z'"),
        (("one", "x", {"answer": "abc"}), InputError, "no answer 'abc'"),
        (("one", "x", {"answer": "f" * 64, "item": "a"}), InputError, "expected one of them"),
    ],
)
def test_what_cannot_be_opened_leaves_the_site_as_it_was(site, arguments, error, text):
    before = {p: p.read_bytes() for p in site.rglob("*") if p.is_file()}
    publication, claim, *named = arguments
    with pytest.raises(error, match=text):
        open_dispute(site, publication, claim, about=DisputedThing(**(named[0] if named else {})))
    assert before == {p: p.read_bytes() for p in site.rglob("*") if p.is_file()}


def test_only_an_open_dispute_is_answered_or_closed(site):
    with pytest.raises(InputError, match="no dispute 1; there are none"):
        answer_dispute(site, 1, "x")
    open_dispute(site, "one", "Wrong.")
    with pytest.raises(InputError, match="expected one of upheld, rejected, withdrawn"):
        close_dispute(site, 1, "won", reason="x")
    with pytest.raises(InputError, match="no publication 'two'"):
        close_dispute(site, 1, "upheld", reason="x", following="two")
    close_dispute(site, 1, "rejected", reason="It is right.")
    for again in (
        lambda: answer_dispute(site, 1, "x"),
        lambda: close_dispute(site, 1, "upheld", reason="x"),
    ):
        with pytest.raises(InputError, match=r"was closed on .* \(rejected\); open another one"):
            again()


def test_a_signed_log_takes_signed_steps_only(site, tmp_path):
    new_key(tmp_path / "key")
    open_dispute(site, "one", "Wrong.", signer=Signer(tmp_path / "key"))
    with pytest.raises(InputError, match="its last line is signed"):
        answer_dispute(site, 1, "Checked.")
    answer_dispute(site, 1, "Checked.", signer=Signer(tmp_path / "key"))
    assert medassay.verify(site).ok


def forged(site, **step):
    """Append a line that is chained rightly, and says something that no command writes."""
    entry = read_ledger(site)[-1]
    record = {"event": "dispute", "at": "2026-01-01T00:00:00Z", "publication": "one", **step}
    line = {"record": record, "prev": entry.hash, "hash": chained(entry.hash, record)}
    with (site / LEDGER).open("ab") as file:
        file.write(canonical(line) + b"\n")


@pytest.mark.parametrize(
    ("step", "text"),
    [
        ({"step": "answered", "dispute": 1}, "there is no dispute 1"),
        ({"step": "opened", "dispute": 7}, "there is no dispute 7"),
        ({"step": "opened", "dispute": 1, "about": 3}, "Expected `object`"),
        ({"step": "opened", "dispute": 1, "decision": "upheld"}, "decision 'upheld'"),
        ({"step": "won", "dispute": 1}, "nor a step of a dispute"),
        ({"step": "opened", "dispute": "1"}, "nor a step of a dispute"),
    ],
)
def test_a_forged_step_is_named(site, step, text):
    forged(site, **step)
    with pytest.raises(IntegrityError, match=text):
        disputes_of(read_ledger(site))
    assert not medassay.verify(site).ok


def test_a_closed_dispute_is_not_closed_again_by_forgery(site):
    open_dispute(site, "one", "Wrong.")
    close_dispute(site, 1, "withdrawn", reason="Taken back.")
    forged(site, step="closed", dispute=1, decision="upheld", reason="x")
    with pytest.raises(IntegrityError, match="is not open, or opened twice"):
        disputes_of(read_ledger(site))


def test_the_commands_and_a_server_tell_the_same(tmp_path, capsys):
    (tmp_path / "board.toml").write_text(BOARD)
    plan = makers.workspace(tmp_path / "w", makers.law_items(), makers.fake("m", reply="A"))
    site = tmp_path / "site"
    medassay.publish(medassay.run(plan, secrets={}), site, publication="one")
    assert call(["dispute", "open", str(site), "one", "--claim", "Wrong.", "--model", "m"]) == 0
    assert "dispute 1 about one is open: dispute/1/index.html" in capsys.readouterr().out
    assert call(["dispute", "answer", str(site), "1", "--checked", "All of it."]) == 0
    closing = ["dispute", "close", str(site), "1", "--decision", "upheld", "--reason", "Yes."]
    assert call(closing) == 0
    assert "medassay status" in capsys.readouterr().err
    assert call(closing) == 0  # once more: nothing new
    assert call([*closing[:-1], "No."]) == 3
    titles = [item["title"] for item in json.loads((site / "feed.json").read_text())["items"]]
    assert titles[:3] == [
        "one: dispute 1 closed, upheld",
        "one: dispute 1 answered",
        "one: dispute 1 opened",
    ]
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        report = medassay.verify(f"http://127.0.0.1:{server.server_port}/")
        server.shutdown()
    assert report.ok, report.first_mismatch


def test_a_ledger_names_no_folder_outside_of_its_site(site, tmp_path):
    before = sorted(tmp_path.iterdir())
    entry = read_ledger(site)[-1]
    for publication in ("../../../x", "a/b", "", ".hidden", "A"):
        record = {"event": "status", "at": "2026-01-01T00:00:00Z", "publication": publication}
        record |= {"status": "retracted", "reason": "x", "next": None}
        line = {"record": record, "prev": entry.hash, "hash": chained(entry.hash, record)}
        lines = (site / LEDGER).read_bytes()
        (site / LEDGER).write_bytes(lines + canonical(line) + b"\n")
        with pytest.raises(IntegrityError, match="line 2"):
            open_dispute(site, "one", "Wrong.")
        (site / LEDGER).write_bytes(lines)
    assert sorted(tmp_path.iterdir()) == before


def test_a_dispute_of_what_was_never_published_is_damage(site):
    forged(site, step="opened", dispute=1, publication="two")
    with pytest.raises(IntegrityError, match="which was not published before"):
        open_dispute(site, "one", "Wrong.")


@pytest.mark.parametrize("claim", ["\u200b\u202e", "\ud800 wrong"])
def test_a_claim_that_nobody_could_read_is_refused(site, claim):
    with pytest.raises(InputError, match=r"empty|not UTF-8"):
        open_dispute(site, "one", claim)


def test_the_correction_is_another_publication(site):
    open_dispute(site, "one", "Wrong.")
    with pytest.raises(InputError, match="is the publication itself"):
        close_dispute(site, 1, "upheld", reason="x", following="one")


def test_a_web_server_cannot_be_written_to(capsys):
    assert call(["dispute", "open", "http://127.0.0.1:1/", "one", "--claim", "x"]) == 2
    assert "a web server can only be read" in capsys.readouterr().err


STEPS = {
    "open": lambda site: open_dispute(site, "one", "A key is wrong.", by="Somebody"),
    "answer": lambda site: answer_dispute(site, 1, "It was looked at."),
    "close": lambda site: close_dispute(site, 1, "rejected", reason="It is right."),
    "status": lambda site: set_status(site, "one", "corrected", reason="A key was wrong."),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_was_cut_off_is_finished_by_giving_it_once_more(site, monkeypatch, name):
    if name in ("answer", "close"):
        STEPS["open"](site)

    def full(path, content):
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patched:
        patched.setattr("medassay.publishing.history._replace", full)
        with pytest.raises(OSError, match="No space"):
            STEPS[name](site)
    entries = read_ledger(site)
    report = medassay.verify(site)
    assert not report.ok
    assert "give it once more" in str(report)
    STEPS[name](site)
    assert read_ledger(site) == entries
    assert medassay.verify(site).ok


def test_a_step_that_is_given_once_more_after_others_adds_no_line(site):
    assert STEPS["open"](site) == 1
    assert open_dispute(site, "one", "Another claim.") == 2
    STEPS["answer"](site)
    entries = read_ledger(site)
    assert STEPS["open"](site) == 1  # it is open
    STEPS["answer"](site)
    STEPS["status"](site)
    assert len(read_ledger(site)) == len(entries) + 1
    STEPS["close"](site)
    STEPS["status"](site)
    STEPS["close"](site)
    assert len(read_ledger(site)) == len(entries) + 2
    with pytest.raises(InputError, match="was closed on"):
        close_dispute(site, 1, "rejected", reason="Another reason.")
    assert STEPS["open"](site) == 3  # closed, it is claimed anew
    assert medassay.verify(site).ok
