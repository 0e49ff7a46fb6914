"""Whatever stands in a document of a run, commands say in one line what is wrong: no run is read
as something else, and none ends in an error that nobody expected.
"""

import copy
import json
import random
import re
import shutil

import pytest

import medassay
from medassay.errors import IntegrityError
from medassay.kinds.record.parts import parts_of
from medassay.publishing.times import from_sealed
from tests import makers

DOCUMENTS = ("statistics.json", "seal.json", "manifest.json")
WRONG = (None, "x", 5, [], {})
N = 12  # places of each document


def places_in(value, place=()):
    """Yield the place of every value in a document, of lists the first two."""
    yield place
    members = value.items() if isinstance(value, dict) else ()
    members = enumerate(value[:2]) if isinstance(value, list) else members
    for key, member in members:
        yield from places_in(member, (*place, key))


def with_wrong(document, place, value):
    changed = copy.deepcopy(document)
    if not place:
        return value
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return changed


def runs(kind, folder):
    if kind == "closed":
        makers.write_bank(folder / "bank", makers.law_items())
        makers.write_models(folder, makers.fake("a", letters="hash"), makers.fake("b"))
        return medassay.run(makers.write_plan(folder, models=["a", "b"]), secrets={})
    makers.write_bank(folder / "bank", makers.ddx_items(12), name="medicine", domains=("medicine",))
    replies = {f"case-{i:03}": makers.listed(f"Malady {i}", "Flu") for i in range(12)}
    makers.write_models(folder, makers.fake("m", replies=replies), makers.ddx_judge(12))
    plan = makers.write_plan(folder, models=["m"], judges=["judge"], task="ddx")
    return medassay.run(plan, secrets={})


@pytest.mark.parametrize("kind", ["closed", "diagnoses"])
def test_a_wrong_value_anywhere_is_told_in_one_line(kind, tmp_path, cli):
    run = runs(kind, tmp_path)
    chance = random.Random(kind)
    for name in DOCUMENTS:
        document = json.loads((run.path / name).read_text())
        places = [*places_in(document)]
        for place in chance.sample(places, min(N, len(places))):
            damaged = tmp_path / "damaged"
            shutil.rmtree(damaged, ignore_errors=True)
            shutil.copytree(run.path, damaged)
            for path in (damaged, *damaged.iterdir()):
                path.chmod(0o755 if path.is_dir() else 0o644)
            wrong = with_wrong(document, place, chance.choice(WRONG))
            (damaged / name).write_text(json.dumps(wrong))
            item = "law-00" if kind == "closed" else "case-000"
            for command in (("report",), ("show", item, "--run"), ("verify",)):
                code, _, errors = cli(*command, str(damaged))
                assert "unexpected" not in errors, (name, place, errors)
                assert errors.count("error:") == (code != 0), (name, place, errors)


def test_a_wrong_value_in_a_document_of_a_site_or_of_deletions_is_told_in_one_line(tmp_path, cli):
    run = runs("closed", tmp_path)
    assert cli("publish", run.path, "--to", tmp_path / "site", "--id", "one")[0] == 0
    assert cli("forget", "law-00", "--reason", "asked for", "--yes")[0] == 0
    site, publication = tmp_path / "site", tmp_path / "site/p/one"
    deleted = run.path / "tombstones.json"
    (publication / "data/reruns.json").write_text(
        json.dumps({"schema_version": 1, "reruns": [AUDIT]})
    )
    chance = random.Random("site")
    for path, command in (
        (publication / "data/trend.json", ("verify", site)),
        (publication / "data/reruns.json", ("verify", site)),
        (site / "status/one.json", ("verify", site)),
        (site / "log/head.json", ("verify", site)),
        (deleted, ("verify", run.path)),
        (deleted, ("report", run.path)),
    ):
        data = path.read_bytes()
        document = json.loads(data)
        places = [*places_in(document)]
        path.chmod(0o644)
        for place in chance.sample(places, min(N, len(places))):
            path.write_text(json.dumps(with_wrong(document, place, chance.choice(WRONG))))
            code, _, errors = cli(*command)
            assert "unexpected" not in errors, (path.name, place, errors)
            assert errors.count("error:") <= 1, (path.name, place, errors)
            assert code or command[0] == "report", (path.name, place)
        path.write_bytes(data)


AUDIT = {"publication": "two", "of": ["one"], "differing": 0, "trials": 9, "within": True}


@pytest.mark.parametrize(
    ("read", "says"),
    [
        (lambda: parts_of({"similarity": "x"}), "scores.jsonl: parts of a health record: Expected"),
        (lambda: from_sealed([{"role": 5}]), "seal.json: withheld.times: "),
    ],
)
def test_wrong_parts_of_scores_and_seals_are_named(read, says):
    with pytest.raises(IntegrityError, match=re.escape(says)):
        read()
