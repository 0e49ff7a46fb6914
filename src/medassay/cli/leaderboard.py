"""Leaderboards in the terminal: rows, what they say in a sentence, and what is told beside them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from medassay.cli import location
from medassay.cli.output import out, table_width
from medassay.core.scale import scale_text, units
from medassay.core.table import Table
from medassay.core.wording import counted

if TYPE_CHECKING:
    from medassay.core.records.leaderboard import Leaderboard
    from medassay.core.records.relations import SmallDomain
    from medassay.core.records.statistics import LeaderboardRow, Statistics
    from medassay.core.records.statistics_object import StatisticsObject
    from medassay.storage.run import Run
    from medassay.summary.breakdown import GroupScore


def tell_run(run: "Run", more: Iterable[str] = ()) -> None:
    """Print the overall ranking and the place of a run that was just sealed.

    Parameters
    ----------
    more : further lines for people
    """
    from medassay.kinds.results import leaderboard

    board = leaderboard(run)
    place = location.location_text(run.path)
    lines = []
    if deleted := run.manifest.deleted_items:
        lines.append(
            f"{counted(len(deleted), 'item')} of the run before"
            f" {'was' if len(deleted) == 1 else 'were'} deleted by law: not scored, not counted"
        )
    out.tell(
        {"run": run.id, "path": place, "domains": board.domains},
        leaderboard_parts(board, run, "overall"),
        *lines,
        f"run {place}",
        more,
    )


def leaderboard_parts(board: "Leaderboard", run: "Run", domain: str) -> Iterator[str | Table]:
    """Yield one ranking as a table, with what a reader must know beside it."""
    from medassay.core.records.statistics import Statistics

    document: StatisticsObject = {**run.statistics.document, "domains": board.domains}
    if board.ddx is not None:
        document["ddx"] = board.ddx
    statistics = Statistics(document)
    for of_metric in statistics.by_metric:
        if domain in of_metric.domains:
            yield from _ranking_parts(of_metric, run, domain)


def _ranking_parts(statistics: "Statistics", run: "Run", domain: str) -> Iterator[str | Table]:
    """Yield the ranking by one metric, with what a reader must know beside it."""
    from medassay.core.records.leaderboard import UNREAD_WARNING, fallback_lines, ranking_lines
    from medassay.core.records.statistics import scripted_sentence
    from medassay.kinds.catalog import presentations_of

    rows = statistics.rows(domain)
    unit = scale_text(rows[0].scale, statistics.scale.better)
    columns = _columns(rows, ranking_lines(rows))
    yield Table(
        rows=list(zip(*columns.values(), strict=True)),
        text=list(columns),
        title=f"{domain}: {rows[0].metric}, {unit}, 95 % interval",
        unfolded=("rank", "model", "score"),
    )
    for presentation in presentations_of(statistics.document).values():
        for table in presentation.tables(statistics, domain) if presentation.tables else ():
            yield from (table,) if table.rows else table.notes
    yield from fallback_lines(run.manifest.fallback)
    yield from _cut_off(run, rows)
    if warned := _unread_pairs(statistics, domain):
        yield (
            f"⚠ {UNREAD_WARNING} in {len(warned)} pair{'s' if len(warned) > 1 else ''}:"
            f" {'; '.join(warned[:3])}{' and others' if len(warned) > 3 else ''}. `medassay study"
            " reading` shows the replies."
        )
    own = run.manifest.own_code
    if own is not None and own.parts:
        names = ", ".join(part.shown for part in own.own_code.parts.values())
        yield (
            f"own code {names} made these numbers; `medassay verify` computes what it says again"
            " only with --trust-code"
        )
    if sentence := scripted_sentence(rows):
        yield f"{sentence}."
    yield from _sentences(statistics, domain)


def _columns(
    rows: "list[LeaderboardRow]", lines: list[tuple[str, str, str]]
) -> dict[str, list[str]]:
    """Return the columns of a ranking.

    What is the same in every row, or least read, is left out where the terminal is narrow.
    """
    from medassay.core.records.leaderboard import unread_share

    modes, settings = [row.mode for row in rows], [row.setting for row in rows]
    notes = [_notes(row) for row in rows]
    cells = {
        "rank": [rank for rank, _, _ in lines],
        "model": [row.model for row in rows],
        "setting": settings,
        **({"mode": modes} if len(set(modes)) != 1 else {}),
        "score": [score for *_, score in lines],
        "second interval": [_second_interval(row) for row in rows],
        "coverage": [f"{row.coverage:.2f}" for row in rows],
        "unread": [f"{100 * unread_share(row.outcomes):.1f} %" for row in rows],
    }
    if any(row.cut_off for row in rows):
        cells |= {"cut off": [f"{row.cut_off} of {row.replies}" for row in rows]}
    if any(row.agreement is not None for row in rows):
        agreements = ["–" if row.agreement is None else f"{row.agreement:.2f}" for row in rows]
        cells |= {"agreement": agreements, "false claims": [_false_claims(row) for row in rows]}
    if any(notes):
        cells |= {"notes": notes}
    for name in ("second interval", "coverage", "setting"):
        if table_width(cells, _FOLDED) <= out.console().width:
            break
        if name != "setting" or len(set(settings)) == 1:
            cells.pop(name)
    return cells


def _second_interval(row: "LeaderboardRow") -> str:
    if row.second is None:
        return "–"
    lo, hi = (units(end, row.scale) for end in (row.second.lo, row.second.hi))
    return f"[{lo}, {hi}] {row.second.method}"


def _false_claims(row: "LeaderboardRow") -> str:
    """Return the share of answers with a false claim, a dash where nothing was judged."""
    rate = row.hallucination_rate
    if rate is None:
        return "–"
    score, interval = rate.text(".1f", 100).split(" ", 1)
    return f"{score} % {interval}"


def _notes(row: "LeaderboardRow") -> str:
    words = {
        "asked_again": f"asked again: {row.asked_again}",
        "not_ranked:cut_off": "not ranked: too many cut off",
        "not_ranked:too_few_items": "not ranked: fewer than 10 items or clusters",
    }
    return ", ".join(
        words.get(flag, flag.replace("not_ranked:", "not ranked: ").replace("_", " "))
        for flag in row.flags
        if flag != "cut_off"  # a column of its own
    )


_FEW_DOMAINS, _NAMED_DOMAINS = 2, 8  # that have a line each, and that one line names
_FOLDED = {"notes": 14, "setting": 10, "false claims": 12}  # characters, folded at blanks


def _cut_off(run: "Run", rows: "list[LeaderboardRow]") -> Iterator[str]:
    """Yield a line for each model whose replies ended at its token limit."""
    totals: dict[str, tuple[int, int]] = {}
    for row in rows:
        cut, n = totals.get(row.model, (0, 0))
        totals[row.model] = cut + row.cut_off, n + row.replies
    for model, (cut, n) in totals.items():
        if cut:
            limit = f" = {run.manifest.sampling.get(model, {}).get('max_tokens', '?')}"
            if run.manifest.tasks:  # where its entry says none, each task has its own
                limit = ""
            yield (
                f"⚠ {model}: {cut} of {n} replies were cut at max_tokens{limit}; a larger"
                " max_tokens in its entry asks them anew."
            )


def _sentences(statistics: "Statistics", domain: str) -> Iterator[str]:
    """Yield who is best, for each mode, and on what that rests."""
    from medassay.core.ranks import SIMULTANEOUS
    from medassay.core.records.statistics import OVERALL

    n_domains = len([name for name in statistics.domains if name != OVERALL])
    for mode in statistics.modes:
        relations = statistics.relations(domain, mode)
        sentence = statistics.sentence(domain, mode)
        yield f"{mode}: {sentence}" if len(statistics.modes) > 1 else sentence
        yield from _small_domains(relations.small_domains, n_domains)
        text = f"{relations.n_common} of {relations.n_items} items common to the ranked models"
        if domain == "overall" and n_domains > 1:
            text += f"; mean of {n_domains} domains, each counted alike"
        if statistics.rank_rule == SIMULTANEOUS:
            n_ranked = relations.n_ranked or 0
            pairs = n_ranked * (n_ranked - 1) // 2
            tested = (
                f"all {pairs:,} pairs tested at once" if pairs > 1 else "the test of the one pair"
            )
            if pairs:
                text += f"; ranks are ranges, from {tested}"
        else:
            text += (
                f"; rule {statistics.rank_rule}: rows share a rank (“=”) whose intervals overlap,"
                " in brackets the range of the rank"
            )
        yield f"{text}."


def _small_domains(small: "Sequence[SmallDomain]", n_domains: int) -> Iterator[str]:
    """Yield which domains have few items; one line for many."""
    if len(small) <= _FEW_DOMAINS:
        yield from (f"⚠ {domain}" for domain in small)
        return
    named = ", ".join(f"{domain.domain} {domain.items}" for domain in small[:_NAMED_DOMAINS])
    more = f" and {len(small) - _NAMED_DOMAINS} more" if len(small) > _NAMED_DOMAINS else ""
    yield (
        f"⚠ {len(small)} of {n_domains} domains have fewer than 10 items or clusters, and weigh as"
        f" much as the others: {named}{more}"
    )


def _unread_pairs(statistics: "Statistics", domain: str) -> list[str]:
    """Return the pairs of ranked rows whose unread shares differ by more than their scores."""
    return [
        f"{', '.join(pair.first)} ({100 * pair.unread[0]:.1f} % unread) and"
        f" {', '.join(pair.second)} ({100 * pair.unread[1]:.1f} %)"
        for mode in statistics.modes
        for pair in statistics.relations(domain, mode).pairs
        if pair.unread_outweighs and pair.unread is not None
    ]


def group_table(field: str, rows: "list[GroupScore]") -> Table:
    """Return the scores by one property of the items."""
    cells = []
    for row in rows:
        estimate = row.estimate
        score, lo, hi = (units(n, row.scale) for n in (estimate.value, estimate.lo, estimate.hi))
        notes = ", ".join(estimate.flags).replace("_", " ")
        text = f"{score} [{lo}, {hi}] n={estimate.n}"
        cells.append((row.value, row.model, row.setting, text, notes))
    heads = (field, "model", "setting", "score", "notes")
    metric = f"{rows[0].metric} " if rows and rows[0].metric else ""
    return Table(rows=cells, text=heads, title=f"{metric}by {field}")
