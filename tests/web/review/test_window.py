"""The auditor's window onto private items, and the upload of items by coordinators."""

import json

import pytest
from sqlalchemy import select
from tests import makers
from tests.publishing.private_items import QUESTION, make_run, private_item

import medassay
from medassay.review.store.schema import Study, TrailLine


@pytest.fixture(scope="module")
def private(tmp_path_factory):
    folder = tmp_path_factory.mktemp("private")
    run = make_run(folder, *[private_item(f"law-s{n}", f"{QUESTION} Case {n}.") for n in range(3)])
    medassay.publish(run, folder / "site", publication="one")
    return run, folder / "site" / "p" / "one"


def _of_run(desk, private, publication):
    study = desk.study(n=1)
    with desk.database.write() as db:
        found = db.get_one(Study, study)
        source = {"private_run": str(private[0].path), "publication": str(publication)}
        found.settings = {**found.settings, "source": source}
    return study


def test_an_auditor_reads_a_private_item_and_the_view_is_in_the_trail(desk, private):
    study = _of_run(desk, private, private[1])
    aud = desk.client("aud")
    page = aud.get(f"/s/{study}/window")
    assert "law-s1" in page.text
    assert "Case 1." not in page.text
    shown = aud.post(f"/s/{study}/window", item="law-s1")
    assert shown.status == 200
    assert "Case 1." in shown.text
    assert "as published" in shown.text
    with desk.database.read() as db:
        line = db.scalar(select(TrailLine).order_by(TrailLine.id.desc()).limit(1))
    assert line.record["event"] == "private item viewed"
    assert (line.record["who"], line.record["item"]) == ("Aud", "law-s1")


def test_a_text_that_is_not_what_was_published_is_not_shown_as_such(desk, private, tmp_path):
    other = tmp_path / "p" / "two" / "data" / "run"
    other.mkdir(parents=True)
    for name in ("items.jsonl", "trials.jsonl"):
        lines = (private[1] / "data" / "run" / name).read_text().splitlines()
        changed = [
            (
                {**json.loads(line), "commitment": "0" * 64}
                if "commitment" in line
                else json.loads(line)
            )
            for line in lines
        ]
        (other / name).write_text("".join(json.dumps(one) + "\n" for one in changed))
    study = _of_run(desk, private, tmp_path / "p" / "two")
    aud = desk.client("aud")
    aud.get(f"/s/{study}/window")
    reply = aud.post(f"/s/{study}/window", item="law-s1")
    assert reply.status == 409
    assert "not what was published" in reply.text
    assert "Case 1." not in reply.text


def test_public_and_unknown_items_and_other_studies_are_refused(desk, private):
    study = _of_run(desk, private, private[1])
    aud = desk.client("aud")
    aud.get(f"/s/{study}/window")
    for item in ("law-00", "no-such", "", "../../etc/passwd"):
        assert aud.post(f"/s/{study}/window", item=item).status == 409
    plain = desk.study(n=1)
    assert "not of a run with private items" in aud.get(f"/s/{plain}/window").text
    assert aud.post(f"/s/{plain}/window", item="law-s1").status == 404


def _upload(client, study, data, **fields):
    edge = "edge"
    parts = [
        f'--{edge}\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n'.encode()
        for k, v in {"csrf": client.token, **fields}.items()
    ]
    parts.append(
        f'--{edge}\r\nContent-Disposition: form-data; name="items";'
        ' filename="../items.jsonl"\r\n\r\n'.encode()
        + data
        + f"\r\n--{edge}--\r\n".encode()
    )
    return client.ask(
        "POST",
        f"/s/{study}/import",
        b"".join(parts),
        headers={"content-type": f"multipart/form-data; boundary={edge}"},
    )


def test_uploaded_items_are_checked_line_by_line_and_a_sample_taken(desk):
    study = desk.study(n=1)
    coco = desk.client("coco")
    coco.get(f"/s/{study}/progress")
    items = [{**one, "category": f"c{at % 3}"} for at, one in enumerate(makers.many_items(12))]
    good = b"".join(json.dumps(one).encode() + b"\n" for one in items)
    for data, says in (
        (b"", "no entry was found"),
        (b"not json\n", "line 1"),
        (good + b'{"id": 5}\n', "line 13"),
        (b"[" * 5000, "line 1"),
        (b"\xff\xfe", "line 1"),
        (b'{"id": "x\\u0000", "domain": "law"}\n', "line 1"),
    ):
        reply = _upload(coco, study, data)
        assert reply.status == 422, says
        assert says in reply.text
    assert _upload(coco, study, good, n="2").status == 422  # fewer than categories
    assert _upload(coco, study, good, n="x").status == 422
    done = _upload(coco, study, good, n="6", iteration="2")
    assert done.status == 200
    assert "6 items were added." in done.text
    assert _upload(desk.client("ada"), study, good).status == 403
