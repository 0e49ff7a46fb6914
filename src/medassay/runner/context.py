"""What prompts show besides the question: passages found by search, the reasoning path, the source
text of the condition.

All of it is found before anything is asked. What an index says of a query is kept in the workspace
(`retrieved/`), so that a run that goes on, or another one over the same questions, embeds none of
them again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medassay.core.canonical import sha256_hex
from medassay.core.records.context_config import (
    CONTEXTS,
    PASSAGES,
    PATHS,
    TEXTS,
    PromptContext,
    Retrieval,
)
from medassay.core.records.item import Item
from medassay.core.records.manifest_object import SearchedIndex
from medassay.core.records.plan import Plan
from medassay.core.records.trial import Setting
from medassay.errors import InputError, IntegrityError, Interrupted
from medassay.model.books import Books
from medassay.model.spec import ModelsSource
from medassay.runner.event_loop import run_async
from medassay.runner.progress import ProgressFactory, Stop, watching
from medassay.storage.measure import MeasureStore

if TYPE_CHECKING:
    from medassay.context.retrieval.index import Index
    from medassay.context.retrieval.own import OwnRetriever

_BATCH = 256  # queries searched at once


class Contexts:
    """The texts of a run's prompts; `described` is what a run remembers of where they are from.

    `trust_code` says whether a retriever of the user's may be executed.
    """

    def __init__(
        self,
        plan: Plan,
        base: Path,
        workspace: Path,
        *,
        assumed: bool = False,
        trust_code: bool = False,
    ) -> None:
        from medassay.context.retrieval.index import Index  # numpy
        from medassay.context.retrieval.own import OwnRetriever

        self._made_with = (plan, base.resolve(), workspace.resolve())
        self._settings = [setting for setting in plan.settings if setting in CONTEXTS]
        self.index: Index | OwnRetriever | None = None
        self.described: SearchedIndex = {}
        self._plan_retrieval = plan.retrieval
        # Whether as much as may be found stands for what was not searched for.
        self._assumed = assumed
        if plan.retrieval is not None:
            self.index = (
                OwnRetriever(plan.retrieval.retriever, workspace / "retrieved", trusted=trust_code)
                if plan.retrieval.retriever
                else Index(base / plan.retrieval.index)
            )
            self.described = describe(self.index, plan.retrieval)
            name = f"{self.index.id} {plan.retrieval.k} {plan.retrieval.query_prefix}"
            self._stored_results = MeasureStore(workspace / "retrieved", name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Let another process open the same index; what was found travels along."""
        from medassay.context.retrieval.own import OwnRetriever

        arguments: dict[str, Any] = {}
        if self.index is not None:
            arguments = {"_stored_results": self._stored_results}
        if isinstance(self.index, OwnRetriever):  # with what it found
            arguments |= {"index": self.index}
        return Contexts, self._made_with, arguments

    def load_own(self) -> None:
        """Load a retriever of the user's, so that what cannot work is told before anything is
        asked.

        Raises
        ------
        InputError
            When its code may not be executed, or cannot be imported.
        """
        from medassay.context.retrieval.own import OwnRetriever

        if isinstance(self.index, OwnRetriever):
            self.index.use(None, {})

    def check(self, items: Iterable[Item]) -> None:
        """Refuse items that lack what a setting shows, before anything is asked.

        Raises
        ------
        InputError
            Naming the setting, how many items lack it, and the first of them.
        """
        lacking: dict[Setting, list[str]] = {setting: [] for setting in self._settings}
        n = 0
        for item in items:
            n += 1
            for setting in self._settings:
                if (setting in PATHS and not item.path) or (
                    setting in TEXTS and self._text(item) is None
                ):
                    lacking[setting].append(item.id)
        for setting, item_ids in lacking.items():
            if item_ids:
                what = "reasoning path" if setting == "topline_path" else "source text"
                what = "path or source text" if setting == "topline_all" else what
                raise InputError(
                    f"setting '{setting}': {len(item_ids)} of {n} items have no {what}, the first"
                    f" is '{item_ids[0]}'; paths stand in the bank, source texts in the index under"
                    " the item's condition"
                )

    def find(
        self,
        items: Iterable[Item],
        models_file: ModelsSource,
        secrets: Mapping[str, str],
        watch: ProgressFactory | None,
        books: Books | None = None,
    ) -> None:
        """Search for the passages of all items that were not searched for before."""
        if not set(self._settings) & set(PASSAGES):
            return
        queries = {
            key: q for q in map(self._query, items) if (key := _key(q)) not in self._stored_results
        }
        if not queries:
            return
        index = self._searched()
        index.use(models_file, secrets, books)
        sizes = Counter({("index", "queries"): len(queries)})
        keys = list(queries)
        stop = Stop()
        with watching(watch, "queries", sizes, Counter()) as progress:

            async def work() -> None:
                try:
                    for at in range(0, len(keys), _BATCH):
                        if stop.soon:
                            raise Interrupted(
                                f"stopped: {at} of {len(keys)} queries are searched for and kept;"
                                " the same command resumes"
                            )
                        batch = keys[at : at + _BATCH]
                        await self._search(index, {key: queries[key] for key in batch})
                        for _ in batch:
                            progress.advance("index", "queries", "answered")
                finally:
                    await index.close()

            run_async(work, stop.ask)

    async def _search(self, index: "Index | OwnRetriever", queries: Mapping[str, str]) -> None:
        results = await index.search(list(queries.values()), self._rules.k)
        self._stored_results.put(
            {
                key: [float(chunk.chunk) for chunk in chunks]
                for key, chunks in zip(queries, results, strict=True)
            }
        )

    @property
    def _rules(self) -> Retrieval:
        assert self._plan_retrieval is not None  # the plan's check saw to it
        return self._plan_retrieval

    def _searched(self) -> "Index | OwnRetriever":
        assert self.index is not None  # the plan's check saw to it
        return self.index

    def _query(self, item: Item) -> str:
        return self._rules.query_prefix + item.question

    def _text(self, item: Item) -> str | None:
        if self.index is None or not item.condition:
            return None
        document = self.index.document(item.condition)
        return None if document is None or not document.text.strip() else document.text.strip()

    def evidence_for(self, setting: str, item: Item) -> PromptContext | None:
        """Return what a prompt shows in a setting, None for settings that show nothing."""
        if setting not in CONTEXTS:
            return None
        if setting in PASSAGES:
            return self._passages(item)
        return PromptContext(
            path=(item.path or "") if setting in PATHS else "",
            text=(self._text(item) or "") if setting in TEXTS else "",
        )

    def _passages(self, item: Item) -> PromptContext:
        index, numbers = self._searched(), self._stored_results.get(_key(self._query(item)))
        if numbers is None and not self._assumed:
            raise IntegrityError(
                f"retrieved/: nothing was found for item '{item.id}'; run the plan again, it is"
                " searched for"
            )
        if numbers is None:  # a preview asks before `find`: as much as there may be
            return PromptContext(passages=("x" * index.description.size,) * self._rules.k)
        places = [int(number) for number in numbers if number is not None]
        if any(not 0 <= place < index.n for place in places):
            raise IntegrityError("retrieved/: damaged; remove the folder, it is found again")
        chunks = [index.chunk(place) for place in places]
        document = index.document(item.condition) if item.condition else None
        return PromptContext(
            passages=tuple(chunk.text for chunk in chunks),
            retrieved=tuple((chunk.document, chunk.start) for chunk in chunks),
            own_source=(
                None
                if document is None
                else any(chunk.document == document.name for chunk in chunks)
            ),
        )


def _key(query: str) -> str:
    return sha256_hex(query.encode())[:32]


def describe(index: "Index | OwnRetriever", rules: Retrieval) -> SearchedIndex:
    """Return what a run remembers of an index and how it is searched; no place on a disk."""
    searched = index.description
    return {
        "index": index.id,
        "corpus_sha256": searched.corpus_sha256,
        "documents": searched.documents,
        "chunks": searched.chunks,
        "size": searched.size,
        "overlap": searched.overlap,
        "merging": searched.merging,
        "method": searched.method,
        "embedder": searched.embedder,
        "k": rules.k,
        "query_prefix": rules.query_prefix,
    }


def embedding_entry(index: "Index | OwnRetriever | None") -> str:
    """Return the entry of the models file that queries are sent to; empty if nobody is asked."""
    from medassay.context.retrieval.embed import ENDPOINT

    place = "" if index is None else index.description.embedder_place
    return place.removeprefix(ENDPOINT) if place.startswith(ENDPOINT) else ""
