"""Every figure: a valid specification, the same bytes twice, words for those who cannot see it."""

import re

import pytest
from tests import makers

import medassay
from medassay.errors import InputError
from medassay.report.plot.bars import Bar, ScoreChange, StackedCount
from medassay.report.plot.catalog import PLOTS
from medassay.report.plot.figure import _DARK, _LIGHT, _STAND_INS
from medassay.report.plot.forest import NamedCorrelation, NamedDifference
from medassay.report.plot.items import ItemPosition
from medassay.report.plot.matrix import GridCell, MetricRank
from medassay.report.plot.panels import PanelBar
from medassay.report.plot.points import CasePoint, PlanePoint, SwarmPoint
from medassay.report.plot.positions import PositionPoint
from medassay.report.plot.reviews import MonthPoint
from medassay.report.plot.trend import LinePoint, SeriesPoint

HOSTILE = '<script>alert("x")</script>\x1b[31m\x08\uffff'
POINTS = [
    SeriesPoint(place=p, row=m, series=s, score=v, lo=v - 0.05, hi=v + 0.05)
    for p, s, v in (("p1", "x", 0.5), ("p2", "x", 0.6), ("p3", "y", 0.4))
    for m in ("one", HOSTILE)
]
MADE = {
    "agreement": lambda plot: plot(
        [
            NamedCorrelation(name=n, r=0.4, lo=lo, hi=0.6)
            for n, lo in (("one", 0.1), (HOSTILE, -0.1))
        ],
        unit="Pearson's r",
    ),
    "bars": lambda plot: plot(
        [Bar(place=d, group=HOSTILE, score=0.5, lo=0.4, hi=0.7, n=9) for d in ("a", "b")],
        by="domain",
        group="model",
        unit="%",
        factor=100,
    ),
    "before_after": lambda plot: plot([ScoreChange(row=HOSTILE, before=0.4, after=0.5)], unit="%"),
    "case_density": lambda plot: plot(
        [(n / 90, -n / 80) for n in range(70)],
        x="x",
        y="y",
        names=["a", "b", "c", "d"],
    ),
    "case_quadrant": lambda plot: plot(
        [
            CasePoint(
                x=0.1,
                y=-0.3,
                case=HOSTILE,
                label=HOSTILE,
                says=HOSTILE,
                href="../case/a/index.html#b",
            ),
            CasePoint(x=0.4, y=0.3, case="two", label="two", says="b", href="../c/index.html"),
        ],
        x="x",
        y="y",
        names=["a", "b", "c", "d"],
        limit=1.1,
    ),
    "checkpoint_curve": lambda plot: plot(
        [
            LinePoint(row=row, place=step, score=score, lo=score - 0.1, hi=score + 0.1)
            for row in (HOSTILE, "exam")
            for step, score in ((1000, 0.4), (2000, 0.6))
        ],
        series=HOSTILE,
    ),
    "forest": lambda plot: plot(
        [
            NamedDifference(
                name=f"one − {HOSTILE}", diff=d, lo=d - 0.1, hi=d + 0.1, different=d > 0.1
            )
            for d in (0.05, 0.2)
        ],
        unit="points",
        factor=100,
    ),
    "heat_map": lambda plot: plot(
        ["one", HOSTILE, "three"],
        [[1.0, None, 0.5], [None, 1.0, None], [0.5, None, 1.0]],
        order=[1, 0, 2],
        merges=[(0, 2, 0.5), (1, 3, 1.0)],
        linkage="average",
    ),
    "item_map": lambda plot: plot(
        [
            ItemPosition(item=HOSTILE, difficulty=0.5, discrimination=d, suspect=d < 0)
            for d in (-0.2, 0.4)
        ]
    ),
    "panels": lambda plot: plot(
        [
            PanelBar(measure=m, model=who, beside=s, score=3.0, lo=2.0, hi=4.0)
            for m in ("accuracy", "judge")
            for who in ("one", HOSTILE)
            for s in ("zero_shot", "rag")
        ],
        {"accuracy": "accuracy, %", "judge": "judge"},
    ),
    "positions": lambda plot: plot(
        [
            PositionPoint(row=m, place=at, score=-9.0 - at, lo=lo, hi=hi, n=9 - at)
            for m in ("one", HOSTILE)
            for at, lo, hi in ((0, -9.5, -8.0), (8, None, None))
        ],
        unit="nats",
    ),
    "quadrant": lambda plot: plot(
        [
            PlanePoint(label=HOSTILE, x=0.1, y=-0.3, x_ends=(0, 0.2), y_ends=(-0.5, 0)),
            PlanePoint(label="two", x=0.4, y=0.3),
        ],
        x="x",
        y="y",
        names=["a", "b", "c", "d"],
    ),
    "rank_flow": lambda plot: plot(
        [MetricRank(model=HOSTILE, metric=m, rank=r) for m, r in (("a", 1), ("b", 2))],
        ["a", "b"],
    ),
    "review_trend": lambda plot: plot(
        [
            MonthPoint(place=m, row=HOSTILE, score=4.0, lo=3.5, hi=4.5, reviews=3)
            for m in ("2026-01", "2026-02")
        ],
        aspect="question",
    ),
    "score_grid": lambda plot: plot(
        [GridCell(row=HOSTILE, column=c, value=v) for c, v in (("a", 0.0), ("b", 1.0))],
        unit="likeness",
    ),
    "stacked": lambda plot: plot(
        [StackedCount(place=str(y), part=HOSTILE, n=y - 2000) for y in (2020, 2021)],
        over="year",
        by="category",
    ),
    "trend": lambda plot: plot(POINTS, ["p3"], unit="%", factor=100),
    "violin_swarm": lambda plot: plot(
        [
            SwarmPoint(group=g, value=n / 12, jitter=(n % 3 - 1) / 2)
            for g, k in (("many", 12), ("few", 4))
            for n in range(k)
        ],
        value="score",
        bandwidth=0.1,
        extent=(0, 1),
    ),
}


def test_every_plot_is_tried_here():
    assert MADE.keys() == PLOTS.keys()


@pytest.mark.parametrize("name", list(MADE))
def test_a_figure_is_valid_stable_and_says_what_it_shows(name, tmp_path):
    figure, again = MADE[name](PLOTS[name]), MADE[name](PLOTS[name])
    for dark in (False, True):
        import altair

        altair.Chart.from_dict(figure.specification(dark=dark))
        drawn = figure.svg(dark=dark)
        assert drawn == again.svg(dark=dark)
        assert f"<title>{figure.title}</title><desc>" in drawn
        assert "<script" not in drawn
        assert " style=" not in drawn  # the content policy blocks it
        assert not re.search(r"https?://(?!www\.w3\.org)", drawn)
    assert figure.caption
    assert figure.columns.keys() <= set().union(*figure.rows)
    assert figure._repr_svg_() == figure.svg()
    for ending, magic in ((".svg", b"<svg"), (".png", b"\x89PNG"), (".pdf", b"%PDF")):
        assert figure.save(tmp_path / f"x{ending}").read_bytes().startswith(magic)
    with pytest.raises(InputError, match=r"ends in \.svg"):
        figure.save(tmp_path / "x.gif")


@pytest.mark.parametrize("name", list(MADE))
def test_a_figure_drawn_once_is_in_either_scheme_what_drawing_it_in_that_scheme_gives(
    name, monkeypatch
):
    monkeypatch.setattr(f"{__name__}.HOSTILE", f'{_STAND_INS.text} fill="{_STAND_INS.back}">')
    figure = MADE[name](PLOTS[name])
    drawn = [figure.svg(dark=dark) for dark in (False, True)]
    for theme, svg in zip((_LIGHT, _DARK), drawn, strict=True):
        monkeypatch.setattr("medassay.report.plot.figure._STAND_INS", theme)
        assert MADE[name](PLOTS[name]).svg() == svg


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_colours_stand_out_from_their_background():
    for dark, theme in ((False, _LIGHT), (True, _DARK)):
        back = luminance(theme.back)
        for colour, least in [(theme.text, 4.5), *((c, 3) for c in theme.series)]:
            light, low = max(luminance(colour), back), min(luminance(colour), back)
            assert (light + 0.05) / (low + 0.05) >= least, (dark, colour)


def test_the_report_draws_what_the_board_shows(tmp_path, cli):
    rows = ["item,model,domain,prediction,key"]
    for n in range(30):
        rows += [f"q{n:02},good,d,A,A", f"q{n:02},bad,d,{'A' if n % 3 else 'B'},A"]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    names = {n: n for n in rows[0].split(",")}
    run = medassay.import_predictions(tmp_path / "t.csv", names, runs=tmp_path)
    medassay.publish(run, tmp_path / "site", publication="x")
    code, shown, _ = cli("report", run.path, "--figure", "forest", "--to", tmp_path / "f.svg")
    assert code == 0
    assert "A difference is shown for 1 of 1 pair;" in shown
    board = (tmp_path / "site/p/x/figure/forest-solo.svg").read_text()
    assert (tmp_path / "f.svg").read_text() == board
    assert cli("report", run.path, "--figure", "forest", "--to", tmp_path / "f.svg")[0] == 3
    assert medassay.figure(run).svg() == board
    assert len(medassay.figure(run, "bars").rows) == 2
    assert cli("report", run.path, "--figure", "pie", "--to", tmp_path / "g.svg")[0] == 3
    assert cli("report", run.path, "--figure", "bars")[0] == 2
    page = (tmp_path / "site/p/x/compare/index.html").read_text()
    assert 'data-pair="good − bad"' in page


def test_without_the_extra_pages_say_what_draws_figures(tmp_path, monkeypatch):
    monkeypatch.setattr("medassay.report.pages.figures.drawable", lambda: False)
    makers.write_bank(tmp_path / "bank", makers.many_items(12))
    makers.write_models(tmp_path, makers.fake(letters="hash"))
    run = medassay.run(makers.write_plan(tmp_path), secrets={})
    medassay.publish(run, tmp_path / "site", publication="x")
    drawn = [path for path in (tmp_path / "site").rglob("*.svg") if path.name != "icon.svg"]
    assert not drawn
    assert "medassay[figures]" in (tmp_path / "site/p/x/trend/index.html").read_text()
    assert medassay.verify(tmp_path / "site").ok


def test_counts_of_thousands_are_whole_numbers_and_no_two_categories_share_a_colour():
    counts = [
        StackedCount(place=str(year), part=f"category {n:02}", n=100 * (n + 1))
        for year in (2020, 2021)
        for n in range(27)
    ]
    figure = PLOTS["stacked"](counts, over="year", by="category")
    drawn = figure.svg()
    assert "e+" not in re.sub(r"<style.*?</style>", "", drawn)
    assert re.search(r">\d\d?,000<", drawn)
    assert len({row["category"] for row in figure.rows}) == 8
    assert sum(row["n"] for row in figure.rows) == sum(count.n for count in counts)
    assert "20 others" in drawn
    assert figure.caption.endswith("The 7 largest of 27 are told apart.")


def test_a_bar_without_an_interval_is_drawn_without_a_line():
    figure = PLOTS["bars"](
        [Bar(place="a", group="m", score=0.5, lo=None, hi=None, n=1)],
        by="domain",
        group="model",
        unit="%",
        factor=100,
    )
    [row] = figure.rows
    assert (row["lo"], row["score"], row["hi"]) == (None, 50, None)
    assert "<svg" in figure.svg()


@pytest.mark.parametrize("n_rows", [8, 9, 40, 41])
def test_more_lines_than_colours_get_a_panel_each(n_rows):
    from medassay.report.plot.trend import SeriesPoint, trend

    points = [
        SeriesPoint(place=place, row=f"m{n:02}", series="s", score=n / 50, lo=None, hi=None)
        for n in range(n_rows)
        for place in ("one", "two")
    ]
    figure = trend(points, [], unit="Accuracy in %", factor=100)
    assert ("facet" in figure.spec) == (n_rows > 8)
    assert len({row["row"] for row in figure.rows}) == min(n_rows, 40)
    assert ("in the table alone: m00." in figure.caption) == (n_rows == 41)
    svg = figure.svg()
    assert all(f">m{n:02}<" in svg for n in range(n_rows - min(n_rows, 40), n_rows))
    assert "Accuracy in %" in svg
