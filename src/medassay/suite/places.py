"""A suite where a run is expected: its runs, one after the other, each with what it is of."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from medassay.errors import InputError
from medassay.storage.run import Run
from medassay.suite.run import ANSWERS, SuiteRun, is_suite_folder, open_suite


def suites_among(places: Sequence[Path]) -> list[SuiteRun]:
    """Return the suites that some places are, none where all are something else.

    Raises
    ------
    InputError
        When suites stand beside runs.
    """
    is_suite = [is_suite_folder(place) for place in places]
    if any(is_suite) and not all(is_suite):
        other = places[is_suite.index(False)]
        raise InputError(f"{other}: no suite, and stands beside one; name suites alone, or runs")
    return [open_suite(place) for place in places] if any(is_suite) else []


def runs_of(suite: SuiteRun) -> Iterator[tuple[str, Run]]:
    """Yield the name of each run of a suite, `benchmark` or `benchmark-kind`, and the run."""
    for part in suite.parts:
        for kind, name in part.runs.items():
            yield part.benchmark if kind == ANSWERS else f"{part.benchmark}-{kind}", suite.run(name)


def shared_benchmarks(suites: Sequence[SuiteRun]) -> Iterator[tuple[str, list[Run]]]:
    """Yield each run that all suites have by its name, with those runs; those of one suite alone
    are no pair.

    Raises
    ------
    InputError
        When they have no benchmark in common.
    """
    named = [dict(runs_of(suite)) for suite in suites]
    shared = [name for name in named[0] if all(name in runs for runs in named)]
    if not shared:
        raise InputError(
            "the suites have no benchmark in common: "
            + "; ".join(
                f"{s.folder.name} has {', '.join(runs) or 'none'}"
                for s, runs in zip(suites, named, strict=True)
            )
        )
    for name in shared:
        yield name, [runs[name] for runs in named]
