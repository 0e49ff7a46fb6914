"""What a model may see besides the question, as a plan says it: retrieved and given texts, and
tools.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Literal, get_args
from urllib.parse import urlsplit

import msgspec

from medassay.core.keyed import KeyedRecord
from medassay.core.record_check import RecordError, check_types
from medassay.core.records.trial import Setting

# What each setting shows besides the question.
PASSAGES: tuple[Setting, ...] = ("rag",)
PATHS: tuple[Setting, ...] = ("topline_path", "topline_all")
TEXTS: tuple[Setting, ...] = ("topline_text", "topline_all")
CONTEXTS: tuple[Setting, ...] = ("rag", "topline_path", "topline_text", "topline_all")
BETWEEN = "\n\n---\n\n"  # chunks

Tool = Literal["arxiv_search", "doc_retrieval", "pubmed_search", "url_fetch", "web_search"]
TOOL_NAMES: tuple[Tool, ...] = get_args(Tool)
Provider = Literal["", "brave", "searxng", "tavily"]
MOST_UNAVAILABLE = 0.05  # of the calls of a run that is published
LONGEST_RESULT = 20_000  # characters of what a call gives
DEAF_TURNS = 2  # turns in which a model goes on calling although no calls are left
_MOST_CALLS, _LONGEST_CALL = 64, 600.0
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HOST = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)*")


@dataclass(frozen=True, kw_only=True)
class Retrieval(KeyedRecord):
    """What is searched for passages that stand before a question.

    Attributes
    ----------
    index : folder of an index, relative to the plan
    k : passages that a prompt gets
    query_prefix : put before each query
    retriever : of an installed package, in place of the index
    """

    KEYS: ClassVar = ("index", "k", "query_prefix", "retriever")

    index: str = ""
    k: int = 3
    query_prefix: str = ""
    retriever: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the rules; `retriever` came later, and stands where there is one."""
        plain = super().to_dict()
        return {k: v for k, v in plain.items() if k != "retriever" or v}

    def problem(self) -> str | None:
        """Return what is wrong, None if nothing is."""
        if bool(self.index) == bool(self.retriever) or not self.index.isprintable():
            if self.index and self.retriever:
                return "'retrieval.index' and 'retrieval.retriever' stand for each other; leave one"
            return (
                "'retrieval.index' names no folder; `medassay index build CORPUS --out DIR`"
                " makes one"
            )
        if not 1 <= self.k <= 100:
            return f"'retrieval.k' is {self.k}; 1 to 100 is needed"
        return None


@dataclass(frozen=True, kw_only=True)
class ToolRules(KeyedRecord):
    """Which tools a model may call in the mode `tools`, where they look, and how often.

    Attributes
    ----------
    use : tools that are offered
    max_calls : of one conversation
    parallel : calls at once
    timeout : seconds of one call
    search : provider of web_search
    search_url : its address; SearxNG has no common one
    search_key_env : name of the environment variable with its key
    pubmed_url, pubmed_key_env : likewise for PubMed
    arxiv_url : likewise for arXiv
    allow : hosts that url_fetch may reach, each with all below it; none allows all
    deny : hosts that it may not reach
    """

    KEYS: ClassVar = (
        "use",
        "max_calls",
        "parallel",
        "timeout",
        "search",
        "search_url",
        "search_key_env",
        "pubmed_url",
        "pubmed_key_env",
        "arxiv_url",
        "allow",
        "deny",
    )

    use: tuple[Tool, ...] = TOOL_NAMES
    max_calls: int = 8
    parallel: int = 3
    timeout: float = 20.0
    search: Provider = ""
    search_url: str = ""
    search_key_env: str = ""
    pubmed_url: str = "https://eutils.ncbi.nlm.nih.gov/entrez/eutils"
    pubmed_key_env: str = ""
    arxiv_url: str = "https://export.arxiv.org/api/query"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what the table [tools] of a plan refuses, with the same words.

        Raises
        ------
        InputError
            Naming the first field that is wrong.
        """
        check_types(self)
        for problem in chain(self._of_limits(), self._of_search(), self._of_places()):
            raise RecordError(self, problem)

    def _of_limits(self) -> Iterator[str]:
        if not self.use or len(set(self.use)) != len(self.use):
            yield f"'tools.use': name each tool once, of {', '.join(TOOL_NAMES)}"
        if not 1 <= self.max_calls <= _MOST_CALLS:
            yield f"'tools.max_calls' is {self.max_calls}; 1 to {_MOST_CALLS} is needed"
        if not 1 <= self.parallel <= self.max_calls:
            yield (
                f"'tools.parallel' is {self.parallel}; 1 to max_calls ({self.max_calls}) is needed"
            )
        if not 0 < self.timeout <= _LONGEST_CALL:
            yield (
                f"'tools.timeout' is {self.timeout:g}; above 0, at most {_LONGEST_CALL:g} seconds"
                " is needed"
            )

    def _of_search(self) -> Iterator[str]:
        if "web_search" in self.use and not self.search:
            yield (
                "'tools.search' names no provider for web_search; set searxng, brave or tavily, or"
                " leave web_search out of 'tools.use'"
            )
        if self.search == "searxng" and not self.search_url:
            yield "'tools.search_url' is empty; searxng needs the address of an instance"
        if self.search in ("brave", "tavily") and not self.search_key_env:
            yield (
                f"'tools.search_key_env' is empty; {self.search} needs a key in an environment"
                " variable"
            )

    def _of_places(self) -> Iterator[str]:
        needed = {"pubmed_url": "pubmed_search", "arxiv_url": "arxiv_search"}
        for field in ("search_url", "pubmed_url", "arxiv_url"):
            is_needed = getattr(self, field) or needed.get(field) in self.use
            if is_needed and not _is_address(getattr(self, field)):
                yield (
                    f"'tools.{field}' is no plain address; expected https://host/… without user,"
                    " query or key; keys go into environment variables"
                )
        for field in ("search_key_env", "pubmed_key_env"):
            if getattr(self, field) and not _VARIABLE.fullmatch(getattr(self, field)):
                yield f"'tools.{field}': expected the name of an environment variable, not a key"
        for host in (*self.allow, *self.deny):
            if not _HOST.fullmatch(host):
                yield (
                    f"'tools.allow', 'tools.deny': '{host}'; expected hosts, as \"example.org\" or"
                    ' "org"'
                )


def _is_address(url: str) -> bool:
    try:
        if not url.isprintable() or " " in url:
            return False
        parts = urlsplit(url)
        # A key in an address would reach manifests and boards.
        plain = not (parts.username or parts.password or parts.query or parts.fragment)
        host = bool(parts.hostname) and parts.port != 0
        return parts.scheme in ("http", "https") and host and plain
    except ValueError:
        return False


class PromptContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a prompt shows besides the question.

    `retrieved` are the places of the passages (document, start); `own_source` says whether one is
    of the item's own source, None where that is not in the corpus.
    """

    passages: tuple[str, ...] = ()
    path: str = ""
    text: str = ""
    retrieved: tuple[tuple[str, int], ...] = ()
    own_source: bool | None = None
