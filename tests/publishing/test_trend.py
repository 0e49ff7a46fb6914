import json
import re
from itertools import pairwise

import pytest
from tests import makers

import medassay
from medassay.core.canonical import canonical
from medassay.publishing.publish import About
from medassay.publishing.verify import verify


def publish(folder, name, models, *, bank="bank", reason="", **plan):
    makers.write_models(folder, *(makers.fake(m, letters="hash", salt=name + m) for m in models))
    wanted = {"banks": [bank], "models": list(models), **plan}
    run = medassay.run(makers.write_plan(folder, **wanted), secrets={})
    medassay.publish(run, folder / "site", publication=name, about=About(reason=reason))
    return run


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trend")
    makers.write_bank(folder / "bank", makers.many_items(20))
    makers.write_bank(folder / "newer", makers.many_items(24), question_bank_version="law-2026.2")
    publish(folder, "p1", ["a", "b"])
    publish(folder, "p2", ["a", "b", "c"])
    publish(folder, "p3", ["a", "b"], bank="newer", reason="four items were added")
    publish(folder, "p4", ["a", "b"], bank="newer")
    publish(folder, "p5", ["a", "b"], bank="newer", extraction="paper")
    return folder / "site"


def trend(site, name):
    return json.loads((site / "p" / name / "data/trend.json").read_text())


def test_every_publication_adds_its_points_and_old_ones_stay_under_their_series(site):
    last = trend(site, "p5")
    assert [entry["publication"] for entry in last["series"]] == [f"p{n}" for n in range(1, 6)]
    ids = [entry["id"] for entry in last["series"]]
    assert ids[0] == ids[1]  # a further model begins no series
    assert ids[2] == ids[3]
    assert len(set(ids)) == 3
    assert trend(site, "p2")["points"] == last["points"][:5]
    one, two = last["markers"]
    assert one == {
        "publication": "p3",
        "what": "question bank law-2026.1 → law-2026.2",
        "reason": "four items were added",
    }
    assert (two["publication"], two["reason"]) == ("p5", "")
    assert re.fullmatch(r"methodology \w{12} → \w{12}", two["what"])
    page = (site / "p/p5/trend/index.html").read_text()
    assert page.count("data-marker=") == 2
    assert "four items were added" in page


def test_no_line_of_the_figure_crosses_a_marker(site):
    svg = (site / "p/p5/figure/trend.svg").read_text()
    markers = [
        float(found)
        for found in re.findall(
            r'<line [^>]*transform="translate\(([\d.]+),0\)[^>]*stroke-dasharray', svg
        )
    ]
    assert len(markers) == 2
    paths = re.findall(r'aria-roledescription="line mark"[^>]* d="(M[^"]+)"', svg)
    assert len(paths) >= 2
    drawn = 0
    for path in paths:
        xs = [float(x) for x in re.findall(r"[ML]([\d.]+),", path)]
        for one, other in pairwise(xs):
            drawn += 1
            assert not any(min(one, other) < at - 0.01 < max(one, other) for at in markers)
    assert drawn >= 4


def test_a_forged_point_is_found(site, tmp_path):
    from tests.publishing.tampering import copy

    forged = copy(site, tmp_path / "site")
    assert verify(forged).checks[-1]["detail"] == "5 publications, 2 changes of series"
    path = forged / "p/p5/data/trend.json"
    document = trend(forged, "p5")
    document["points"][0]["score"] = 0.99
    path.write_bytes(canonical(document) + b"\n")
    found = verify(forged)
    assert "data/trend.json" in found.first_mismatch
    from medassay.publishing.verify import _check_trends

    with pytest.raises(Exception, match=r"p/p5/data/trend\.json"):
        _check_trends(forged)


def test_the_pages_of_bank_and_pairs(site):
    page = (site / "p/p3/bank/law-2026.2/index.html").read_text()
    for says in ("CC0-1.0", "24 items in this version", "24 asked here", "Question number 0?"):
        assert says in page
    assert "figure/bank-law-2026.2.svg" in page
    page = (site / "p/p1/compare/index.html").read_text()
    assert page.count("data-pair=") in (0, 1)


def test_scores_on_another_scale_never_stand_in_one_figure(tmp_path):
    """A site may publish accuracies and grades from 0 to 10: each in its own units, none beside the
    other.
    """
    makers.write_bank(tmp_path / "bank", makers.many_items(12))
    publish(tmp_path, "closed", ["a"])
    makers.write_bank(tmp_path / "open", makers.open_items(12), name="open")
    judge = makers.judges()[0]
    judge["script"] = {"reply": "question_id,score\nq,7"}
    makers.write_models(tmp_path, makers.fake("a", reply="Duty."), judge)
    plan = makers.write_plan(
        tmp_path, banks=["open"], models=["a"], judges=[judge["id"]], task="g_eval_single"
    )
    run = medassay.run(plan, secrets={})
    [row] = run.statistics.document["domains"]["overall"]
    assert row["scale"] == [0, 10]
    medassay.publish(run, tmp_path / "site", publication="graded")
    svg = (tmp_path / "site/p/graded/figure/trend.svg").read_text()
    assert "closed" not in svg
    page = (tmp_path / "site/p/graded/trend/index.html").read_text()
    assert "accuracy" in page
    old = trend(tmp_path / "site", "closed")["points"][0]
    assert f"{100 * old['score']:.1f} <span" in page
    assert verify(tmp_path / "site").ok
