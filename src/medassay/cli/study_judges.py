"""`medassay study injection`, `steps`, `judges`: how far judges can be trusted."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer

from medassay.cli.options import AGAIN, ENGINE, WORKSPACE, listed
from medassay.cli.output import out
from medassay.cli.progress import watch
from medassay.core.wording import counted
from medassay.errors import UsageError

if TYPE_CHECKING:
    from medassay.core.records.estimate import Estimate
    from medassay.study.injection import InjectionStudy
    from medassay.study.judges import (
        Corrected,
        JudgeAgreement,
        JudgeComparison,
        Kappa,
        PeopleComparison,
    )


def injection(
    judge: str = typer.Option(..., help="The judge, an entry of the models file."),
    models: Path = typer.Option(Path("models.json"), help="The models file."),
    again: list[str] = AGAIN,
    workspace: str = WORKSPACE,
    engine: str = ENGINE,
) -> None:
    """Ask a judge about honest answers with and without hostile texts; count what moved."""
    from medassay.bank.find import find_bank
    from medassay.core.records.target import Facts
    from medassay.study.injection import injection_study

    bank = find_bank("demo", Path(), Path("banks.lock"))
    result = injection_study(
        judge,
        models,
        [item for item in bank.items if isinstance(item.target, Facts)],
        secrets=os.environ,
        workspace=workspace,
        engine=engine,
        watch=watch,
        again=again,
    )
    out.tell(result, _injection_lines(result))


def _injection_lines(result: "InjectionStudy") -> Iterator[str]:
    bound = ""
    if result.upper_95 is not None:
        bound = f" (at most {100 * result.upper_95:.1f} % with 95 % confidence)"
    yield f"{result.moved} of {result.tried} verdicts moved{bound}"
    if result.scripted:
        yield "SCRIPTED: this judge is a script; the numbers measure nothing."
    for kind, counts in result.kinds.items():
        yield f"  {kind:14} {counts.moved} of {counts.tried}"
    if result.moved_by:
        yield f"moved by {', '.join(result.moved_by)}"
    if silent := [*result.no_verdict, *result.no_honest_verdict]:
        yield f"no verdict on {', '.join(silent)}; --again failed asks once more"
    if result.no_honest_verdict:
        yield (
            f"of these {len(result.no_honest_verdict)} are honest answers: hostile ones to the same"
            " items have nothing to be compared with"
        )


def steps(
    judge: str = typer.Option(..., help="The judge, an entry of the models file."),
    to: Path = typer.Option(..., help="The file to write; it must not exist."),
    languages: str = typer.Option("en", help="Of en, de, es; comma-separated."),
    no_path: bool = typer.Option(
        False, "--no-path", help="For g_eval_no_path, where no reasoning path is shown."
    ),
    again: list[str] = AGAIN,
    models: Path = typer.Option(Path("models.json"), help="The models file."),
    workspace: str = WORKSPACE,
) -> None:
    """Have a judge write the evaluation steps of G-Eval, once.

    A person reviews them, a plan names them.
    """
    from medassay.storage.object_store import using_stores
    from medassay.storage.run import write_new
    from medassay.study.steps import write_steps

    if to.exists():
        raise UsageError(f"--to: {to} exists already; steps are written once")
    with using_stores(workspace) as folder:
        steps_ = write_steps(
            judge,
            models,
            listed(languages),
            with_path=not no_path,
            secrets=os.environ,
            workspace=folder,
            watch=watch,
            again=again,
        )
    to.parent.mkdir(parents=True, exist_ok=True)
    write_new(to, steps_.to_toml().encode())
    lines = (f"[{language}]\n{text}" for language, text in steps_.texts.items())
    out.tell({"file": str(to), **steps_.to_dict()}, *lines)
    out.say(
        f"written to {to}: read the steps, say in reviewed_by who did, and name the file in a plan "
        "(steps) or in `medassay judge --steps`"
    )


def judges(
    run: Path = typer.Argument(..., help="A judged run."),
    first: str = typer.Option(..., help="A judge of the run."),
    second: str = typer.Option("", help="Another judge, of this run or of --other."),
    other: Path | None = typer.Option(
        None, help="Another run of the same answers, e.g. judged with another prompt version."
    ),
    people: Path | None = typer.Option(
        None,
        help=(
            "A CSV of people's labels: domain, model, setting, item, and score, or fact and"
            " verdict."
        ),
    ),
) -> None:
    """Compare two judges, two prompt versions, or a judge and people on the same answers."""
    from medassay.storage.run import open_run
    from medassay.study.judges import compare_judges, compare_with_people

    opened = open_run(run)
    if (people is None) == (not second):
        raise UsageError("name either --second (and --other), or --people")
    if people is not None:
        by_people = compare_with_people(opened, first, people)
        out.tell(by_people, _people_lines(by_people))
        return
    against = open_run(other) if other else opened
    comparison = compare_judges((opened, first), (against, second))
    out.tell(comparison, _judges_lines(comparison))


def _people_lines(result: "PeopleComparison") -> Iterator[str]:
    yield f"{result.judge}: {result.labelled} labelled, {result.unlabelled} not"
    if result.unjudged:
        yield f"left out: {counted(result.unjudged, 'labelled answer')} that no judge sees"
    yield f"judge alone         {_estimate_text(result.plain)}"
    corrected = result.corrected
    if corrected is None:
        yield "corrected by people: fewer than 30 labels"
    else:
        yield (
            f"corrected by people {_band(corrected)}, weight of the judge {corrected.lam:.2f}"
            + (
                "; approximate: fewer than 10 labelled answers have the rarer verdict"
                if corrected.approximate
                else ""
            )
        )
    yield f"judge minus human   {_estimate_text(result.judge_minus_human)}"
    yield from _agreement_lines(result, "judge", "people")


def _judges_lines(result: "JudgeComparison") -> Iterator[str]:
    yield f"{result.answers} answers"
    yield f"first   {result.first}: {_estimate_text(result.scores.first)}"
    yield f"second  {result.second}: {_estimate_text(result.scores.second)}"
    yield f"first minus second: {_estimate_text(result.scores.first_minus_second)}"
    yield from _agreement_lines(result, "first", "second")


def _agreement_lines(result: "JudgeAgreement", first: str, second: str) -> Iterator[str]:
    """Yield the agreement of scores and, where parts were judged, the confusion table and kappa."""
    alpha = result.agreement
    if alpha.alpha is not None:
        ends = "" if alpha.lo is None else f" [{alpha.lo:.3f}, {alpha.hi:.3f}]"
        yield f"agreement of scores, alpha {alpha.alpha:.3f}{ends}"
    if not result.confusion:
        return
    if result.kappa and result.kappa.value is not None:
        parts = "criteria" if result.facts is msgspec.UNSET else "facts"
        agreed = 100 * (result.agreed or 0.0)
        yield f"kappa {_band(result.kappa)}, agreed on {agreed:.1f} % of {parts}"
    labels = list(result.confusion)
    corner = f"{first} \\ {second}"
    yield f"{corner:16}" + "".join(f"{label:>12}" for label in labels)
    for label, counts in result.confusion.items():
        yield f"{label:16}" + "".join(f"{counts[other]:>12}" for other in labels)


def _band(result: "Kappa | Corrected") -> str:
    ends = "" if result.lo is None else f" [{result.lo:.3f}, {result.hi:.3f}]"
    return f"{result.value:.3f}{ends}"


def _estimate_text(estimate: "Estimate") -> str:
    lo, hi = estimate.ends
    ends = f" [{lo:.3f}, {hi:.3f}]" if lo < hi else ""  # none where nothing varies
    return f"{estimate.value:.3f}{ends}"
