"""What each page of the viewer shows."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

import jinja2
import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from medassay.core.catch import caught
from medassay.core.json import record_as
from medassay.core.records.answer import OUTCOMES
from medassay.core.records.statistics import OVERALL, LeaderboardRow
from medassay.core.records.trial import TrialKey
from medassay.core.records.verdict import StoredVerdict
from medassay.errors import InputError, UsageError
from medassay.kinds.catalog import presentations
from medassay.kinds.shown_answer import parts_shown, whole_item
from medassay.publishing.proof import prove
from medassay.report.judge_graph import drawings
from medassay.report.pages.html import environment_of
from medassay.viewer.entry import GRADES
from medassay.viewer.groups import failures_by_kind, unread_by_shape, wrong_options
from medassay.viewer.place import ViewedPlace, ViewedRun
from medassay.viewer.prompts import SentMessages
from medassay.viewer.search import PAGE_SIZE, SORTS, find_trials, read_filter
from medassay.viewer.side_by_side import (
    PAIRS_A_PAGE,
    VERDICTS,
    DiffPart,
    RunRow,
    compare_rows,
    differences,
    rows_of,
)
from medassay.viewer.standings import standings
from medassay.viewer.trial import TrialDetail, neighbours, trial_detail, trial_rows

_SHOWN = 200_000  # characters of a reply on a page; the whole of it is a file
_PLACE = ("domain", "model", "setting", "mode", "item", "repeat")
_MOMENT = 2_000_000  # bytes that are indexed within a second
_LONG_LIST = 2_000  # choices of one field; beyond, the name is typed


class _VerdictLine(StoredVerdict, frozen=True, kw_only=True):
    """A line of verdicts.jsonl with its requests: hashes of what was asked, seconds, tokens."""

    prompt_sha256: list[str] = msgspec.field(default_factory=list)
    seconds: list[float] | None = None
    usage: list[dict[str, int]] | None = None


class _ComparedRows(msgspec.Struct, frozen=True):
    """Which rows an address compares, and which pairs of their answers it shows."""

    a: str = ""
    b: str = ""
    show: str = ""
    domain: str = ""
    page: str = "1"


class _ShownVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict with what was asked for it: one entry a request."""

    verdict: StoredVerdict
    sent: Sequence[SentMessages]
    seconds: Sequence[float]
    usage: Sequence[Mapping[str, int]]


class _ShownPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two answers to one item, each with the pieces of its text."""

    item: Mapping[str, Any]
    sides: Sequence[tuple[TrialDetail, Sequence[DiffPart]]]


@lru_cache(maxsize=1)
def _templates() -> jinja2.Environment:
    jinja = environment_of(("medassay.web.viewer", "templates"))
    jinja.filters["query"] = urlencode
    jinja.globals.update(
        GRADES=GRADES, OUTCOMES=OUTCOMES, SORTS=SORTS, VERDICTS=VERDICTS, PAGE_SIZE=PAGE_SIZE
    )
    return jinja


def _place(request: Request) -> ViewedPlace:
    place: ViewedPlace = request.app.state.place
    return place


def _run(request: Request) -> ViewedRun:
    return _place(request).open(request.path_params["run"])


def _page(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    # Of a run that is not here there are no pages to lead to.
    run_name = request.path_params.get("run", "")
    text = (
        _templates()
        .get_template(template)
        .render(
            request=request,
            name=run_name if run_name in _place(request).names() else "",
            place=_place(request),
            **values,
        )
    )
    return HTMLResponse(text, status_code=status)


def error_page(request: Request, status: int, message: str) -> HTMLResponse:
    """Return the page of an error."""
    return _page(request, "error.html", status, message=message, code=status)


def runs(request: Request) -> Response:
    """Show the runs of the workspace; of one run alone go to it."""
    place = _place(request)
    if place.only:
        return RedirectResponse(f"/run/{quote(place.only)}/", status_code=303)
    summaries = place.summaries()
    return _page(request, "runs.html", runs=summaries, live=any(run.live for run in summaries))


def keys(request: Request) -> Response:
    """Show the keys."""
    return _page(request, "keys.html")


def run(request: Request) -> Response:
    """Show one run: what it is, how far, what it cost, what failed, and how its models stand."""
    viewed = _run(request)
    summary = _place(request).summary(request.path_params["run"])
    manifest = viewed.run.manifest
    return _page(
        request,
        "run_overview.html",
        summary=summary,
        manifest=manifest,
        viewed=viewed,
        reading=_reading(viewed),
        rows=_ranking(viewed),
        standings=() if viewed.index.sealed else standings(viewed.index),
        failures=failures_by_kind(viewed.index)[:10],
        live=summary.live,
    )


def _ranking(viewed: ViewedRun) -> Sequence[LeaderboardRow]:
    """Return the rows of a sealed run, none of one whose statistics cannot be read: the list says
    why.
    """
    if not viewed.index.sealed:
        return ()
    with caught():
        return viewed.run.statistics.rows(OVERALL)
    return ()


def trials(request: Request) -> Response:
    """Show a table of trials, filtered and sorted."""
    viewed = _run(request)
    index = viewed.index
    wish = read_filter(request.query_params)
    page = find_trials(index, wish)
    names = {kind: index.names(kind) for kind in ("model", "domain", "setting", "mode", "reason")}
    return _page(
        request,
        "trials.html",
        wish=wish,
        names=names,
        long_list=_LONG_LIST,
        total=page.total,
        rows=trial_rows(index, page.numbers),
        number=page.page,
        pages=page.n_pages,
        judged=bool(viewed.run.manifest.bench),
        reading=_reading(viewed),
        error=index.error,
        live=not index.sealed,
    )


def _reading(viewed: ViewedRun) -> tuple[int, int] | None:
    """Return how many bytes are indexed and how many there are, None where all are but what came
    in the last moment.
    """
    read, size = viewed.index.progress()
    return None if size - read < _MOMENT else (read, size)


def _trial(request: Request, viewed: ViewedRun) -> TrialDetail:
    query = request.query_params
    for key in _PLACE[:5]:
        if key not in query:
            raise UsageError(f"the address names no {key}; expected {', '.join(_PLACE)}")
    repeat = query.get("repeat", "0")
    if not (repeat.isascii() and repeat.isdigit() and len(repeat) < 7):
        raise UsageError(f"the address: repeat '{repeat:.40}'; expected a whole number from 0")
    domain, model, setting, mode, item = (query[key] for key in _PLACE[:5])
    place: TrialKey = (domain, model, setting, mode, item, int(repeat))
    return trial_detail(viewed.index, viewed.index.number_at(place))


def trial(request: Request) -> Response:
    """Show one trial detail."""
    viewed = _run(request)
    detail = _trial(request, viewed)
    line = detail.trial
    record = viewed.prompts.items.record(line.domain, line.item)
    views = [view for presentation in presentations().values() for view in presentation.views]
    reply_text, with_thoughts = detail.reply
    return _page(
        request,
        "trial.html",
        detail=detail,
        row=detail.row,
        item=whole_item(record),
        trial=detail.document,
        parts=parts_shown(views, record, detail.document),
        reply=reply_text[:_SHOWN],
        thoughts=with_thoughts[:_SHOWN],
        cut_short=max(len(reply_text), len(with_thoughts)) > _SHOWN,
        sent=viewed.prompts.of_trial(line, detail.document.get("prompt_sha256", "")),
        judged=_judged(viewed, detail),
        verdicts=[v for v in detail.verdicts if "tombstone" not in v],
        drawings=drawings(viewed.run.manifest.graphs),
        others=neighbours(viewed.index, detail.row),
        scale=viewed.index.maker.scale_of(detail.row.scorer).ends,
        currency=viewed.index.maker.currency_of(line.model),
        sealed=viewed.index.sealed,
        live=False,
        stepping=_stepping(request, viewed, detail),
    )


def _stepping(request: Request, viewed: ViewedRun, detail: TrialDetail) -> Mapping[str, str]:
    """Return the addresses of the trials before and after in the order of the run."""
    steps = {}
    for name, comparison in (("previous", "< ? ORDER BY n DESC"), ("next", "> ? ORDER BY n")):
        rows = viewed.index.rows(
            f"SELECT n FROM trial WHERE n {comparison} LIMIT 1", detail.row.number
        )
        if rows:
            [other] = trial_rows(viewed.index, [rows[0][0]], excerpts=False)
            steps[name] = f"trial?{urlencode(dict(zip(_PLACE, other.place, strict=True)))}"
    return steps


def _judged(viewed: ViewedRun, detail: TrialDetail) -> list[_ShownVerdict]:
    """Return each verdict with the messages and the raw reply of every request for it."""

    def trial_at(place: TrialKey) -> Any:
        if place == detail.trial.place:
            return detail.trial
        return trial_detail(viewed.index, viewed.index.number_at(place)).trial

    verdicts = [record_as(line, _VerdictLine, "verdicts.jsonl") for line in detail.verdicts]
    return [
        _ShownVerdict(
            verdict=verdict,
            sent=viewed.prompts.of_judge(verdict, verdict.prompt_sha256, trial_at),
            seconds=verdict.seconds or (),
            usage=verdict.usage or (),
        )
        for verdict in verdicts
    ]


def reply(request: Request) -> Response:
    """Return the whole reply of a trial as a text file."""
    detail = _trial(request, _run(request))
    return PlainTextResponse(
        (detail.trial.text or "").encode("utf-8", "replace"),
        headers={"content-disposition": 'attachment; filename="reply.txt"'},
    )


def record(request: Request) -> Response:
    """Return the lines of a trial, its score and its verdicts as JSON."""
    detail = _trial(request, _run(request))
    document = {
        "schema_version": 1,
        "sha256": detail.sha256,
        "trial": detail.document,
        "score": detail.score,
        "verdicts": detail.verdicts,
    }
    text = json.dumps(document, ensure_ascii=False, indent=1)
    return Response(text.encode("utf-8", "replace"), media_type="application/json")


def proof(request: Request) -> Response:
    """Show what proves a trial of a sealed run: the way from its hash to the root."""
    viewed = _run(request)
    detail = _trial(request, viewed)
    if not viewed.index.sealed:
        raise InputError(f"run {viewed.run.id}: not sealed yet; a proof leads to the seal")
    report, chain = prove(viewed.run.path, detail.sha256)
    return _page(request, "proof.html", report=report, chain=chain, row=detail.row, live=False)


def compare(request: Request) -> Response:
    """Show two models side by side on the same items."""
    viewed = _run(request)
    index, query = viewed.index, msgspec.convert(dict(request.query_params), _ComparedRows)
    rows = rows_of(index)
    if len(rows) < 2:
        return _page(request, "compare_rows.html", rows=rows, pairs=None, live=not index.sealed)
    a = _row(query.a, rows, rows[0])
    # Most want two models under one setting.
    others = sorted((row for row in rows if row != a), key=lambda row: row[1:] != a[1:])
    b = _row(query.b, rows, others[0])
    verdict, domain = query.show, query.domain
    if verdict and verdict not in VERDICTS:
        raise UsageError(f"the address: show '{verdict:.40}'; expected {', '.join(VERDICTS)}")
    number = read_filter({"page": query.page}).number
    pairs = compare_rows(index, a, b, verdict=verdict, domain=domain, page=number)
    total = pairs.counts[verdict] if verdict else pairs.n_pairs
    return _page(
        request,
        "compare_rows.html",
        rows=rows,
        a=a,
        b=b,
        show=verdict,
        domain=domain,
        domains=index.names("domain"),
        n_pairs=pairs.n_pairs,
        counts=pairs.counts,
        total=total,
        number=number,
        pages=max(1, -(-total // PAIRS_A_PAGE)),
        pairs=_pairs(viewed, pairs.page),
        live=not index.sealed,
    )


def _row(text: str, rows: Sequence[RunRow], default: RunRow) -> RunRow:
    if not text:
        return default
    row = next((row for row in rows if str(row) == text or row.model == text), None)
    if row is None:
        raise InputError(f"no row '{text:.80}' in this run; expected one of those in the form")
    return row


def _pairs(viewed: ViewedRun, numbers: Sequence[tuple[int, int]]) -> list[_ShownPair]:
    pairs = []
    for number_a, number_b in numbers:
        a, b = trial_detail(viewed.index, number_a), trial_detail(viewed.index, number_b)
        texts = differences(a.reply[0][:_SHOWN], b.reply[0][:_SHOWN])
        record_of_item = viewed.prompts.items.record(a.trial.domain, a.trial.item)
        sides = ((a, texts[0]), (b, texts[1]))
        pairs.append(_ShownPair(item=whole_item(record_of_item), sides=sides))
    return pairs


def failures(request: Request) -> Response:
    """Show what went wrong, in groups."""
    viewed = _run(request)
    index = viewed.index
    return _page(
        request,
        "failures.html",
        failed=failures_by_kind(index),
        unread=unread_by_shape(index),
        wrong=wrong_options(index),
        reading=_reading(viewed),
        live=not index.sealed,
    )
