"""One command for a whole suite: banks from the files that are here, a run for each task, resumed
where it was interrupted.

A suite lies in `suites/<name>-<hash>/`: `suite.json` says what is done, `models.json` holds the
entries asked. Its runs are ordinary runs of the workspace, each sealed and verifiable by itself.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, structs

from medassay import pipeline
from medassay.core.canonical import short_hash
from medassay.core.files import write_whole
from medassay.core.json import parse_json, record_as
from medassay.core.keyed import KeyedRecord
from medassay.core.records.likelihood import Asks
from medassay.core.records.manifest import RunMetric
from medassay.core.records.model import ModelSpec
from medassay.core.records.preview import ModelPreview, Preview
from medassay.core.records.relaxed import RelaxedSetting
from medassay.errors import GateError, IncompleteError, InputError, IntegrityError
from medassay.kinds.catalog import find_task
from medassay.model.spec import load_models, named
from medassay.prompt.own_template import is_file
from medassay.runner.measure import text_measures_of
from medassay.runner.preview import preview, preview_of, priced
from medassay.runner.progress import ProgressFactory
from medassay.runner.rejudge import JudgingOptions, judge_run
from medassay.runner.replication import rerun_of
from medassay.storage.run import Run, open_run
from medassay.suite.banks import SuiteBank, SuiteBanks
from medassay.suite.benchmark import LIKELIHOOD, Benchmark, relative_task
from medassay.suite.catalog import BENCHMARKS
from medassay.suite.plan import SuitePlan

RECORD = "suite.json"
_RUN_NAME = re.compile(r"[0-9a-z][0-9a-z-]*")
FOLDER = "suites"
_LONGEST = 60  # characters of a folder's name before its hash
ANSWERS, PERPLEXITY, RELAXED, JUDGED = "answers", "perplexity", "relaxed", "prometheus"
Tell = Callable[[str], None]
_ASKS: Mapping[str, Asks] = {PERPLEXITY: "alone", RELAXED: "relaxed"}
TomlValue = str | float | Sequence[Any] | Mapping[str, Any]  # in a plan


class BenchmarkPart(KeyedRecord, msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark of a suite as it stands: its runs by kind, and why what is not there is not.

    Of a stand-in, for what it stands and why.

    Suites made before `bank` was kept have none.
    """

    KEYS: ClassVar = ("benchmark", "runs", "absent", "instead_of", "why", "bank")

    benchmark: str
    runs: dict[str, str] = msgspec.field(default_factory=dict)
    absent: dict[str, str] = msgspec.field(default_factory=dict)
    instead_of: str = ""
    why: str = ""
    bank: SuiteBank = SuiteBank()


class _SuiteNames(msgspec.Struct):
    """Which suites of the catalogue a record is of."""

    suite: list[str] = []


class SuiteRun(msgspec.Struct, frozen=True):
    """A suite in a workspace."""

    folder: Path
    record: Mapping[str, Any]

    @property
    def parts(self) -> list[BenchmarkPart]:
        """Return its benchmarks."""
        entries = record_as(self.record["parts"], list[dict[str, Any]], RECORD)
        parts = [record_as(entry, BenchmarkPart, f"{RECORD}: parts") for entry in entries]
        for part in parts:
            self.benchmark(part.benchmark)
            for name in part.runs.values():
                if not _RUN_NAME.fullmatch(name):
                    raise IntegrityError(f"{RECORD}: '{name[:60]}' is no name of a run")
        return parts

    @property
    def workspace(self) -> Path:
        """Return the folder of runs/."""
        return self.folder.resolve().parents[1]

    def benchmark(self, name: str) -> Benchmark:
        """Return one of its benchmarks: the user's own as the record holds it, or the
        catalogue's.
        """
        plan = record_as(self.record.get("plan", {}), dict[str, Any], RECORD)
        for entry in record_as(plan.get("benchmark", []), list[dict[str, Any]], RECORD):
            if entry.get("name") == name:
                return record_as(entry, Benchmark, f"{RECORD}: benchmark '{name}'")
        if name not in BENCHMARKS:
            raise IntegrityError(f"{RECORD}: benchmark '{name[:60]}' is unknown, and not its own")
        return BENCHMARKS[name]

    def run(self, name: str) -> Run:
        """Return one of its runs."""
        return open_run(self.workspace / "runs" / name)


def open_suite(folder: Path) -> SuiteRun:
    """Return the suite in a folder.

    Raises
    ------
    InputError
        When there is none.
    """
    path = folder / RECORD
    if not path.is_file():
        raise InputError(
            f"{folder}: no {RECORD}; `medassay suite run NAME --model …` makes a suite"
        )
    record = parse_json(path.read_bytes(), str(path))
    if not isinstance(record, dict) or "parts" not in record:
        raise InputError(f"{path}: not the record of a suite")
    record_as(record, _SuiteNames, RECORD)
    return SuiteRun(folder, record)


def write_record(folder: Path, parts: Iterable[BenchmarkPart], **record: Any) -> None:
    """Write what a suite is, whole or not at all."""
    document = {"schema_version": 1, **record, "parts": [part.to_dict() for part in parts]}
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document, ensure_ascii=False, indent=1)
    write_whole(folder / RECORD, f"{text}\n".encode())


def is_suite_folder(folder: Path) -> bool:
    """Return whether a folder holds a suite."""
    return (folder / RECORD).is_file()


class SuiteContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a suite is run with: where files and runs are, who may know what, who is told.

    `base` is the folder that names in its plan are relative to; the rest is as in
    `medassay.pipeline.run`.
    """

    data: Path
    base: Path = Path()
    workspace: Path
    secrets: Mapping[str, str]
    watch: ProgressFactory | None = None
    tell: Tell = lambda line: None
    accept_failures: bool = False
    fresh: bool = False
    engine: str = "local"
    trust_code: bool = False


def run_suite(plan: SuitePlan, specs: Mapping[str, ModelSpec], context: SuiteContext) -> SuiteRun:
    """Run every benchmark of a suite whose files are here.

    The same call goes on where it was interrupted.

    Parameters
    ----------
    specs : entries of models by id, the judge among them

    Raises
    ------
    InputError
        When a model is unknown, or no benchmark has its files here.
    IncompleteError
        When trials failed: all other benchmarks are done, and the same call resumes.
    """
    return _Work(plan, specs, context).run()


class _Work:
    """The running of one suite."""

    def __init__(
        self, plan: SuitePlan, specs: Mapping[str, ModelSpec], context: SuiteContext
    ) -> None:
        self._plan, self._means = plan, context
        self._specs = {
            name: named(specs, name, "suite: model", plan.models_file)
            for name in (*plan.models, *filter(None, [plan.judge]))
        }
        self._entries = [_entry(spec) for _, spec in sorted(self._specs.items())]
        # Another entry of the same name is another suite.
        made_of = short_hash([plan.hash, self._entries])
        self._folder = context.workspace / FOLDER / f"{plan.name[:_LONGEST]}-{made_of}"
        self._banks = SuiteBanks(context.data, context.workspace, context.tell, context.base)
        self._unfinished: list[str] = []
        self._apart: list[str] = []  # fresh runs that differ from the stored ones

    def preview(self) -> Preview:
        """Return what all runs of the suite would ask; banks are made, nothing is called."""
        rows: dict[str, list[ModelPreview]] = {}
        lines: list[str] = []
        uncounted: set[str] = set()
        for part in self._begin():
            if part.absent.get(ANSWERS):
                lines.append(f"unavailable: {part.benchmark}: {part.absent[ANSWERS]}")
                continue
            for kind in self._kinds(part):
                if kind in part.runs:
                    continue
                if kind == JUDGED:
                    lines.append(
                        f"{part.benchmark}: judged by '{self._plan.judge}' once answers are there;"
                        " that is not counted here"
                    )
                    if priced(self._specs, [self._plan.judge]):
                        uncounted.add(self._plan.judge)
                    continue
                path = self._written_plan(part, kind)
                if path is None:
                    continue
                counted_run = preview(
                    path, workspace=self._means.workspace, fresh=self._means.fresh
                )
                lines += [f"{part.benchmark}: {line}" for line in counted_run.limits]
                lines += [line for line in counted_run.own_code if line not in lines]
                for model in counted_run.models:
                    rows.setdefault(model.model, []).append(model)
        counted = preview_of([_together(models) for models in rows.values()])
        unpriced = sorted({*counted.unpriced, *uncounted})
        return structs.replace(counted, unpriced=unpriced, limits=lines)

    def run(self) -> SuiteRun:
        parts = self._begin()
        self._write(parts)
        present = [part for part in parts if not part.absent.get(ANSWERS)]
        if not present:
            raise InputError(
                f"suite '{self._plan.name}': no benchmark has its files in {self._means.data}: "
                + "; ".join(f"{part.benchmark}: {part.absent[ANSWERS]}" for part in parts[:3])
            )
        for part in parts:
            if part.absent.get(ANSWERS):
                self._means.tell(f"unavailable: {part.benchmark}: {part.absent[ANSWERS]}")
        for number, part in enumerate(present, 1):
            for kind in self._kinds(part):
                if kind in part.runs or kind in part.absent:
                    continue
                self._means.tell(f"[{number}/{len(present)}] {part.benchmark}: {kind}")
                self._step(part, kind)
                self._write(parts)
        if not any(ANSWERS in part.runs for part in parts) and not self._unfinished:
            reasons = [why for part in present for why in part.absent.values()]
            raise InputError(
                f"suite '{self._plan.name}': no benchmark could be asked: {reasons[0]}"
            )
        if self._unfinished:
            raise IncompleteError(
                f"suite {self._folder.name}: {len(self._unfinished)} runs are not finished:"
                f" {'; '.join(self._unfinished[:3])}; the same command resumes"
            )
        if self._apart:
            raise GateError(
                f"suite {self._folder.name}: beyond tolerance of the stored runs:"
                f" {'; '.join(self._apart[:3])}; all runs are sealed, see their findings"
            )
        return open_suite(self._folder)

    def _begin(self) -> list[BenchmarkPart]:
        """Return the parts as they stand; banks are made from the files that are here."""
        self._folder.mkdir(parents=True, exist_ok=True)
        document = {"schema_version": 1, "models": self._entries}
        (self._folder / "models.json").write_text(
            json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
        )
        stored_parts: dict[str, BenchmarkPart] = {}
        if is_suite_folder(self._folder) and not self._means.fresh:
            stored_parts = {part.benchmark: part for part in open_suite(self._folder).parts}
        parts: dict[str, BenchmarkPart] = {}
        for name in self._plan.benchmarks:
            chosen, bank, why = self._available(name)
            if chosen in parts:  # a stand-in that was asked for besides
                continue
            part = stored_parts.get(chosen, BenchmarkPart(benchmark=chosen))
            if isinstance(bank, str) and part.runs:
                self._means.tell(f"{chosen}: {bank}; its stored runs stand")
                parts[chosen] = part
                continue
            parts[chosen] = BenchmarkPart(
                benchmark=chosen,
                runs={} if isinstance(bank, str) else self._valid(part, bank),
                absent={ANSWERS: bank} if isinstance(bank, str) else {},  # may be there by now
                instead_of=name if chosen != name else "",
                why=why,
                bank=SuiteBank() if isinstance(bank, str) else bank,
            )
        return [*parts.values()]

    def _valid(self, part: BenchmarkPart, bank: SuiteBank) -> dict[str, str]:
        """Return the runs of a part that still hold: of the bank as its files are now, compared by
        the metrics that are here now.
        """
        runs = {kind: name for kind, name in part.runs.items() if self._has_asked(name, bank)}
        if len(runs) < len(part.runs):
            self._means.tell(f"{part.benchmark}: its files changed, so it is asked anew")
        benchmark = self._plan.benchmark_of(part.benchmark)
        if ANSWERS not in runs or not benchmark.is_open:
            return runs
        manifest = self._run(runs[ANSWERS]).manifest
        now = text_measures_of(self._plan.metrics, find_task(benchmark.task)).to_dict()
        if manifest.metrics == msgspec.convert(now, dict[str, RunMetric]):
            return runs
        self._means.tell(
            f"{part.benchmark}: other metrics are here by now; its stored answers are compared"
            " again"
        )
        return {k: v for k, v in runs.items() if k not in (ANSWERS, JUDGED)}

    def _has_asked(self, name: str, bank: SuiteBank) -> bool:
        contents = {bank_entry.content_sha256 for bank_entry in self._run(name).manifest.banks}
        return contents == {bank.content_sha256}

    def _run(self, name: str) -> Run:
        return open_run(self._means.workspace / "runs" / name)

    def _available(self, name: str) -> tuple[str, SuiteBank | str, str]:
        """Return the benchmark to run for a name, itself or its stand-in.

        Its bank or why there is none, and why it is a stand-in.
        """
        bank = self._banks.make(self._plan.benchmark_of(name))
        if isinstance(bank, SuiteBank):
            return name, bank, ""
        for other, benchmark in {**BENCHMARKS, **self._plan.own}.items():
            if benchmark.stands_in_for == name:
                bank_made = self._banks.make(benchmark)
                if isinstance(bank_made, SuiteBank):
                    return other, bank_made, bank
        return name, bank, ""

    def _kinds(self, part: BenchmarkPart) -> list[str]:
        benchmark = self._plan.benchmark_of(part.benchmark)
        kinds = [ANSWERS]
        if benchmark.is_open and self._plan.judge:
            kinds.append(JUDGED)
        if benchmark.is_open and self._plan.perplexities:
            kinds += [PERPLEXITY, *([RELAXED] if benchmark.relaxed else [])]
        return kinds

    def _step(self, part: BenchmarkPart, kind: str) -> None:
        """Make one run of a benchmark.

        What cannot be asked is noted, what is not finished resumes.
        """
        if kind == JUDGED and ANSWERS not in part.runs:
            return  # they are not whole yet
        try:
            if kind == JUDGED:
                part.runs[kind] = self._judge(part).id
                return
            path = self._written_plan(part, kind)
            if path is None:
                part.absent[kind] = "no model here tells likelihoods"
                return
            run_made = pipeline.run(
                path,
                secrets=self._means.secrets,
                workspace=self._means.workspace,
                watch=self._means.watch,
                fresh=self._means.fresh,
                accept_failures=self._means.accept_failures,
                engine=self._means.engine,
                trust_code=self._means.trust_code,
                tell=self._means.tell,
            )
            part.runs[kind] = run_made.id
            rerun = rerun_of(run_made) if self._means.fresh else None
            if rerun is not None and rerun.beyond:
                self._apart.append(f"{part.benchmark} ({kind})")
        except IncompleteError as error:
            self._unfinished.append(f"{part.benchmark} ({kind}): {error}")
        except InputError as error:
            part.absent[kind] = self._banks.without_paths(error)
            self._means.tell(f"refused: {part.benchmark}, {kind}: {error}")

    def _written_plan(self, part: BenchmarkPart, kind: str) -> Path | None:
        """Return the plan of one run as a file, None where no model can be asked."""
        run_plan = self._run_plan(part, kind)
        if not run_plan["models"]:
            return None
        path = self._folder / f"{part.benchmark}-{kind}.toml"
        path.write_text(_toml(run_plan), encoding="utf-8")
        return path

    def _run_plan(self, part: BenchmarkPart, kind: str) -> dict[str, TomlValue]:
        """Return the plan of one run, its paths relative to the folder of the suite."""
        benchmark, plan = self._plan.benchmark_of(part.benchmark), self._plan
        beside = os.path.relpath(self._means.base.resolve(), self._folder.resolve()) + "/"
        asks = _ASKS.get(kind)
        models = plan.models
        if asks is not None:
            chat = plan.chat_template and kind == RELAXED
            models = tuple(
                name
                for name in models
                if self._specs[name].cannot_tell(asks, chat_template=chat) is None
            )
        task = {PERPLEXITY: "perplexity", RELAXED: "relaxed_perplexity"}.get(kind, benchmark.task)
        if task == LIKELIHOOD and self._none_tells():
            task = "closed"
        folder = part.bank.folder
        answers = kind == ANSWERS
        own = benchmark.own if answers else None
        template = benchmark.reply_template if task == "closed" else benchmark.template
        metrics = benchmark.metrics or plan.metrics
        chat = plan.chat_template and kind != PERPLEXITY and task != "closed"
        relaxed = (plan.relaxed_perplexity or RelaxedSetting()) if kind == RELAXED else None
        options: dict[str, TomlValue | None] = {
            "name": f"{part.benchmark} ({kind})",
            "task": task or None if own is None else relative_task(own, beside),
            "banks": [f"../../banks/{folder}" if folder else beside + part.bank.source],
            "models": models,
            "seed": plan.seed,
            "n_resamples": plan.n_resamples,
            "sample": plan.limit,
            "templates": (
                [beside + template if is_file(template) else template]
                if answers and template
                else None
            ),
            "metrics": metrics if answers and benchmark.is_open and metrics else None,
            **(_asked_otherwise(benchmark) if answers else {}),
            "chat_template": chat or None,
            "relaxed_perplexity": None if relaxed is None else relaxed.to_dict(),
        }
        return {name: value for name, value in options.items() if value is not None}

    def _none_tells(self) -> bool:
        """Return whether no model but baselines tells the likelihood of options: then replies are
        read, in a task of that name.
        """
        chat = self._plan.chat_template
        specs_asked = [s for n in self._plan.models if not (s := self._specs[n]).is_baseline]
        return all(spec.cannot_tell("choices", chat_template=chat) for spec in specs_asked)

    def _judge(self, part: BenchmarkPart) -> Run:
        answers = self._run(part.runs[ANSWERS])
        options = JudgingOptions(
            judges=(self._plan.judge,),
            models_file=self._folder / "models.json",
            task="prometheus_text",
            allow_own=True,
        )
        return judge_run(
            answers,
            options,
            secrets=self._means.secrets,
            workspace=self._means.workspace,
            watch=self._means.watch,
            accept_failures=self._means.accept_failures,
        )

    def _write(self, parts: list[BenchmarkPart]) -> None:
        plan = self._plan
        write_record(self._folder, parts, suite=list(plan.suite), plan=plan.to_dict())


def _asked_otherwise(benchmark: Benchmark) -> dict[str, TomlValue]:
    """Return what a benchmark says of its run that is not as by default."""
    keys = ("settings", "repeats", "few_shot_k", "shuffle_options", "judges")
    return {
        key: value for key in keys if (value := getattr(benchmark, key)) != getattr(Benchmark, key)
    }


def _together(models: Sequence[ModelPreview]) -> ModelPreview:
    """Return what one model is asked in all runs of a suite."""
    first = models[0]
    return structs.replace(
        first,
        calls=sum(model.calls for model in models),
        stored=sum(model.stored for model in models),
        tokens=sum(model.tokens for model in models),
        money=round(sum(model.money for model in models), 6),
        max_tokens=UNSET,
        stop=UNSET,
    )


def preview_suite(
    plan: SuitePlan, specs: Mapping[str, ModelSpec], context: SuiteContext
) -> Preview:
    """Return what a suite would ask and cost; banks are made from their files, nothing is called.

    Parameters
    ----------
    specs : entries of models by id, the judge among them
    """
    return _Work(plan, specs, context).preview()


def _toml(values: Mapping[str, TomlValue]) -> str:
    """Return a plan as TOML; its one table comes last."""
    plain = {k: v for k, v in values.items() if not isinstance(v, Mapping)}
    tables = {k: v for k, v in values.items() if isinstance(v, Mapping)}
    lines = [f"{key} = {_value(value)}" for key, value in plain.items()]
    for name, table in tables.items():
        pairs = ((k, v) for k, v in table.items() if v is not None)
        lines += ["", f"[{name}]", *(f"{k} = {_value(v)}" for k, v in pairs)]
    return "\n".join(lines) + "\n"


def _value(value: TomlValue) -> str:
    if isinstance(value, Mapping):
        return (
            "{" + ", ".join(f"{k} = {_value(v)}" for k, v in value.items() if v is not None) + "}"
        )
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)


def _entry(spec: ModelSpec) -> dict[str, Any]:
    """Return an entry as a models file holds it, without what is as by default."""
    plain = ModelSpec(id=spec.id, provider=spec.provider, url=spec.url).to_dict() | {"url": ""}
    return {
        key: value
        for key, value in spec.to_dict().items()
        if key in ("id", "provider") or value != plain.get(key)
    }


def suite_models(path: Path, names: tuple[str, ...]) -> dict[str, ModelSpec]:
    """Return the entries of a models file, and those that a name alone describes:
    `embedded:smollm2`, or a folder of weights.

    Raises
    ------
    InputError
        When a name is neither an entry nor a folder.
    """
    entries = load_models(path) if path.is_file() else {}
    for name in names:
        folder = Path(name)
        if name in entries:
            continue
        if name.startswith("embedded:") or (folder / "config.json").is_file():
            key = name if name.startswith("embedded:") else folder.resolve().name
            entries[key] = ModelSpec(id=key, provider="transformers", path=name, location="local")
        elif not path.is_file():
            raise InputError(
                f"--model: '{name}' is no folder of weights, and there is no {path}; expected an"
                " entry of a models file, a folder, or embedded:smollm2"
            )
    return entries
