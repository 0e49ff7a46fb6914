"""The verbs for notebooks and programs, with the defaults that people expect: keys come from the
environment, progress is shown where someone looks, and what a user must know is a warning.
"""

import os
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from medassay.core.records.item import Bank
from medassay.core.records.model import ModelSpec
from medassay.core.records.plan import PlanSource
from medassay.core.records.preview import Preview
from medassay.errors import InputError
from medassay.storage.run import Run, open_run

if TYPE_CHECKING:
    from medassay.exchange.compare import Comparison
    from medassay.runner.progress import ProgressFactory
    from medassay.storage.shown_item import ShownItem
    from medassay.study.judges import PeopleComparison

RunSource = Run | str | Path  # what verbs take for a run
Models = Sequence[ModelSpec] | str | Path | None
_FORMS = {".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet", "": "every-eval-ever"}
_EXAMPLE: list[tuple["tempfile.TemporaryDirectory[str]", Run]] = []


def run(  # noqa: PLR0913 -- each is an option of the verb
    plan: PlanSource,
    *,
    models: Models = None,
    secrets: Mapping[str, str] | None = None,
    workspace: Path | str | None = None,
    engine: str = "local",
    fresh: bool = False,
    accept_failures: bool = False,
    again: str = "",
    trust_code: bool = False,
    progress: bool | None = None,
) -> Run:
    """Ask all models of a plan and return the sealed run; the same call resumes an interrupted one.

    A finished run of the same plan is returned as it is: nothing is asked twice. What a user must
    know is a warning: models that are asked otherwise than the plan says, answers that own code
    left without a score. Where progress is shown, replies that could not be used are counted.

    Parameters
    ----------
    plan : a `Plan`, the path of its TOML file, or what stands in such a file as a mapping
    models : entries, or the path of a models file, in place of the one that the plan names
    secrets : keys by the names that the entries give them; None reads the environment once
    workspace : folder for runs/, responses/ and banks.lock, or an address as s3://bucket/work
        (extra `objects`); default: the folder of the plan's file, else the current one
    engine : "local", or "ray" for several processes or machines (extra `ray`)
    fresh : ask everything anew, without stored replies, in a run of its own
    accept_failures : seal the run although some trials failed; they score the worst value
    again : classes of unusable replies to ask once more: "empty", "truncated", "refused"
    trust_code : whether code of your own that the plan names may be executed
    progress : whether to show it; None shows it in notebooks and on terminals

    Returns
    -------
    Run
        Sealed: its files do not change any more.

    Raises
    ------
    InputError
        Before any call, when plan, bank or models are wrong.
    IncompleteError
        When trials failed or the budget ended; the same call goes on.
    ModelError
        When every model was given up.

    Examples
    --------
    >>> import tempfile, warnings, medassay
    >>> warnings.simplefilter("ignore")  # one tells that open items are not asked without judges
    >>> model = medassay.ModelSpec(id="always B", provider="fake", script={"reply": "B"})
    >>> plan = {"banks": ["demo"], "task": "closed", "models": ["always B"], "seed": 1}
    >>> run = medassay.run(plan, models=[model], workspace=tempfile.mkdtemp())
    >>> print(medassay.leaderboard(run))
               –  19.2 [13.0, 27.4] n=120       always B · zero_shot
    """
    from medassay import pipeline
    from medassay.runner.retrying import own_code_lines, unusable_lines

    def tell(line: str) -> None:
        warnings.warn(line, stacklevel=4)

    _refuse_flags(
        fresh=fresh, accept_failures=accept_failures, trust_code=trust_code, progress=progress
    )
    watch = _watch(progress)
    done = pipeline.run(
        plan,
        models=None if models is None else _entries(models),
        secrets=_secrets(secrets),
        workspace=workspace,
        watch=watch,
        fresh=fresh,
        accept_failures=accept_failures,
        again=again,
        engine=engine,
        trust_code=trust_code,
        tell=tell,
    )
    for line in own_code_lines(done):
        warnings.warn(line, stacklevel=2)
    for line in unusable_lines(done) if watch else ():  # where someone looks
        sys.stderr.write(f"{line}\n")
    return done


def preview(
    plan: PlanSource,
    *,
    models: Models = None,
    workspace: Path | str | None = None,
    fresh: bool = False,
) -> Preview:
    """Return what a run would ask and at most cost, without asking anything.

    Parameters
    ----------
    plan, models, workspace, fresh : as of `run`

    Returns
    -------
    Preview
        Calls, stored replies, and upper bounds of tokens and money, by model and in all; `str`
        gives the lines that `medassay run --plan` prints.

    Raises
    ------
    InputError
        When plan, bank or models are wrong.

    Examples
    --------
    >>> import medassay
    >>> model = medassay.ModelSpec(id="m", provider="fake", script={"reply": "B"})
    >>> cost = medassay.preview({"banks": ["demo"], "models": ["m"]}, models=[model])
    >>> cost.calls, cost.money
    (120, 0.0)
    """
    from medassay.runner.preview import preview as preview_run

    _refuse_flags(fresh=fresh)
    entries = None if models is None else _entries(models)
    return preview_run(plan, models=entries, workspace=workspace, fresh=fresh)


def judge(  # noqa: PLR0913 -- each is an option of the verb
    run: RunSource,
    judges: Sequence[str],
    *,
    models: Sequence[ModelSpec] | str | Path,
    task: str = "",
    substitute: str = "",
    allow_own: bool = False,
    steps: str | Path | None = None,
    graphs: Sequence[str] = (),
    secrets: Mapping[str, str] | None = None,
    workspace: Path | str | None = None,
    engine: str = "local",
    accept_failures: bool = False,
    trust_code: bool = False,
    progress: bool | None = None,
) -> Run:
    """Let judges judge the stored answers of a sealed run, and return a new sealed run.

    No model is asked again. The run that was judged stays as it is.

    Parameters
    ----------
    judges : names of entries of `models`: as many as the task has seats, one or three
    models : entries, or the path of a models file
    task : by which the answers are judged; "" is the run's own
    substitute : judge who steps in where one would judge its own family
    allow_own : whether a judge may judge its own answers
    steps : a file of evaluation steps, of tasks that take one
    graphs : names or files of judge graphs; none takes those of the run, else of the task
    secrets, workspace, engine, accept_failures, trust_code, progress : as of `run`

    Raises
    ------
    InputError, IncompleteError, ModelError
        As `run`.

    Examples
    --------
    >>> import tempfile, warnings, medassay
    >>> warnings.simplefilter("ignore")  # one tells that items of other kinds are not asked
    >>> def panel(share):  # scripts that look for so many of the words of a fact
    ...     return [medassay.ModelSpec(id=f"judge {name}", provider="fake", family=name,
    ...         script={"judge": share}) for name in "abc"]
    >>> names = [judge.id for judge in panel(0.5)]
    >>> model = medassay.ModelSpec(id="m", provider="fake", script={"reply": "Give oxygen."})
    >>> plan = {"banks": ["demo"], "task": "open", "models": ["m"], "judges": names, "sample": 4}
    >>> run = medassay.run(plan, models=[model, *panel(0.5)], workspace=tempfile.mkdtemp())
    >>> strict = medassay.judge(run, names, models=panel(0.9))
    >>> len(strict.trials()), len(strict.verdicts())
    (4, 12)
    """
    from medassay.runner.rejudge import JudgingOptions, judge_run

    _refuse_flags(
        allow_own=allow_own,
        accept_failures=accept_failures,
        trust_code=trust_code,
        progress=progress,
    )
    options = JudgingOptions(
        judges=judges,
        models_file=Path(models) if isinstance(models, str | Path) else tuple(_entries(models)),
        task=task,
        substitute=substitute,
        allow_own=allow_own,
        steps=None if steps is None else Path(steps),
        graphs=graphs,
        trust_code=trust_code,
    )
    return judge_run(
        run,
        options,
        secrets=_secrets(secrets),
        workspace=None if workspace is None else Path(workspace),
        watch=_watch(progress),
        accept_failures=accept_failures,
        engine=engine,
    )


def judge_agreement(run: RunSource, judge: str, labels: str | Path) -> "PeopleComparison":
    """Return how a judge agrees with people, and its mean corrected by what people said.

    Parameters
    ----------
    run : a judged run
    judge : id of one of its judges
    labels : CSV with the columns domain, model, setting, item, and either score, on the scale of
        the run, or fact and verdict (entail, missing, contradict; of criteria met, not met), one
        row for each fact. The labelled answers should be a random draw, 30 or more

    Returns
    -------
    PeopleComparison
        `confusion` (label of the judge → of people → count), `agreed` (share), `kappa` with its
        interval; these three only where people said it fact by fact. `plain` is the judge's mean
        over all answers, `corrected` that mean corrected by the labelled ones, None below 30;
        `judge_minus_human` their difference. All are on the scale of the scores.

    Raises
    ------
    InputError
        When there is no such judge, or a label is of no judged answer.

    References
    ----------
    Cohen (1960), doi:10.1177/001316446002000104. Prediction-powered mean: Angelopoulos et al.
    (2023), Science 382:669-674, doi:10.1126/science.adi6000.

    Examples
    --------
    >>> import csv, tempfile, warnings, medassay
    >>> warnings.simplefilter("ignore")  # one tells that items of other kinds are not asked
    >>> folder = tempfile.mkdtemp()
    >>> model = medassay.ModelSpec(id="m", provider="fake", script={"reply": "Give oxygen."})
    >>> panel = [medassay.ModelSpec(id=name, provider="fake", family=name, script={"judge": 0.5})
    ...     for name in "abc"]
    >>> plan = {"banks": ["demo"], "task": "open", "models": ["m"], "judges": ["a", "b", "c"]}
    >>> run = medassay.run(plan, models=[model, *panel], workspace=folder)
    >>> with open(f"{folder}/labels.csv", "w", newline="") as file:
    ...     table = csv.writer(file)
    ...     _ = table.writerow(["domain", "model", "setting", "item", "score"])
    ...     for n, score in enumerate(run.scores()):  # people who agree but for each fourth answer
    ...         said = score.score if n % 4 else 1
    ...         _ = table.writerow([score.domain, score.model, score.setting, score.item, said])
    >>> result = medassay.judge_agreement(run, "a", f"{folder}/labels.csv")
    >>> result.labelled, round(result.judge_minus_human.value, 3)
    (24, -0.25)
    """
    from medassay.study.judges import compare_with_people

    opened = run if isinstance(run, Run) else open_run(run)
    return compare_with_people(opened, judge, Path(labels))


def compare(
    *runs: RunSource,
    margin: float | None = None,
    only: Sequence[str] = (),
    by_domain: bool = False,
    metric: str = "",
) -> "Comparison":
    """Compare models pair by pair on the items that all of them answered.

    Parameters
    ----------
    runs : one run with several models, or several runs, publications, or logs of other tools
    margin : in units of the score: 0.02 is 2 points of 100; differences smaller than it do not
        matter, and `equivalent` and `non_inferior` are claimed against it
    only : names of models, to tell of no others; the pairs are then in this order
    by_domain : whether each domain is compared too, besides the mean over domains
    metric : to compare by no other, where the runs have several

    Returns
    -------
    Comparison
        Its `pairs` hold the difference, first minus second, with its interval; `gate` holds one
        model against another.

    Raises
    ------
    InputError
        When the runs have no item, mode or metric in common, or other items under the same id.
    IncompleteError
        When a run is not finished.

    References
    ----------
    Intervals are simultaneous over all pairs: Romano and Wolf (2005), J. Am. Stat. Assoc.
    100:94-108, doi:10.1198/016214504000000539.

    Examples
    --------
    >>> import medassay
    >>> comparison = medassay.compare(medassay.example_run())
    >>> [pair] = comparison.pairs
    >>> pair.a, pair.b, round(pair.diff, 3), pair.n
    ('careful', 'hasty', 0.375, 24)
    >>> pair.reading
    'careful better'
    """
    from medassay.exchange.compare import compare as compare_runs
    from medassay.exchange.open_any import open_places

    places = [run.path if isinstance(run, Run) else _place(run) for run in runs]
    if not places:
        raise InputError("compare: expected at least one run")
    with open_places(places) as opened:
        return compare_runs(opened, margin=margin, only=only, by_domain=by_domain, metric=metric)


def rescore(
    run: RunSource,
    *,
    contradiction_penalty: float | None = None,
    workspace: Path | str | None = None,
    engine: str = "local",
    trust_code: bool = False,
) -> Run:
    """Score the stored answers and verdicts of a sealed run anew, and return a new sealed run.

    Nothing is asked; the scorers of the installed version apply.

    Parameters
    ----------
    contradiction_penalty : what a contradicted target fact takes off, in [0, 1]; None keeps that of
        each bank
    workspace : folder of runs/; default: that of the run
    engine : "local", or "ray" for several processes or machines
    trust_code : whether own code beside the run may be executed

    Raises
    ------
    InputError
        When the run is not sealed, or holds what these scorers cannot score.

    Examples
    --------
    >>> import medassay
    >>> run = medassay.example_run()
    >>> anew = medassay.rescore(run)
    >>> [s.score for s in anew.scores()] == [s.score for s in run.scores()]
    True
    """
    from medassay.runner.rescore import rescore as rescore_run

    _refuse_flags(trust_code=trust_code)
    return rescore_run(
        run,
        contradiction_penalty=contradiction_penalty,
        workspace=None if workspace is None else Path(workspace),
        engine=engine,
        trust_code=trust_code,
    )


def export(run: RunSource, to: str | Path, *, form: str = "") -> Path:
    """Write a sealed run as a table for other tools, one row a trial, and return the place.

    Parameters
    ----------
    to : a file, or for every-eval-ever a folder; it must not exist
    form : "csv", "jsonl", "parquet" (extra `data`) or "every-eval-ever"; default: by the ending of
        `to`

    Raises
    ------
    InputError
        When the form is unknown, or the place is taken.
    IncompleteError
        When the run is not sealed.

    Examples
    --------
    >>> from pathlib import Path
    >>> import tempfile, medassay
    >>> path = Path(tempfile.mkdtemp()) / "answers.csv"
    >>> path = medassay.export(medassay.example_run(), path)
    >>> path.read_text().splitlines()[1].split(",")[1:9]
    ['cardiology', 'careful', 'zero_shot', 'solo', 'cardiology-013', '0', 'answered', 'E']
    """
    from medassay.exchange.export import export as export_run

    target = Path(to)
    if not form and target.suffix not in _FORMS:
        endings = ", ".join(filter(None, _FORMS))
        raise InputError(
            f"{target}: expected a name that ends in {endings}, a folder, or a form by name"
        )
    opened = run if isinstance(run, Run) else open_run(run)
    return export_run(opened, form or _FORMS[target.suffix], target)


def show(name: str, run: RunSource | None = None, *, workspace: str | Path = ".") -> "ShownItem":
    """Return an item with every answer to it, or one trial by its hash.

    Parameters
    ----------
    name : id of the item, or at least 8 digits of a trial's SHA-256
    run : finished or not; default: the newest finished one of the workspace that holds it
    workspace : folder whose runs/ is searched

    Raises
    ------
    InputError
        When there is no such item or trial.

    Examples
    --------
    >>> import medassay
    >>> shown = medassay.show("cardiology-013", medassay.example_run())
    >>> shown.item.target_text, [(trial.trial.value, trial.score) for trial in shown.trials]
    ('E', [('E', 1), ('E', 1)])
    """
    from medassay.storage.shown_item import newest_with, shown_item

    if run is None:
        return newest_with(name, Path(workspace) / "runs")
    return shown_item(run if isinstance(run, Run) else open_run(run), name)


def load_bank(name: str | Path, *, lock: str | Path | None = "banks.lock") -> Bank:
    """Return a bank by its folder, or by its name if it is shipped.

    Parameters
    ----------
    name : folder with bank.toml and items.jsonl, or "demo"
    lock : file of registered hashes, the banks.lock of a workspace: a bank that changed under the
        same version is refused; None looks nowhere

    Raises
    ------
    InputError
        Naming file, row, field and what was expected.

    Examples
    --------
    >>> import medassay
    >>> bank = medassay.load_bank("demo")
    >>> bank.version, len(bank.items), bank.items[0].id
    ('demo-2026.1', 156, 'cardiology-001')
    """
    from medassay.bank.find import find_bank

    return find_bank(str(name), Path.cwd(), None if lock is None else Path(lock))


def example_run() -> Run:
    """Return a small sealed run to try things on: two scripted models, 24 items of the demo bank.

    It is made once for each process, in a temporary folder, without a network. The models are
    scripts: what they score says nothing of any model.

    Examples
    --------
    >>> import medassay
    >>> print(medassay.example_run().leaderboard)
               1  70.8 [47.6, 86.7] n=24        careful · zero_shot
               2  33.3 [16.2, 56.4] n=24        hasty · zero_shot
    """
    if not _EXAMPLE:
        scratch = tempfile.TemporaryDirectory(prefix="medassay-example-")
        _EXAMPLE.append((scratch, _make_example(Path(scratch.name))))
    return _EXAMPLE[0][1]


def _make_example(folder: Path) -> Run:
    """Return a run of two scripts of which one answers better."""
    from medassay import pipeline

    replies: dict[str, dict[str, str]] = {"careful": {}, "hasty": {}}
    for at, item in enumerate(load_bank("demo").items):
        key = item.target_text[:1]
        wrong = "I am not sure." if at % 10 == 9 else "B" if key == "A" else "A"
        replies["careful"][item.id] = key if at % 10 < 9 else wrong
        replies["hasty"][item.id] = key if at % 10 < 4 else wrong
    models = [
        ModelSpec(id=name, provider="fake", script={"replies": texts})
        for name, texts in replies.items()
    ]
    plan = {
        "name": "example",
        "task": "closed",
        "banks": ["demo"],
        "models": list(replies),
        "sample": 24,
        "seed": 1,
        "demonstration": True,
    }
    return pipeline.run(plan, models=models, secrets={}, workspace=folder)


def _entries(models: Models) -> Sequence[ModelSpec]:
    """Return entries, or those of a models file.

    Raises
    ------
    InputError
        When something else is among them.
    """
    from medassay.model.spec import load_models

    if isinstance(models, str | Path):
        return list(load_models(models).values())
    for entry in models if isinstance(models, Sequence) else [models]:
        if not isinstance(entry, ModelSpec):
            raise InputError(
                f"models: expected a list of ModelSpec, or the path of a models file; got"
                f" {entry!r:.60}"
            )
    return list(models or ())


def _place(value: object) -> Path:
    """Return a path, or refuse what is none."""
    if isinstance(value, str | Path):
        return Path(value)
    raise InputError(f"a run: expected a path or a Run; got {value!r:.60}")


def _secrets(secrets: Mapping[str, str] | None) -> dict[str, str]:
    """Return the keys by name, those of the environment where none are given."""
    if secrets is None:
        return dict(os.environ)
    if not isinstance(secrets, Mapping) or not all(
        isinstance(part, str) for pair in secrets.items() for part in pair
    ):
        raise InputError("secrets: expected a mapping of names to keys, both texts")
    return dict(secrets)


def _refuse_flags(**flags: object) -> None:
    """Refuse what is neither True nor False: a text such as "no" would switch things on."""
    for name, value in flags.items():
        if value is not None and not isinstance(value, bool):
            raise InputError(f"{name}: expected True or False; got {value!r:.40}")


def _watch(progress: bool | None) -> "ProgressFactory | None":
    """Return what shows the progress here; None where nobody looks."""
    from medassay.runner.progress import Notebook, in_notebook, terminal

    if progress is False:
        return None
    if in_notebook():
        return Notebook
    if progress or (sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()):
        return terminal
    return None
