"""`medassay study injection`, `steps`, `judges`: how far judges can be trusted."""

import os
from pathlib import Path
from typing import Any

import typer

from medassay.cli.options import AGAIN, ENGINE, WORKSPACE, listed
from medassay.cli.output import out
from medassay.errors import UsageError


def injection(
    judge: str = typer.Option(..., help="The judge, an entry of the models file."),
    models: Path = typer.Option(Path("models.json"), help="The models file."),
    again: list[str] = AGAIN,
    workspace: str = WORKSPACE,
    engine: str = ENGINE,
) -> None:
    """Ask a judge about honest answers with and without hostile texts; count what moved."""
    from medassay.cli.run import watch
    from medassay.pipeline import find_bank
    from medassay.study.injection import injection_study

    bank = find_bank("demo", Path(), Path("banks.lock"))
    found = injection_study(
        judge,
        models,
        [item for item in bank.items if item.form == "open"],
        secrets=os.environ,
        workspace=workspace,
        engine=engine,
        watch=watch,
        again=again,
    )
    if out.json:
        out.document(found)
        return
    most = found["upper_95"]
    bound = "" if most is None else f" (at most {100 * most:.1f} % with 95 % confidence)"
    out.result(f"{found['moved']} of {found['tried']} verdicts moved{bound}")
    if found["scripted"]:
        out.result("SCRIPTED: this judge is a script; the numbers measure nothing.")
    for kind, row in found["kinds"].items():
        out.result(f"  {kind:14} {row['moved']} of {row['tried']}")
    if found["moved_by"]:
        out.result(f"moved by {', '.join(found['moved_by'])}")
    silent = [*found["no_verdict"], *found["no_honest_verdict"]]
    if silent:
        out.result(f"no verdict on {', '.join(silent)}; --again failed asks once more")
    if found["no_honest_verdict"]:
        out.result(
            f"of these {len(found['no_honest_verdict'])} are honest answers: hostile ones to the same items have nothing to be "
            "compared with"
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
    """Have a judge write the evaluation steps of G-Eval, once; a person reviews them, a plan names them."""
    from medassay.cli.run import watch
    from medassay.storage.remote import using_stores
    from medassay.storage.run import write_new
    from medassay.study.steps import write_steps

    if to.exists():
        raise UsageError(f"--to: {to} exists already; steps are written once")
    with using_stores(workspace) as folder:
        found = write_steps(
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
    write_new(to, found.to_toml().encode())
    if out.json:
        out.document({"file": str(to), **found.to_dict()})
        return
    for language, text in found.texts.items():
        out.result(f"[{language}]\n{text}")
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
        help="A CSV of people's labels: domain, model, setting, item, and score, or fact and verdict.",
    ),
) -> None:
    """Compare two judges, two prompt versions, or a judge and people on the same answers."""
    from medassay.storage.run import open_run
    from medassay.study.judges import compare_judges, compare_with_people

    found = open_run(run)
    if (people is None) == (not second):
        raise UsageError("name either --second (and --other), or --people")
    if people is not None:
        document = compare_with_people(found, first, people)
        _tell(document, lambda: _print_people(document))
        return
    against = open_run(other) if other else found
    document = compare_judges((found, first), (against, second))
    _tell(document, lambda: _print_judges(document))


def _tell(document: dict[str, Any], printed: Any) -> None:
    if out.json:
        out.document(document)
    else:
        printed()


def _print_people(found: dict[str, Any]) -> None:
    out.result(f"{found['judge']}: {found['labelled']} labelled, {found['unlabelled']} not")
    out.result(f"judge alone         {_shown(found['plain'])}")
    corrected = found["corrected"]
    if corrected is None:
        out.result("corrected by people: fewer than 30 labels")
    else:
        out.result(
            f"corrected by people {corrected['value']:.3f} [{corrected['lo']:.3f}, "
            f"{corrected['hi']:.3f}], weight of the judge {corrected['lam']:.2f}"
            + (
                "; approximate: fewer than 10 labelled answers have the rarer verdict"
                if corrected["approximate"]
                else ""
            )
        )
    out.result(f"judge minus human   {_shown(found['judge_minus_human'])}")
    _print_agreement(found, "judge", "people")


def _print_judges(found: dict[str, Any]) -> None:
    scores = found["scores"]
    out.result(f"{found['answers']} answers")
    out.result(f"first   {found['first']}: {_shown(scores['first'])}")
    out.result(f"second  {found['second']}: {_shown(scores['second'])}")
    out.result(f"first minus second: {_shown(scores['first_minus_second'])}")
    _print_agreement(found, "first", "second")


def _print_agreement(found: dict[str, Any], first: str, second: str) -> None:
    """Print the agreement of scores and, where parts were judged, the confusion table and kappa."""
    agreement = found["agreement"]
    if agreement["alpha"] is not None:
        out.result(f"agreement of scores, alpha {_band(agreement, 'alpha')}")
    if "confusion" not in found:
        return
    if found["kappa"]["value"] is not None:
        out.result(
            f"kappa {_band(found['kappa'], 'value')}, agreed on {100 * found['agreed']:.1f} % of "
            f"{'facts' if 'facts' in found else 'criteria'}"
        )
    labels = list(found["confusion"])
    corner = f"{first} \\ {second}"
    out.result(f"{corner:16}" + "".join(f"{label:>12}" for label in labels))
    for label, row in found["confusion"].items():
        out.result(f"{label:16}" + "".join(f"{row[other]:>12}" for other in labels))


def _band(found: dict[str, Any], value: str) -> str:
    ends = "" if found["lo"] is None else f" [{found['lo']:.3f}, {found['hi']:.3f}]"
    return f"{found[value]:.3f}{ends}"


def _shown(estimate: dict[str, Any]) -> str:
    return f"{estimate['score']:.3f} [{estimate['lo']:.3f}, {estimate['hi']:.3f}]"
