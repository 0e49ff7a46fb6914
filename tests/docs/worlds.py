"""The folders in which the commands of README and docs are run: what their placeholders stand for,
and what must lie there.

A world is a function that furnishes a folder and returns stand-ins: (pattern, what stands in its
place). Commands of a document run in its world one after the other, so that later ones find what
earlier ones made.
"""

import csv
import json
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from tests import makers
from tests.exchange import reviewed_banks as reviewing
from tests.runner.mixed_plans import text_items
from tests.study import context_runs as contexts
from tests.synthesis import flawed_runs as flaws
from tests.synthesis import shops

import medassay
from medassay import pipeline
from medassay.cli.main import call
from medassay.review.store.database import open_database
from medassay.review.store.reviews import Work
from medassay.review.store.schema import Study
from medassay.review.store.studies import assign_all
from medassay.synthesis.items import present_items, undecided
from medassay.synthesis.project import read_workshop
from medassay.synthesis.synthesize import synthesize

JUDGES = ("judge-a", "judge-b", "judge-c")
# What a grader replies, whether it is asked for steps, for a grade, or for scores of three answers.
GRADED = """1. Read the answer.
2. Compare it with the reference.
3. Give a score.
Feedback: as it is. [RESULT] 4
question_id,score
q1,4
q2,5
q3,6"""
ROOT = Path(__file__).parents[2]
StandIns = dict[str, "str | Callable[[], str]"]


@dataclass(kw_only=True)
class World:
    """A folder, the address of a mock endpoint, the public data sets, and what placeholders stand
    for.

    `steps` is what is done before a command that begins with the given words; `exits` the exit
    codes that are right besides 0.
    """

    folder: Path
    serve: Callable[..., str]
    url: str
    data: Path
    stand_ins: StandIns = field(default_factory=dict)
    steps: dict[str, Callable[[], None]] = field(default_factory=dict)
    exits: dict[str, int] = field(default_factory=dict)

    def models(self, *names: str, **more: Mapping) -> None:
        """Write models.json with entries of the mock endpoint, each of a family of its own, and the
        baseline random.
        """
        entries = [
            makers.endpoint(self.url, name, family=f"family-{name}", location="local")
            | more.get(name.replace("-", "_"), {})
            for name in names
        ]
        random = {"id": "random", "provider": "baseline", "model": "random"}
        makers.write_models(self.folder, *entries, random)

    def bank(self, name: str, items: list[dict], **card: str) -> Path:
        """Write a bank of these items beside the plans."""
        return makers.write_bank(
            self.folder / name, items, name=name, question_bank_version=f"{name}-2026.1", **card
        )

    def plan(self, name: str = "plan.toml", **values: object) -> Path:
        """Write a plan; a plan of another name leaves plan.toml as it is."""
        path = self.folder / "plan.toml"
        before = path.read_bytes() if name != "plan.toml" and path.exists() else None
        made = makers.write_plan(self.folder, **values).rename(self.folder / name)
        if before is not None:
            path.write_bytes(before)
        return made

    def run(self, name: str = "plan.toml", to: str = "") -> Path:
        """Run a plan; with `to` under a name of its own in runs/."""
        run = pipeline.run(self.folder / name, secrets={}, accept_failures=True)
        if not to:
            return run.path
        return run.path.rename(self.folder / "runs" / to)

    def newest(self) -> str:
        """Return the run that was sealed last, as commands name it."""
        runs = [path for path in (self.folder / "runs").iterdir() if (path / "seal.json").exists()]
        return f"runs/{max(runs, key=lambda path: (path / 'seal.json').stat().st_mtime_ns).name}"


def readme(world: World) -> None:
    def furnish() -> None:
        """Fill the folder that `init` made: its models, two runs of the same items, one of open
        items, a site, an author.
        """
        here = world.folder / "study"
        inner = World(folder=here, serve=world.serve, url=world.url, data=world.data)
        first = [
            makers.endpoint(world.url, name, family=f"family-{name}")
            for name in ("m", "n", "a", "b", "c")
        ]
        document = json.loads((here / "models.json").read_text())
        document["models"] += [{**entry, "location": "local"} for entry in first]
        (here / "models.json").write_text(json.dumps(document))
        inner.bank("bank", makers.many_items(300))
        inner.bank("open", makers.open_items(12))
        for name in ("m", "n"):
            inner.plan("other.toml", models=[name])
            inner.run("other.toml", to={"m": "new", "n": "old"}[name])
        inner.plan("other.toml", banks=["open"], models=["m"], judges=["a", "b", "c"], task="open")
        inner.run("other.toml", to="judged")
        medassay.publish(here / "runs/new", here / "site", publication="first")
        world.folder = here

    world.steps["medassay doctor"] = furnish
    call(["demo", "synthesis", "--to", "author"])

    def with_the_author() -> None:
        for name in ("plan.toml", "models.json", "graphs", "texts"):
            source = world.folder.parent / "author" / name
            copy = shutil.copytree if source.is_dir() else shutil.copyfile
            (world.folder / name).unlink(missing_ok=True)
            copy(source, world.folder / name)

    world.steps["medassay bank synthesize"] = with_the_author
    world.stand_ins |= {
        r"judge runs/<id>": "judge runs/judged",
        r"runs/<new>": "runs/new",
        r"runs/<old>": "runs/old",
        r"status site <id>": "status site first",
        r"runs/<id>": "runs/old",
        r"<item>": "q00007",
        r"--next <id>": lambda: f"--next {_published(world.folder / 'site')}",
    }
    world.exits["medassay compare"] = 1  # 300 items may not show it


def _published(site: Path) -> str:
    return max((site / "p").iterdir(), key=lambda path: path.stat().st_mtime_ns).name


def budgets(world: World) -> None:
    grader = world.serve("--text", "Feedback: as it is. [RESULT] 4")
    world.models("m", "judge-gpt-5", judge_gpt_5={"url": grader})
    world.bank("bank", makers.open_items(12))
    world.plan(models=["m"], judges=["judge-gpt-5"], task="prometheus")
    world.run()
    world.stand_ins[r"runs/0123456789ab-1"] = world.newest


def one_machine(world: World) -> None:
    world.models("m")
    world.bank("bank", makers.many_items(20))
    world.plan(models=["m"])


def check_a_board(world: World) -> None:
    one_machine(world)
    medassay.publish(world.run(), world.folder / "site", publication="first")
    world.stand_ins[r"p/<publication>"] = "site/p/first"
    world.stand_ins[r"verify \."] = "verify site"


def choose_models(world: World) -> None:
    text = (
        Path("docs/how-to/choose-models.md").read_text(encoding="utf-8")
        if Path("docs").is_dir()
        else ""
    )
    (world.folder / "steps.toml").write_text(text or 'licences = "commercial_ok"\n')
    package = Path(medassay.__file__).parent / "selection/models.csv"
    shutil.copyfile(package, world.folder / "models.csv")
    shutil.copyfile(
        world.data / "mmlu_pro/predictions_4_disciplines.csv", world.folder / "predictions.csv"
    )


def compare_models(world: World) -> None:
    world.models("m", "n")
    world.bank("bank", makers.many_items(300))
    for name, model in (("new", "m"), ("old", "n")):
        world.plan(models=[model])
        world.run(to=name)
    world.exits["medassay compare runs/new runs/old --gate"] = 1  # 300 items may not show it


def differential_diagnosis(world: World) -> None:
    shutil.copytree(world.data / "rarebench", world.folder / "RareBench")
    world.models("a", "b", "strong-judge")
    (world.folder / "disease_mapping.json").write_text(json.dumps({"ORPHA:1": "Gout/Podagra"}))
    published = world.data / "kernel29_pumch_adm"
    table = next(published.rglob("judge_labels.csv"))
    shutil.copyfile(table, world.folder / "judge_labels.csv")
    raw = world.folder / "folder"
    raw.mkdir()
    for file in sorted(published.rglob("diagnoses_*.csv"))[:2]:
        shutil.copyfile(file, raw / file.name)

    def plan() -> None:
        world.plan(
            banks=["rarebench_pumch_adm"],
            models=["a", "b"],
            templates=["ddx"],
            judges=["strong-judge"],
            task="ddx",
            sample=10,
        )

    world.steps["medassay run plan.toml --plan"] = plan


def health_records(world: World) -> None:
    call(["demo", "record", "--to", "demo-record"])
    folder = world.folder / "reports"
    folder.mkdir()
    for n in range(1, 9):
        text = f"Der Patient {n} nimmt Ramipril 5 mg."
        (folder / f"letter-{n:02}.txt").write_text(text, encoding="utf-8")
    reply = makers.record_reply(makers.health_record(1))
    makers.write_models(world.folder, {**makers.fake("strong-model", reply=reply), "family": "f"})
    run = min(path.name for path in (world.folder / "demo-record/runs").iterdir())
    world.stand_ins |= {
        r"runs/<id>": f"demo-record/runs/{run}",
        r"models/multilingual-e5": "embedded:minilm",
    }


def how_replies_are_read(world: World) -> None:
    one_machine(world)
    world.run()
    world.stand_ins[r"runs/<id>"] = world.newest

    def label() -> None:
        path = world.folder / "reading/to-label.csv"
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows({**row, "right": "yes"} for row in rows)

    world.steps["medassay study reading runs/<id> --labels"] = label


def judges(world: World) -> None:
    more = {name.replace("-", "_"): {"capabilities": ["chat", "logprobs"]} for name in JUDGES}
    grader = world.serve("--text", GRADED)
    world.models("m", *JUDGES, "grader", grader={"url": grader}, **more)
    shutil.copyfile(world.folder / "models.json", world.folder / "other.json")
    items = [
        {**item, "reference": "Duty and breach.", "rationale": "Negligence."}
        for item in makers.open_items(12)
    ]
    world.bank("bank", items)
    world.plan(models=["m"], judges=list(JUDGES), task="open")
    run = world.run(to="ID")
    verdicts = [json.loads(line) for line in (run / "verdicts.jsonl").read_text().splitlines()]
    names = ["domain", "item", "model", "setting", "score"]
    with (world.folder / "labels.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(verdict for verdict in verdicts if verdict["judge"] == "judge-a")

    def read_by_somebody() -> None:
        path = world.folder / "steps.toml"
        path.write_text(path.read_text().replace('reviewed_by = ""', 'reviewed_by = "A. Reviewer"'))

    world.steps["medassay judge runs/ID --panel grader --task g_eval"] = read_by_somebody
    source = world.data / "healthbench_sample"
    shutil.copyfile(next(source.glob("*judge*.jsonl")), world.folder / "judge_responses.jsonl")


def making_banks(world: World) -> None:
    call(["demo", "synthesis", "--to", "author"])
    for name in ("plan.toml", "models.json"):
        shutil.copyfile(world.folder / "author" / name, world.folder / name)
    for name in ("graphs", "texts"):
        shutil.copytree(world.folder / "author" / name, world.folder / name)
    (world.folder / "graph.mmd").write_text(
        "flowchart TD\n  a[Fever] --> b[Stable]\n  a --> c[Shock]\n"
    )
    world.bank("other-bank", makers.many_items(4))

    def sheet() -> None:
        with (world.folder / "votes.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["item", "evaluator", "vote"])
            for event in undecided(read_workshop(world.folder / "shop")):
                writer.writerows([event.place[1], f"E{n}", "yes"] for n in range(3))

    def again() -> None:
        world.plan("flaws.toml", banks=["my-bank"], models=[one["id"] for one in flaws.MODELS])
        world.run("flaws.toml", to="A-again")

    def one_shop() -> None:
        for name in ("author", "demo-synthesis"):
            shutil.rmtree(world.folder / name)

    world.steps |= {
        "medassay show ITEM": one_shop,
        "medassay bank flaws runs/A runs/B": lambda: flawed(world),
        "medassay bank votes": sheet,
        "medassay study corrections": again,
    }
    world.stand_ins |= {
        r"review:ITEM": "review:q0-quiz",
        r"ITEM…?": lambda: present_items(read_workshop(world.folder / "shop"))[0].place[1],
        r"big-model,bigger-model": "big,huge",
        r"--review claude": "--review checker",
    }


def flawed(world: World) -> None:
    """Run models on a bank with a wrong key, so that its items are found.

    The reviewer proposes a correction.
    """
    world.bank("my-bank", flaws.items(), domains=("medicine",))
    said = {
        "q0-quiz": json.dumps(flaws.CORRECTION),
        "q1-quiz": json.dumps(flaws.unchanged(1)),
    }
    reviewer = {**makers.fake("checker"), "family": "other", "script": {"replies": said}}
    makers.write_models(world.folder, *flaws.MODELS, flaws.model("tiny", {1}, size=1), reviewer)
    names = [one["id"] for one in flaws.MODELS]
    for run, models in (("A", names), ("B", ["tiny"])):
        world.plan("flaws.toml", banks=["my-bank"], models=models)
        world.run("flaws.toml", to=run)


def private_items(world: World) -> None:
    items = [{**item, "kind": "synthetic"} for item in makers.many_items(20)]
    world.models("m")
    world.bank("bank", items)
    world.plan(models=["m"])
    run = medassay.open_run(world.run())
    medassay.publish(run, world.folder / "site")
    world.stand_ins |= {r"<id>": run.id, r"ITEM": "q00003"}


def retrieval_and_tools(world: World) -> None:
    folder = world.folder / "guidelines"
    folder.mkdir()
    for name, text in makers.CONDITIONS.items():
        (folder / f"{name}.txt").write_text(text)
    contexts.furnish(world.folder)
    for name, run in zip(
        ("QUIZ", "JUDGED", "COMPARED"), contexts.three_runs(world.folder), strict=True
    ):
        run.path.rename(world.folder / "runs" / name)


def reviews(world: World) -> None:
    world.models("m", "n", *JUDGES)
    world.bank("BANK", [{**item, "source": "a textbook"} for item in makers.many_items(12)])
    shutil.copytree(world.folder / "BANK", world.folder / "OTHER")
    world.bank("bank", makers.open_items(60))
    world.plan(models=["m", "n"], judges=list(JUDGES), task="open")
    world.run(to="ID")
    other = world.folder / "other"
    other.mkdir()
    refined = {
        key: text.replace("->", "-> then", 1) if key.startswith("make_path") else text
        for key, text in shops.replies().items()
    }
    plan = shops.write_shop(other, refined)
    synthesize(plan, world.folder / "shop", secrets={}, workspace=other)

    def close_answers() -> None:
        _reviewed("answers", ("dora", "emil", "finn"))
        call(["review", "study", "close", "answers", "--yes"])

    world.steps |= {
        "medassay review study close": lambda: _reviewed("items", ("ada", "ben", "cleo")),
        "medassay review export NAME --labels": close_answers,
    }
    world.stand_ins |= {
        r"export NAME --(?=labels|answers)": "export answers --",
        r"\bNAME\b": "items",
        r"\bFOLDER\b": "BANK",
        r"\bWHO\b": "Ada",
        r"\bWHY\b": "checked",
    }


def _reviewed(study: str, names: tuple[str, ...]) -> None:
    """Let three people review everything in a study."""
    with closing(open_database("review.sqlite")) as database, database.write() as db:
        found = db.get_one(Study, study)
        people = reviewing.people(db, found, **dict.fromkeys(names, "reviewer"))
        assign_all(db, found, who="tests")
        for account in people.values():
            reviewing.review_all(db, found, account, _fields)


def _fields(work: Work) -> dict[str, str]:
    facts = {f"fact-{fact['id']}": "entail" for fact in work.content.get("facts", ())}
    asked = ("question", "answer", *(["path"] if work.content.get("path") else []))
    return {**facts, "overall": "4"} if facts else dict.fromkeys(asked, "5")


def suites(world: World) -> None:
    folder = world.data / "mts_dialog/correlation_study"
    for path in folder.glob("MTS-Dialog-*.csv"):
        shutil.copyfile(path, world.folder / path.name)


def your_own_questions(world: World) -> None:
    sheet = ["Nr;Frage;A;B;C;Richtig;Musterantwort;Zahl"]
    sheet += [f"{n};Welche Größe {n}?;rot;grün;blau;{'ABC'[n % 3]};;" for n in range(12)]
    sheet += [f"{n};Wie behandelt man Fall {n}?;;;;;Mit Ruhe.;" for n in range(12, 23)]
    sheet += ["23;Wie hoch ist Kalium?;;;;;;3,5 - 5,1"]
    (world.folder / "fragen.csv").write_bytes("\r\n".join(sheet).encode("cp1252"))
    with (world.folder / "questions.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        heads = ["No", "Question", "a", "b", "c", "d", "Key", "Answer", "Specialty"]
        writer.writerow(heads)
        for n in range(6):
            options = ["one", "two", "three", "four", "ABCD"[n % 4], ""]
            row = options if n % 2 else ["", "", "", "", "", "Rest."]
            writer.writerow([n, f"Which of these is number {n}?", *row, "cardiology"])
    rows = ["item,model,answer", *(f"{n},gemma-3-4b,{'ABC'[n % 3]}" for n in range(12))]
    (world.folder / "answers.csv").write_text("\n".join(rows) + "\n")
    world.stand_ins = {
        "http://localhost:8000/v1": world.url,
        "study/runs/<id>": lambda: f"study/{_newest_in(world.folder / 'study')}",
    }


def your_own_code(world: World) -> None:
    text = Path("docs/how-to/your-own-code.md")
    text = (Path(__file__).parents[2] / text).read_text(encoding="utf-8")
    for language, file in (("python", "my.py"), ("toml", "plan.toml")):
        block = text.split(f"```{language}\n", 1)[1].split("```", 1)[0]
        (world.folder / file).write_text(block, encoding="utf-8")
    makers.write_bank(world.folder / "mine", text_items(4))
    models = [makers.fake(name, reply="A drooping face.") for name in ("small", "large")]
    makers.write_models(world.folder, *models)


def your_own_records(world: World) -> None:
    text = (Path(__file__).parents[2] / "docs/how-to/your-own-records.md").read_text("utf-8")
    for language, file in (("json", "letter.schema.json"), ("toml", "plan.toml")):
        block = text.split(f"```{language}\n", 1)[1].split("```", 1)[0]
        (world.folder / file).write_text(block, encoding="utf-8")
    (world.folder / "letters-in").mkdir()
    record = {"visit": "2026-01-05", "summary": "ok", "drugs": [{"name": "ASS", "dose": "1 g"}]}
    for n in range(3):
        (world.folder / f"letters-in/l{n}.txt").write_text(f"Brief {n}: ASS 1 g")
        (world.folder / f"letters-in/l{n}.json").write_text(json.dumps(record))
    models = [makers.fake(name, reply=json.dumps(record)) for name in ("small", "large")]
    makers.write_models(world.folder, *[{**model, "location": "local"} for model in models])


def _newest_in(folder: Path) -> str:
    [run] = (folder / "runs").iterdir()
    return f"runs/{run.name}"


def home(world: World) -> None:
    """Leave the folder empty: the home page begins with `medassay init`."""


def publish_a_board(world: World) -> None:
    """Furnish a run, and beside it the very board.toml of the page."""
    page = (ROOT / "docs/how-to/publish-a-board.md").read_text(encoding="utf-8")
    (world.folder / "board.toml").write_text(page.partition("```toml\n")[2].partition("```")[0])
    (world.folder / "logo.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    world.models("m", "n")
    world.bank("bank", makers.many_items(20))
    world.plan(models=["m", "n"])
    world.run()
    world.stand_ins[r"runs/<id>"] = world.newest
    world.stand_ins[r"<publication>"] = lambda: next((world.folder / "site" / "p").iterdir()).name


WORLDS: dict[str, Callable[[World], None]] = {
    "README.md": readme,
    "beyond-one-machine.md": one_machine,
    "budgets.md": budgets,
    "check-a-board.md": check_a_board,
    "choose-models.md": choose_models,
    "compare-models.md": compare_models,
    "differential-diagnosis.md": differential_diagnosis,
    "gate-a-release.md": compare_models,
    "health-records.md": health_records,
    "index.md": home,
    "how-replies-are-read.md": how_replies_are_read,
    "judges.md": judges,
    "making-banks.md": making_banks,
    "private-items.md": private_items,
    "publish-a-board.md": publish_a_board,
    "retrieval-and-tools.md": retrieval_and_tools,
    "reviews.md": reviews,
    "suites.md": suites,
    "your-own-code.md": your_own_code,
    "your-own-questions.md": your_own_questions,
    "your-own-records.md": your_own_records,
}


def stood_in(command: str, world: World) -> str:
    """Return a command with what its placeholders stand for."""
    for pattern, value in world.stand_ins.items():
        if re.search(pattern, command):
            text = value() if callable(value) else value
            command = re.sub(pattern, lambda _, text=text: text, command)
    return command
