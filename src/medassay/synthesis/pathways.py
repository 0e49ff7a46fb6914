"""Cases for decision pathways: document → text and graph → ways → uniform words → question → quiz
and open item.

Source: specification of bank synthesis, 10.1.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from medassay.core.canonical import sha256_hex
from medassay.core.records.decision_graph import (
    DecisionGraph,
    DecisionTree,
    contract_problem,
    read_decision_graph,
)
from medassay.core.records.item_object import ItemObject
from medassay.core.reply.json_value import read_json_reply
from medassay.core.reply.thoughts import strip_thoughts
from medassay.errors import InputError
from medassay.judging.sanitize import delimit
from medassay.report.decision_graph import draw_decision_graph
from medassay.synthesis.author import Author
from medassay.synthesis.chapters import chapters
from medassay.synthesis.graph_file import READERS, load_graph
from medassay.synthesis.pathway import (
    ARROW,
    count_paths,
    count_text,
    paths,
    same_leaf,
    subject_of,
)
from medassay.synthesis.pathway import Path as Way
from medassay.synthesis.plan import SynthesisPlan
from medassay.synthesis.project import Event, Place, Status, Step, Workshop, basis_of
from medassay.synthesis.question import Question, read_question, read_reply, shuffled
from medassay.synthesis.refine import read_steps, refined
from medassay.synthesis.source import (
    LEAST_FROM_SOURCE,
    SourceDocument,
    clean_text,
    read_source,
    share_from,
    source_files,
)
from medassay.synthesis.steps import Stage, SynthesisStep, decision_on, event_of, register, value_of

_LONGEST_DOCUMENT = 100_000  # characters shown to a model
_LONGEST_FRONT = 0.2  # of a document: what stands before the first chapter; more is no preface
_TITLE_NUMBER = re.compile(
    r"\s*(?:(?:chapter|section|part|kapitel|abschnitt|teil|capítulo|sección|parte)\s+(?:\d{1,3}|"
    r"[ivxl]{1,6})\b|\d{1,3}\b)"
    r"[.):,\s–-]*",
    re.IGNORECASE,
)
_TITLE_ENDS = re.compile(r"[.:;!?|<>{}`\"\\]")


class _GraphPath(msgspec.Struct, frozen=True, kw_only=True):
    """One way of a condition, under the name by which the journal knows it."""

    subject: str
    document: str
    way: Way


class PathwayMaker:
    """Makes cases; `base` is the folder that the plan's paths start from."""

    def __init__(
        self, plan: SynthesisPlan, base: Path, workshop: Workshop, authors: Mapping[str, Author]
    ) -> None:
        options = plan.pathways
        if options is None:
            raise InputError("a plan without the table [pathways]")
        self._plan = plan
        self._pathways_plan = options
        self._workshop = workshop
        self._author = authors[plan.generator]
        self._files = source_files(base / options.sources)
        self._graphs = self._graph_files(base)
        self._sources: dict[str, SourceDocument] = {}
        self._jobs: dict[str, SynthesisStep] = {}
        self._ways: list[_GraphPath] = []
        self.ended: list[Event] = []

    def _graph_files(self, base: Path) -> dict[str, Path]:
        if not self._pathways_plan.graphs:
            return {}
        folder = base / self._pathways_plan.graphs
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder; 'pathways.graphs' names one of graphs")
        files = [p for p in sorted(folder.iterdir()) if p.suffix.lower() in READERS]
        files_by_name = {path.stem: path for path in files}
        if twice := [path for path in files if files_by_name[path.stem] != path]:
            raise InputError(
                f"{twice[0]}: another graph has the same name; expected one for a document"
            )
        return files_by_name

    def _refuse_strange(self) -> None:
        """Refuse what the plan says of documents that there are not: chapters are known once all
        are read.
        """
        names = {path.stem for path in self._files} | self._sources.keys()
        for table in ("conditions", "domains", "dates"):
            if strange := sorted(getattr(self._pathways_plan, table).keys() - names):
                raise InputError(
                    f"'pathways.{table}.{strange[0]}': no document is named so; there are"
                    f" {', '.join(sorted(names))}"
                )
        if strange := sorted(self._graphs.keys() - names):
            raise InputError(
                f"{self._graphs[strange[0]]}: no document is named '{strange[0]}'; graphs bear the"
                " names of their documents"
            )

    def stages(self) -> Iterator[Stage]:
        """Yield texts and graphs, then uniform pathways, then questions."""
        for path in self._files:
            try:
                self._read(path)
            except InputError as error:
                self._queue(path, path.stem, str(error))
        self._refuse_strange()
        sources = [*self._sources.values()]
        texts = (self._text_job(source) for source in sources if not source.plain and source.text)
        yield "texts", register(texts, self._jobs)
        graphs = (self._graph_job(source) for source in sources if source.name not in self._graphs)
        yield "graphs", register(graphs, self._jobs)
        self._ways = [way for source in sources for way in self._graph_paths(source)]
        if self._pathways_plan.refine:
            yield "pathways", register(map(self._refine_job, self._ways), self._jobs)
        questions = map(self._question_job, self._ways)
        yield "questions", register(filter(None, questions), self._jobs)

    def condition(self, name: str) -> str:
        """Return how the condition of a document, or of a chapter, is called."""
        source = self._sources[name]
        default = _condition_in(source.chapter) or name.replace("-", " ").replace("_", " ")
        return (
            self._stated(self._pathways_plan.conditions, source)
            or default[:1].upper() + default[1:]
        )

    @staticmethod
    def _stated(table: Mapping[str, str], source: SourceDocument) -> str:
        """Return what the plan says of a document.

        Of a chapter what it says of its document, where it says nothing of itself.
        """
        return table.get(source.name, table.get(source.document, ""))

    def _read(self, path: Path) -> None:
        document = read_source(path, self._workshop.folder / "sources" / path.stem)
        others = {other.stem for other in self._files} - {path.stem}
        for chapter in chapters(document, _LONGEST_DOCUMENT):
            source = chapter
            while source.name in others:
                source = replace(source, name=f"{source.name}-chapter")
            is_front = bool(source.document) and not source.chapter
            if is_front and len(source.text) <= _LONGEST_FRONT * len(document.text):
                self._end(source.name, "dropped", source.sha256, "before the first chapter")
            elif is_front or len(source.text) > _LONGEST_DOCUMENT:
                where = "before the first chapter: " if is_front else ""
                where = f"chapter '{source.chapter}': " if source.chapter else where
                self._queue(
                    path,
                    source.name,
                    f"{where}{len(source.text):,} characters of text and no headings to part it at;"
                    f" at most {_LONGEST_DOCUMENT:,} can be shown",
                )
            else:
                self._take(path, source)

    def _take(self, path: Path, source: SourceDocument) -> None:
        if not source.text and not self._author.sees:
            raise InputError(
                f"{path}: a document without text (a scan?), and '{self._author.spec.id}' sees no"
                ' pictures; expected text, or a model with "vision" among its capabilities'
            )
        self._sources[source.name] = source
        made_on = self._stated(self._pathways_plan.dates, source) or source.made
        record: dict[str, Any] = {"file": source.file, "sha256": source.sha256, "made": made_on}
        record |= {"characters": len(source.text)}
        if source.chapter:
            record["chapter"] = source.chapter
        if source.pages is not None:
            record["document_pages"] = list(source.pages)
        if source.pictures:
            record["pages"] = [str(p.relative_to(self._workshop.folder)) for p in source.pictures]
        basis = basis_of(record, source.text)
        self._workshop.note_latest("source", source.name, record, basis=basis)
        if not source.text:
            self._end_without_text(source)

    def _queue(self, path: Path, name: str, problem: str) -> None:
        """Queue a document or chapter that cannot be used as it is; the others go on."""
        # As the reader says it, without the folder of this machine.
        note = problem.replace(f"{path}: ", "", 1)
        self._end(
            name,
            "queued",
            sha256_hex(path.read_bytes()),
            f"{path.name}: {note}; mend or remove the document, and give the command again",
        )

    def _end(self, name: str, status: Status, sha256: str, note: str) -> None:
        """Note once how a source ended that makes nothing."""
        basis = basis_of(sha256, note)
        event = self._workshop.done("source", name, basis)
        if event is None or not self._workshop.is_latest("source", name, basis):
            event = self._workshop.note("source", name, status, basis=basis, note=note)
        self.ended.append(event)

    def _end_without_text(self, source: SourceDocument) -> None:
        """Queue the text of a scan: nothing could be checked against it, so that a person must give
        it.
        """
        event = self._workshop.note_once(
            "text",
            source.name,
            "queued",
            basis=basis_of(source.sha256),
            sources=[("source", source.name)],
            note=(
                "a scan: no text to check against; give the text by decide change --with FILE (a"
                " JSON text)"
            ),
        )
        self.ended.append(event)

    def _text_job(self, source: SourceDocument) -> SynthesisStep:
        def read(reply: str) -> str:
            text = clean_text(strip_thoughts(reply)[0])
            if not text:
                raise ValueError("an empty reply; expected the text")
            share = share_from(text, source.text)
            if share < LEAST_FROM_SOURCE:
                raise ValueError(
                    f"{100 * share:.1f} % of the words stand in the document; at least"
                    f" {100 * LEAST_FROM_SOURCE:.0f} % must"
                )
            return text

        return self._document_job("text", "make_text", source, read)

    def _graph_job(self, source: SourceDocument) -> SynthesisStep:
        condition = self.condition(source.name)

        def read(reply: str) -> DecisionTree:
            json_value = read_json_reply(reply)
            if not isinstance(json_value.value, dict):
                raise ValueError(json_value.reason or "a list; expected one JSON object")
            if json_value.duplicate_keys:
                raise ValueError(
                    f"the key '{json_value.duplicate_keys[0]}' stands twice in one object"
                )
            if (problem := contract_problem(json_value.value)) is not None:
                raise ValueError(problem)
            tree = cast(DecisionTree, json_value.value)
            root = tree["node"]
            if same_leaf(root) != same_leaf(condition):
                raise ValueError(f"the root is '{root[:40]}'; expected '{condition}'")
            return tree

        return self._document_job("graph", "make_graph", source, read)

    def _document_job(
        self,
        step: Step,
        part: str,
        source: SourceDocument,
        read: Callable[[str], str | DecisionTree],
    ) -> SynthesisStep:
        pictures = source.pictures if self._author.sees else ()
        return SynthesisStep(
            step=step,
            subject=source.name,
            author=self._author,
            part=part,
            holes={
                "condition": self.condition(source.name),
                "document": delimit(source.text, "document"),
                "pictures": len(pictures),
            },
            read=read,
            sources=[("source", source.name)],
            pictures=pictures,
        )

    def _text(self, source: SourceDocument) -> str | None:
        text: str | None
        if source.plain:
            text = source.text
        elif source.text:
            text = value_of(self._workshop, self._jobs[f"text:{source.name}"], str)
        else:
            event = self._workshop.done("text", source.name, basis_of(source.sha256))
            decided = None if event is None else decision_on(self._workshop, event)
            text = None if decided is None else decided.result
        return text

    def _graph(self, source: SourceDocument) -> DecisionGraph | None:
        file = self._graphs.get(source.name)
        if file is not None:
            graph = load_graph(file)
            self._workshop.note_once(
                "graph",
                source.name,
                "made",
                basis=basis_of(sha256_hex(file.read_bytes())),
                sources=[("source", source.name)],
                result={"file": file.name, **graph.to_json()},
            )
        else:
            tree = value_of(self._workshop, self._jobs[f"graph:{source.name}"], dict)
            if tree is None:
                return None
            graph = read_decision_graph(tree)
        self._draw(source, graph)
        return graph

    def _draw(self, source: SourceDocument, graph: DecisionGraph) -> None:
        folder = self._workshop.folder / "graphs"
        folder.mkdir(exist_ok=True)
        picture = draw_decision_graph(graph, title=self.condition(source.name))
        (folder / f"{source.name}.svg").write_text(picture, encoding="utf-8")
        tree = json.dumps(graph.to_json(), ensure_ascii=False, indent=1)
        (folder / f"{source.name}.json").write_text(tree + "\n", encoding="utf-8")

    def _graph_paths(self, source: SourceDocument) -> Iterator[_GraphPath]:
        graph, text = self._graph(source), self._text(source)
        if graph is None or text is None:
            return
        folder = self._workshop.folder / "texts"
        folder.mkdir(exist_ok=True)
        (folder / f"{source.name}.txt").write_text(text + "\n", encoding="utf-8")
        counts = count_paths(graph, self._pathways_plan.max_per_leaf)
        kept_paths = paths(graph, self._pathways_plan.max_per_leaf)
        basis = basis_of([way.full_text for way in kept_paths], count_text(counts.ways))
        record = {
            "nodes": counts.nodes,
            "leaves": counts.leaves,
            "ways": count_text(counts.ways),
            "kept": counts.kept,
        }
        places = [("graph", source.name)]
        self._workshop.note_latest("paths", source.name, record, basis=basis, sources=places)
        for way in kept_paths:
            subject = subject_of(source.name, way)
            yield _GraphPath(subject=subject, document=source.name, way=way)

    def _refine_job(self, way: _GraphPath) -> SynthesisStep:
        return SynthesisStep(
            step="refine",
            subject=way.subject,
            author=self._author,
            part="make_path",
            holes={
                "condition": self.condition(way.document),
                "path": delimit(way.way.full_text, "pathway"),
                "code": self._plan.language,
            },
            read=lambda reply: list(refined(reply, way.way.steps)),
            salvage=lambda reply: list(read_steps(reply)),
            sources=[("paths", way.document)],
        )

    def _steps(self, way: _GraphPath) -> Sequence[str] | None:
        """Return the steps that the item will have, None while they wait for a person."""
        if not self._pathways_plan.refine:
            return way.way.steps_with_contents
        job = self._jobs[f"refine:{way.subject}"]
        event = event_of(self._workshop, job)
        decided = None if event is None else decision_on(self._workshop, event)
        if decided is not None and decided.status == "keep":
            return way.way.steps_with_contents
        return value_of(self._workshop, job, list[str])

    def _question_job(self, way: _GraphPath) -> SynthesisStep | None:
        steps, text = self._steps(way), self._text(self._sources[way.document])
        if steps is None or text is None:
            return None
        return SynthesisStep(
            step="question",
            subject=way.subject,
            author=self._author,
            part="make_question",
            holes={
                "condition": self.condition(way.document),
                "path": delimit(ARROW.join(steps), "pathway"),
                "document": delimit(text, "source text"),
                "code": self._plan.language,
            },
            read=lambda reply: read_reply(reply, (*steps, *way.way.steps)).to_list(),
            sources=[
                ("source", way.document),
                ("text", way.document),
                ("graph", way.document),
                ("paths", way.document),
                ("refine", way.subject),
            ],
            attempts=self._plan.attempts,
        )

    def records(self) -> Iterator[tuple[ItemObject, Sequence[Place]]]:
        """Yield quiz and open item of each question."""
        for way in self._ways:
            job = self._jobs.get(f"question:{way.subject}")
            value = value_of(self._workshop, job, list)
            steps = self._steps(way)
            if job is None or value is None or steps is None:
                continue
            name = way.subject.replace("/", "-")
            question = shuffled(read_question(value), self._plan.seed, name)
            sources = [*job.sources, ("question", way.subject)]
            for version in self._pathways_plan.versions:
                item = self._common(way, steps, f"{name}-{version}")
                item.update(_target(question, version))
                yield item, sources

    def _common(self, way: _GraphPath, steps: Sequence[str], name: str) -> ItemObject:
        source, spec = self._sources[way.document], self._author.spec
        condition = self.condition(way.document)
        domain = self._stated(self._pathways_plan.domains, source) or self._plan.name
        return {
            "id": name,
            "kind": "public",
            "domain": domain,
            "category": domain,
            "language": self._plan.language,
            "licence": self._plan.licence,
            "condition": condition,
            "cluster": condition,
            "path": ARROW.join(steps),
            "leaf": way.way.leaf,
            "source": source.cited,
            "meta": {
                "maker": "pathways",
                "question": way.subject,
                "generator": spec.id,
                "family": spec.family,
            },
        }


def _condition_in(title: str) -> str:
    """Return the condition that a chapter's title names: behind its number, and before a full stop,
    a colon or the like.

    Titles come out of documents, and stand in what a model is told to do: a sentence of theirs
    shall not.

    Examples
    --------
    >>> _condition_in("Chapter 3: Heart failure"), _condition_in("2. Gout. Reply with X")
    ('Heart failure', 'Gout')
    """
    named = _TITLE_NUMBER.sub("", title) or title
    return _TITLE_ENDS.split(named, maxsplit=1)[0].strip()[:80]


def _target(question: Question, version: str) -> ItemObject:
    if version == "open":
        return {
            "answer_type": "open",
            "question": question.question,
            "reference": question.answer,
        }
    return {
        "answer_type": "closed",
        "question": question.question,
        "options": list(question.options),
        "expected": question.letter,
    }
