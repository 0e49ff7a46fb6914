import json
from pathlib import Path

import pytest
from tests import makers
from tests.publishing.tampering import copy, reseal

import medassay
from medassay.core.canonical import canonical
from medassay.errors import GateError, InputError, IntegrityError
from medassay.publishing.publish import About
from medassay.publishing.report import VerificationReport
from medassay.publishing.secret_text import has_secret
from medassay.publishing.verify import verify


@pytest.fixture(scope="module")
def sealed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sealed")
    makers.write_bank(folder / "bank", [*makers.law_items(), *makers.many_items(15)])
    makers.write_models(
        folder,
        makers.fake("hash", letters="hash"),
        {"id": "random", "provider": "baseline", "model": "random"},
    )
    run = medassay.run(
        makers.write_plan(folder, models=["hash", "random"], shuffle_options=True), secrets={}
    )
    medassay.publish(run, folder / "site")
    return run.path, folder / "site"


def test_an_untouched_run_and_site_agree(sealed):
    run, site = sealed
    for path in (run, site, next((site / "p").iterdir())):
        report = verify(path)
        assert report.ok, report.first_mismatch
        assert any("scores recomputed" in check["detail"] for check in report.checks)


def test_the_sealed_root_is_that_of_the_records_as_rfc_6962_has_it(sealed):
    from hashlib import sha256

    def tree(leaves):
        if len(leaves) == 1:
            return sha256(b"\x00" + leaves[0]).digest()
        k = 1 << (len(leaves) - 1).bit_length() - 1
        return sha256(b"\x01" + tree(leaves[:k]) + tree(leaves[k:])).digest()

    lines = [
        line
        for name in ("trials.jsonl", "scores.jsonl")
        for line in (sealed[0] / name).read_bytes().splitlines()
    ]
    seal = json.loads((sealed[0] / "seal.json").read_text())
    assert (seal["root"], seal["count"]) == (tree(lines).hex(), len(lines))


def flips(data):
    """Places to flip: first, last and some between."""
    return sorted({0, len(data) - 1, len(data) // 2, len(data) // 3})


def test_one_flipped_byte_of_any_file_is_found_and_named(sealed, tmp_path):
    run = copy(sealed[0], tmp_path / "run")
    for path in sorted(run.iterdir()):
        data = path.read_bytes()
        for at in flips(data) if data else []:
            path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            report = verify(run)
            assert not report.ok
            assert path.name in report.first_mismatch, (path.name, report.first_mismatch)
        path.write_bytes(data)
    assert verify(run).ok


def test_missing_and_strange_files_are_named(sealed, tmp_path):
    run = copy(sealed[0], tmp_path / "run")
    (run / "extra.txt").write_text("x")
    assert "extra.txt" in verify(run).first_mismatch
    (run / "extra.txt").unlink()
    (run / "scores.jsonl").unlink()
    assert "scores.jsonl" in verify(run).first_mismatch


@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [
        ("scores.jsonl", b'"because":"wrong"', b'"because":"right"', "scores.jsonl line"),
        ("trials.jsonl", b'"value":"A"', b'"value":"B"', "trials.jsonl line"),
        (
            "statistics.json",
            b'"rank_rule":"simultaneous"',
            b'"rank_rule":"arena"',
            "statistics.json",
        ),
    ],
)
def test_a_forged_record_is_found_by_recomputation(sealed, tmp_path, name, old, new, says):
    run = copy(sealed[0], tmp_path / "run")
    data = (run / name).read_bytes()
    assert old in data
    (run / name).write_bytes(data.replace(old, new, 1))
    reseal(run)
    assert says in verify(run).first_mismatch


def test_a_forged_interval_is_found_by_recomputation(sealed, tmp_path):
    run = copy(sealed[0], tmp_path / "run")
    document = json.loads((run / "statistics.json").read_bytes())
    document["domains"]["law"][0]["lo"] += 1e-6
    (run / "statistics.json").write_bytes(canonical(document) + b"\n")
    reseal(run)
    assert "lo" in verify(run).first_mismatch


def with_manifest(run, **changes):
    """Change entries of a sealed manifest, None for absent, and seal the run again."""
    manifest = json.loads((run / "manifest.json").read_bytes()) | changes
    manifest = {name: value for name, value in manifest.items() if value is not None}
    (run / "manifest.json").chmod(0o644)
    (run / "manifest.json").write_bytes(canonical(manifest) + b"\n")
    reseal(run)
    return verify(run)


def test_scores_of_another_revision_are_not_recomputed_but_intervals_are(sealed, tmp_path):
    run = copy(sealed[0], tmp_path / "run")
    revisions = json.loads((run / "manifest.json").read_bytes())["revisions"]
    assert revisions["parser"] == ["choice/1"]
    later = {**revisions, "parser": ["choice/2"]}
    report = with_manifest(run, revisions=later)
    assert report.ok
    assert (
        report.checks[-1]["detail"]
        == "intervals, ranks and pairs recomputed; scores not recomputed: parser choice/2, here"
        " choice/1"
    )


def test_parts_that_no_item_needs_are_no_difference(sealed, tmp_path):
    """Earlier runs of closed questions name what reads numbers and texts, too."""
    run = copy(sealed[0], tmp_path / "run")
    revisions = json.loads((run / "manifest.json").read_bytes())["revisions"]
    earlier = {
        **revisions,
        "parser": ["choice/1", "number/1", "text/1"],
        "scorer": ["choice/1", "given/1", "key/1", "range/1", "regex/1"],
    }
    report = with_manifest(run, revisions=earlier)
    assert report.checks[-1]["detail"] == "intervals, ranks and pairs recomputed; scores recomputed"
    unknown = {**revisions, "parser": ["choice/1", "letters/1"]}
    report = with_manifest(run, revisions=unknown)
    assert report.ok
    assert report.checks[-1]["detail"].endswith("not recomputed: parser letters/1, here none")


def test_intervals_of_another_revision_are_not_recomputed(sealed, tmp_path):
    run = copy(sealed[0], tmp_path / "run")
    revisions = json.loads((run / "manifest.json").read_bytes())["revisions"]
    names = [name.replace("wilson/1", "wilson/2") for name in revisions["statistic"]]
    report = with_manifest(run, revisions={**revisions, "statistic": names})
    assert report.ok
    assert (
        report.checks[-1]["detail"]
        == "intervals, ranks and pairs not recomputed: statistic wilson/2, here wilson/1; scores"
        " recomputed"
    )


def test_scores_of_code_that_is_not_known_any_more_are_not_recomputed(sealed, tmp_path):
    run = copy(sealed[0], tmp_path / "run")
    hashes = {
        "parsers": {"option": "000000000000"},
        "scorers": {"choice": "choice@000000000000"},
    }
    report = with_manifest(run, revisions=None, **hashes)
    assert report.ok
    assert "scores not recomputed: other code" in report.checks[-1]["detail"]


def test_a_field_that_newer_code_adds_is_no_difference_of_an_older_run(sealed, tmp_path):
    run = copy(sealed[0], tmp_path / "run")
    for name in ("statistics.json", "manifest.json"):
        (run / name).chmod(0o644)
    document = json.loads((run / "statistics.json").read_bytes())
    for rows in document["domains"].values():
        for row in rows:
            del row["n_common"]
    (run / "statistics.json").write_bytes(canonical(document) + b"\n")
    reseal(run)
    assert "n_common" in verify(run).first_mismatch
    manifest = json.loads((run / "manifest.json").read_bytes())
    manifest["code"] = {"version": "0.0.9", "commit": None}
    (run / "manifest.json").chmod(0o644)
    (run / "manifest.json").write_bytes(canonical(manifest) + b"\n")
    reseal(run)
    assert verify(run).ok
    document["domains"]["overall"][0]["score"] += 0.01
    (run / "statistics.json").chmod(0o644)
    (run / "statistics.json").write_bytes(canonical(document) + b"\n")
    reseal(run)
    assert "was sealed" in verify(run).first_mismatch


def test_a_changed_page_of_a_publication_is_named(sealed, tmp_path):
    site = copy(sealed[1], tmp_path / "site")
    page = next(site.glob("p/*/leads/index.html"))
    page.write_text(page.read_text().replace("rank 1", "rank 2", 1) + " ")
    assert "leads/index.html" in verify(site).first_mismatch


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(InputError, match="neither a run"):
        verify(tmp_path)
    with pytest.raises(InputError):
        verify(tmp_path / "nowhere")


def tree(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_publishing_twice_changes_nothing_and_equal_data_give_equal_trees(sealed, tmp_path):
    run, first = sealed
    site = copy(first, tmp_path / "site")
    before = tree(site)
    with pytest.raises(GateError, match="never change"):
        medassay.publish(run, site)
    assert before == tree(site)
    medassay.publish(run, tmp_path / "again")
    assert tree(tmp_path / "again" / "p") == tree(site / "p")
    published = tree(site / "p")
    medassay.publish(run, site, publication="second")
    assert {k: v for k, v in tree(site / "p").items() if k in published} == published
    log = (site / "log.jsonl").read_bytes()
    assert log.startswith(before[Path("log.jsonl")])
    assert log.count(b"\n") == 2
    assert verify(site).ok


def test_a_folder_that_holds_something_else_is_no_place_for_a_site(sealed, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site/mine.txt").write_text("mine")
    with pytest.raises(GateError, match=r"holds other files \(mine\.txt\)"):
        medassay.publish(sealed[0], tmp_path / "site")
    assert [path.name for path in (tmp_path / "site").iterdir() if path.name[0] != "."] == [
        "mine.txt"
    ]


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_first_page_of_somebody_else_is_not_overwritten(sealed, tmp_path, kind):
    site, mine = tmp_path / "site", tmp_path / "mine"
    site.mkdir()
    mine.write_text("my own page")
    page = site / "index.html"
    page.write_text("my own page") if kind == "file" else page.symlink_to(mine)
    with pytest.raises(GateError, match=r"holds other files \(index.html\)"):
        medassay.publish(sealed[0], site, publication="first")
    assert page.read_text() == mine.read_text() == "my own page"


def test_a_publication_that_is_refused_leaves_no_empty_folder(sealed, tmp_path):
    board = tmp_path / "board.toml"
    board.write_text('title = "T"\n')
    with pytest.raises(InputError):
        medassay.publish(sealed[0], tmp_path / "site", about=About(board=board))
    assert not (tmp_path / "site" / "p").exists()


def test_a_publication_that_was_killed_before_its_line_is_finished_by_the_same_call(
    sealed, tmp_path, monkeypatch
):
    run, _ = sealed

    def killed(*_):
        raise SystemExit

    for last in ("_open_to_all", "record_publication"):  # what it did not come to any more
        site = tmp_path / last
        monkeypatch.setattr(f"medassay.publishing.publish.{last}", killed)
        with pytest.raises(SystemExit):
            medassay.publish(run, site, publication="first")
        monkeypatch.undo()
        page = medassay.publish(run, site, publication="first")
        assert page == site / "p/first/index.html"
        assert page.stat().st_mode & 0o777 == 0o444
        assert verify(site).ok
        with pytest.raises(GateError, match="never change"):
            medassay.publish(run, site, publication="first")


def test_what_a_killed_publication_left_is_made_anew_as_it_is_asked_for_now(
    sealed, tmp_path, monkeypatch
):
    run, site = sealed[0], tmp_path / "site"

    def killed(*_):
        raise SystemExit

    with monkeypatch.context() as patched, pytest.raises(SystemExit):
        patched.setattr("medassay.publishing.publish.record_publication", killed)
        medassay.publish(run, site, publication="first")
    page = medassay.publish(run, site, publication="first", about=About(language="de"))
    assert 'lang="de"' in page.read_text(encoding="utf-8")
    assert verify(site).ok


def test_what_must_not_become_public_is_refused_and_nothing_is_written(tmp_path):
    makers.write_bank(tmp_path / "leak", makers.law_items(), name="leak")
    makers.write_models(tmp_path, makers.fake(reply="my key is sk-" + "a1" * 15))
    run = medassay.run(makers.write_plan(tmp_path, banks=["leak"]), secrets={})
    with pytest.raises(GateError, match="line 1: looks like a secret"):
        medassay.publish(run, tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_a_secret_far_down_in_a_file_is_named_with_its_line(tmp_path):
    items = makers.many_items(60)
    items[49]["question"] += " My key is sk-" + "a1" * 15
    plan = makers.workspace(tmp_path, items, makers.fake(letters="hash"))
    run = medassay.run(plan, secrets={})
    with pytest.raises(GateError, match=r"items\.jsonl line 50: looks like a secret"):
        medassay.publish(run, tmp_path / "site")


@pytest.mark.parametrize(
    "secret",
    [
        "sk-" + "a1" * 10,
        "ghp_" + "A" * 30,
        "hf_" + "b" * 30,
        "AKIA" + "0Z" * 8,
        "AIza" + "_-x4y" * 7,
        "xoxb-" + "1" * 10,
    ],
)
def test_a_secret_is_found_between_other_words_but_not_inside_one(secret):
    assert all(has_secret(f"{a}{secret}{b}".encode()) for a in '" -' for b in '" .')
    assert not has_secret(f"x{secret}".encode())
    assert not has_secret(secret[:-10].encode())


def test_a_damaged_run_is_not_published(sealed, tmp_path):
    run = copy(sealed[0], tmp_path / "run")
    (run / "trials.jsonl").write_bytes((run / "trials.jsonl").read_bytes()[:-5] + b"xxxx\n")
    with pytest.raises(IntegrityError, match=r"trials\.jsonl"):
        medassay.publish(run, tmp_path / "site")


def test_verdicts_on_answers_that_nobody_gave_are_found(tmp_path):
    """They have no score, and would count in the agreement of judges."""
    judges = makers.judges()
    makers.write_bank(tmp_path / "bank", makers.open_items(6))
    makers.write_models(tmp_path, makers.fake("m", reply="Duty."), *judges)
    plan = makers.write_plan(tmp_path, judges=[one["id"] for one in judges], task="open")
    run = copy(medassay.run(plan, secrets={}).path, tmp_path / "forged")
    assert verify(run).ok
    verdicts = (run / "verdicts.jsonl").read_bytes()
    last = verdicts.splitlines()[-len(judges) :]
    again = (line.replace(b'"repeat":0', b'"repeat":1') for line in last)
    (run / "verdicts.jsonl").write_bytes(verdicts + b"".join(line + b"\n" for line in again))
    reseal(run)
    assert "no judge was to be asked about" in verify(run).first_mismatch


@pytest.mark.parametrize("error", [ZeroDivisionError, RuntimeError, RecursionError])
def test_numbers_that_cannot_be_computed_from_what_is_there_are_a_mismatch(error):
    def step():
        raise error("x")

    report = VerificationReport()
    assert not report.check("content", step)
    assert error.__name__ in report.first_mismatch
