import json

import pytest
from tests import makers

import medassay
from medassay.core.canonical import sha256_hex
from medassay.errors import InputError
from medassay.runner.merge import join_runs
from medassay.storage.run import Run


def make(folder, *models, bank="bank", **plan):
    makers.write_models(folder, *models)
    wanted = {"banks": [bank], "models": [m["id"] for m in models], **plan}
    return medassay.run(makers.write_plan(folder, **wanted), secrets={})


@pytest.fixture
def folder(tmp_path):
    makers.write_bank(tmp_path / "bank", [*makers.law_items(), *makers.many_items(15)])
    return tmp_path


def rows(run):
    return {r["model"]: r for r in run.statistics.document["domains"]["overall"]}


def test_joined_runs_are_one_board_and_each_member_keeps_its_root(folder, cli):
    random = {"id": "random", "provider": "baseline", "model": "random"}
    one, two = make(folder, makers.fake("a", letters="hash")), make(folder, random)
    assert one.manifest_document["methodology"] == two.manifest_document["methodology"]
    code, shown, _ = cli("publish", one.path, two.path, "--to", folder / "site", "--id", "x")
    assert code == 0, shown
    joined = Run(next((folder / "runs").glob("joined-*")))
    roots = sorted(run.seal.root for run in (one, two))
    assert joined.manifest_document["drawn_as"] == sha256_hex("\x1f".join(roots).encode())
    assert [member["root"] for member in joined.manifest_document["joined"]] == roots
    for run in (one, two):
        for name, row in rows(run).items():
            assert rows(joined)[name]["score"] == row["score"]
            assert rows(joined)[name]["n"] == row["n"]
    report = medassay.verify(folder / "site")
    assert report.ok, report.first_mismatch
    assert report.checks[-2]["detail"] == "2 runs, each with its own root"
    page = (folder / "site/p/x/index.html").read_text()
    assert 'data-model="a"' in page
    assert 'data-model="random"' in page
    assert one.id in next((folder / "site/p/x/run").rglob("index.html")).read_text()


def test_the_order_of_runs_does_not_matter_and_the_same_runs_give_the_same_bytes(folder):
    runs = [make(folder, makers.fake(name, letters="hash", salt=name)) for name in "abc"]
    made = [
        {p.name: p.read_bytes() for p in join_runs(order, folder / place).path.iterdir()}
        for place, order in (("one", runs), ("two", runs[::-1]))
    ]
    assert made[0] == made[1]


def test_runs_that_do_not_belong_together_are_refused(folder):
    one = make(folder, makers.fake("a", letters="hash"))
    again = make(folder, makers.fake("a", letters="hash"), repeats=2)
    with pytest.raises(InputError, match="both hold a, zero_shot, solo"):
        join_runs([one, again], folder)
    draws = make(folder, makers.fake("b", letters="hash"), n_resamples=500)
    with pytest.raises(InputError, match="another n_resamples"):
        join_runs([one, draws], folder)
    other = make(folder, makers.fake("b", letters="hash"), extraction="paper")
    with pytest.raises(InputError, match="in methodology"):
        join_runs([one, other], folder)
    makers.write_bank(folder / "more", makers.many_items(12), name="more")
    strange = make(folder, makers.fake("b", letters="hash"), bank="more")
    with pytest.raises(InputError, match=r"in domains|other bank"):
        join_runs([one, strange], folder)
    assert not list(folder.glob("joined-*"))


def test_a_record_moved_between_members_is_found(folder, tmp_path):
    from tests.publishing.tampering import copy, reseal

    runs = [make(folder, makers.fake(name, letters="hash")) for name in "ab"]
    forged = copy(join_runs(runs, folder).path, tmp_path / "forged")
    manifest = json.loads((forged / "manifest.json").read_text())
    first, second = manifest["joined"]
    first["cells"], second["cells"] = second["cells"], first["cells"]
    from medassay.core.canonical import canonical

    (forged / "manifest.json").write_bytes(canonical(manifest) + b"\n")
    reseal(forged)
    assert "have another root" in medassay.verify(forged).first_mismatch


def test_judged_runs_join_with_their_verdicts(tmp_path):
    makers.write_bank(tmp_path / "bank", makers.open_items(12))
    judges = makers.judges()
    runs = []
    for name in "ab":
        makers.write_models(tmp_path, makers.fake(name, reply="It rests on duty."), *judges)
        plan = makers.write_plan(
            tmp_path, models=[name], judges=[j["id"] for j in judges], task="open"
        )
        runs.append(medassay.run(plan, secrets={}))
    joined = join_runs(runs, tmp_path / "runs")
    report = medassay.verify(joined.path)
    assert report.ok, report.first_mismatch
    for name, run in zip("ab", runs, strict=True):
        assert rows(joined)[name]["agreement"] == rows(run)[name]["agreement"]


def test_a_damaged_member_is_refused_and_leaves_no_joined_run_behind(folder, tmp_path):
    from tests.publishing.tampering import copy

    from medassay.errors import IntegrityError

    one, two = (make(folder, makers.fake(name, letters="hash")) for name in "ab")
    broken = copy(two.path, tmp_path / "broken")
    text = (broken / "timings.jsonl").read_text()
    (broken / "timings.jsonl").write_text(text.replace('"replayed":false', '"replayed":true'))
    with pytest.raises(IntegrityError, match=r"timings\.jsonl"):
        medassay.publish([one, Run(broken)], folder / "site")
    assert not list((folder / "runs").glob("joined-*"))
    medassay.publish([one, two], folder / "site", publication="x")
    assert medassay.verify(folder / "site").ok
