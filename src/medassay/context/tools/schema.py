"""What a model is told of the tools: one line each, and their arguments as JSON Schemas."""

from collections.abc import Mapping

from medassay.core.canonical import canonical
from medassay.core.json_schema import JsonSchema, object_schema
from medassay.core.records.context_config import Tool, ToolRules

MOST_RESULTS = 10


def _looks_for(what: str) -> JsonSchema:
    number: JsonSchema = {
        "type": "integer",
        "minimum": 1,
        "maximum": MOST_RESULTS,
        "description": "how many results; 5 unless given",
    }
    return object_schema({"query": {"type": "string", "description": what}, "k": number}, ["query"])


# Tool → what a model is told of it, and its arguments as a JSON Schema.
TOOLS: Mapping[Tool, tuple[str, JsonSchema]] = {
    "arxiv_search": (
        "Search articles on arXiv. Returns id, title and abstract of each.",
        _looks_for("words to look for"),
    ),
    "doc_retrieval": (
        "Search the local collection of texts. Returns passages with the document they are from.",
        _looks_for("what to look for, in plain words"),
    ),
    "pubmed_search": (
        "Search medical articles in PubMed. Returns PMID, title and abstract of each.",
        _looks_for("a PubMed query"),
    ),
    "url_fetch": (
        "Get the text of a page on the public web, at most 20,000 characters.",
        object_schema({"url": {"type": "string", "description": "http(s) address"}}),
    ),
    "web_search": (
        "Search the web. Returns title, address and a snippet of each result.",
        _looks_for("words to look for"),
    ),
}


def tool_schema(rules: ToolRules) -> bytes:
    """Return the tools of a plan as endpoints of the OpenAI protocol take them, canonical JSON."""
    tools = ((name, *TOOLS[name]) for name in sorted(rules.use))
    return canonical(
        [
            {
                "type": "function",
                "function": {"name": name, "description": what, "parameters": parameters},
            }
            for name, what, parameters in tools
        ]
    )
