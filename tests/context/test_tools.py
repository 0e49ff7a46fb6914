"""The five tools by themselves, and the conversation around them."""

import asyncio
import json

import pytest
from aiolimiter import AsyncLimiter
from tests import makers
from tests.context.loopback import Site, loopback_fetcher, reply
from tests.context.services import Services

from medassay.context.retrieval.index import Index
from medassay.context.tools import pubmed
from medassay.context.tools.loop import converse
from medassay.context.tools.result import ToolResult
from medassay.context.tools.schema import TOOLS, tool_schema
from medassay.context.tools.toolbox import Toolbox
from medassay.core.canonical import canonical, sha256_hex
from medassay.core.records.completion import Completion, ToolCall
from medassay.core.records.context_config import TOOL_NAMES, ToolRules
from medassay.core.records.prompt import Prompt
from medassay.errors import InputError, Permanent


@pytest.fixture
def services():
    made = Services()
    yield made
    made.stop()


def call(toolbox, name, **arguments):
    async def once():
        try:
            return await toolbox.call(ToolCall(id="c", name=name, arguments=json.dumps(arguments)))
        finally:
            await toolbox.close()

    return asyncio.run(once())


def toolbox(services, secrets=None, index=None, **more):
    rules = ToolRules(**{"timeout": 2.0, **services.rules(**more)})
    return Toolbox(rules, index=index, secrets=secrets or {})


def results(found):
    assert found.status == "ok", found.text
    return json.loads(found.text)["results"]


def test_pubmed_gives_pmid_title_and_abstract_with_marks_resolved(services):
    [one] = results(call(toolbox(services), "pubmed_search", query="gout", k=3))
    assert one["title"] == "On urate & joints"
    assert one["abstract"] == "METHODS: We looked. It was gout."
    assert one["pmid"].isdigit()
    asked = dict(services.bodies)["/entrez/esearch.fcgi"]
    assert (asked["db"], asked["term"], asked["retmax"]) == ("pubmed", "gout", "3")
    assert results(call(toolbox(services), "pubmed_search", query="nothing here")) == []


def test_arxiv_gives_id_title_and_abstract_and_marks_in_the_query_mean_nothing(services):
    [one] = results(call(toolbox(services), "arxiv_search", query='gout" OR all:(x)'))
    assert one == {
        "id": "2401.00001v2",
        "title": "A study of all:gout AND all:OR AND all:all AND all:x",
        "abstract": "We study it.",
    }


@pytest.mark.parametrize(
    ("provider", "path"), [("searxng", ""), ("brave", "/brave"), ("tavily", "/tavily")]
)
def test_web_search_speaks_to_each_provider_with_its_key(services, provider, path):
    box = toolbox(
        services,
        {"SEARCH_KEY": "s3cret"},
        search=provider,
        search_url=services.url + path,
        search_key_env="SEARCH_KEY",
    )
    [one] = results(call(box, "web_search", query="gout", k=2))
    assert one == {
        "title": "About gout",
        "url": "https://example.org/x",
        "snippet": "a snippet",
    }
    headers = services.headers[-1]
    key = headers.get("X-Subscription-Token" if provider == "brave" else "Authorization")
    assert key in ("s3cret", "Bearer s3cret")
    assert "s3cret" not in box.id + box.rules.__repr__()


def test_doc_retrieval_searches_the_index(services, tmp_path):
    index = Index(makers.write_index(tmp_path))
    rules = ToolRules(use=("doc_retrieval",))
    box = Toolbox(rules, secrets={}, index=index, use=lambda one: one.use(None, {}))
    asyncio.run(box.ready())
    found = results(call(box, "doc_retrieval", query="low ferritin", k=1))
    assert found == [{"document": "Anaemia", "start": 0, "text": makers.CONDITIONS["Anaemia"]}]


def test_url_fetch_gives_the_page_s_text():
    async def work():
        async with Site({"/": reply(b"plain words", kind="text/plain")}).open() as site:
            box = Toolbox(
                ToolRules(use=("url_fetch",)),
                index=None,
                secrets={},
                fetcher=loopback_fetcher(site.port),
            )
            url = json.dumps({"url": f"http://page.test:{site.port}/"})
            return await box.call(ToolCall(id="c", name="url_fetch", arguments=url))

    assert asyncio.run(work()) == ToolResult(text="plain words", status="ok")


@pytest.mark.parametrize(
    ("query", "status", "says"),
    [
        ("hiccup", "ok", ""),
        ("busy", "unavailable", "HTTP 429"),
        ("down", "unavailable", "HTTP 500"),
        ("torn", "failed", "not "),
        ("slow", "unavailable", "no reply within 2 s"),
    ],
)
@pytest.mark.parametrize("tool", ["arxiv_search", "pubmed_search", "web_search"])
def test_faults_become_a_text_for_the_model(services, tool, query, status, says):
    found = call(toolbox(services), tool, query=query)
    assert found.status == status
    if status != "ok":
        error = json.loads(found.text)["error"]
        assert error.startswith(f"{status}: ")
        assert says in error


def test_no_service_at_all_is_unavailable(services):
    services.stop()
    found = call(toolbox(services), "pubmed_search", query="gout")
    assert found.status == "unavailable"
    services.__init__()  # the fixture stops one


@pytest.mark.parametrize(
    ("reply_", "says"),
    [
        (
            b'<!DOCTYPE x [<!ENTITY a "b">]><eSearchResult>&a;</eSearchResult>',
            "declares entities",
        ),
        (b"<other/>", "no eSearchResult"),
        (b"\xff\xfe<\x00", "not well-formed XML"),
        (b"<eSearchResult>" + b"<a>" * 5000, "not well-formed XML"),
    ],
)
def test_hostile_xml_is_refused(reply_, says):
    async def work():
        async with Site({"/x/esearch.fcgi": reply(reply_, kind="text/xml")}).open() as site:
            rules = ToolRules(use=("pubmed_search",), pubmed_url=f"http://127.0.0.1:{site.port}/x")
            box = Toolbox(rules, index=None, secrets={})
            try:
                return await box.call(
                    ToolCall(id="c", name="pubmed_search", arguments='{"query":"a"}')
                )
            finally:
                await box.close()

    found = asyncio.run(work())
    assert found.status == "failed"
    assert says in found.text


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("nope", "{}", "there is no tool 'nope'; there are arxiv_search"),
        ("web_search", "[]", "no JSON object"),
        ("web_search", "{", "no JSON object"),
        ("web_search", "[" * 100_000, "no JSON object"),
        ("web_search", "{}", "'query': expected a text"),
        ("web_search", '{"query": 3}', "'query': expected a text"),
        ("web_search", '{"query": "x", "k": 11}', "'k': expected a whole number from 1 to 10"),
        ("web_search", '{"query": "x", "k": true}', "'k': expected a whole number"),
        ("web_search", '{"query": "x", "rm": 1}', "unknown argument rm; known are query, k"),
        ("web_search", '{"query": "%s"}' % ("x" * 2000), "at most 1000"),
        ("arxiv_search", '{"query": "!?"}', "holds no words"),
        ("url_fetch", '{"url": "http://127.0.0.1/"}', "there is no tool 'url_fetch'"),
        ("web_search", '{"\\ud800": 1}', "unknown argument ?"),
        ("\ud800", "{}", "there is no tool '?'"),
    ],
)
def test_a_model_s_mistake_is_told_to_it_and_asks_nobody(services, name, arguments, says):
    async def once():
        box = toolbox(services)
        found = await box.call(ToolCall(id="c", name=name, arguments=arguments))
        await box.close()
        return found

    found = asyncio.run(once())
    assert found.status == "failed"
    assert says in json.loads(found.text)["error"]
    assert not services.asked


def test_the_public_services_are_asked_no_faster_than_they_wish():
    def limits(made):
        limiter = made._limiter
        return limiter and (limiter.max_rate, limiter.time_period)

    public = ToolRules(use=("pubmed_search",)).pubmed_url
    assert limits(pubmed.service(public, "")) == (3, 1)
    assert limits(pubmed.service(public, "key")) == (10, 1)
    assert limits(pubmed.service("http://mirror.test/entrez", "")) is None


def test_every_tool_has_a_schema_and_is_offered_when_it_is_in_use():
    assert sorted(TOOLS) == sorted(TOOL_NAMES)
    offered = json.loads(
        tool_schema(ToolRules(use=("url_fetch", "web_search"), search="brave", search_key_env="K"))
    )
    assert [one["function"]["name"] for one in offered] == ["url_fetch", "web_search"]
    assert all(one["function"]["parameters"]["additionalProperties"] is False for one in offered)


def test_a_key_that_is_not_set_is_told_before_any_call(services):
    box = toolbox(services, search="brave", search_key_env="BRAVE_KEY")
    with pytest.raises(Permanent, match="BRAVE_KEY is not set"):
        asyncio.run(box.ready())


@pytest.mark.parametrize("key", ["abc\n", "a b", " abc", "a\x00"])
def test_a_key_that_no_header_takes_is_told_by_the_name_of_its_variable(services, key):
    box = toolbox(services, {"BRAVE_KEY": key}, search="brave", search_key_env="BRAVE_KEY")
    with pytest.raises(Permanent, match="BRAVE_KEY holds a blank or a line end"):
        asyncio.run(box.ready())


@pytest.mark.parametrize("field", ["pubmed_url", "arxiv_url"])
@pytest.mark.parametrize("url", ["", "http://exa mple.org"])
def test_an_address_that_cannot_work_never_becomes_a_plan(field, url):
    tool = "pubmed_search" if field == "pubmed_url" else "arxiv_search"
    with pytest.raises(InputError, match=f"'tools.{field}' is no plain address"):
        ToolRules(use=(tool,), **{field: url})


@pytest.mark.parametrize("url", ["https://u:p@host/", "https://host/?key=1", "ftp://host", "x"])
def test_an_address_with_a_key_in_it_never_becomes_a_plan(url):
    with pytest.raises(InputError, match="keys go into environment variables"):
        ToolRules(use=("web_search",), search="searxng", search_url=url)


def test_waiting_for_one_s_own_turn_is_not_held_against_a_service(services, monkeypatch):
    from medassay.context.tools import arxiv

    monkeypatch.setattr(arxiv, "_HOST", "127.0.0.1")
    box = toolbox(services, timeout=1.0)
    box._arxiv._limiter = AsyncLimiter(1, 0.4)

    async def six():
        calls = [
            ToolCall(id=str(n), name="arxiv_search", arguments=json.dumps({"query": f"q{n}"}))
            for n in range(6)
        ]
        try:
            return await asyncio.gather(*(box.call(one) for one in calls))
        finally:
            await box.close()

    assert {one.status for one in asyncio.run(six())} == {"ok"}


def test_results_that_are_too_long_are_left_out_whole():
    from medassay.context.tools.toolbox import _result_text

    text = _result_text([{"abstract": "x" * 6_000, "n": n} for n in range(5)])
    assert len(text) <= 20_000
    assert [one["n"] for one in json.loads(text)["results"]] == [0, 1, 2]


class Scripted:
    """A model that says what it is told, turn by turn."""

    def __init__(self, *turns):
        self.turns, self.prompts = list(turns), []

    async def __call__(self, prompt):
        """Return the next turn."""
        self.prompts.append(prompt)
        calls = self.turns.pop(0) if self.turns else ()
        said = Completion(text="" if calls else "done", calls=tuple(calls))
        return type("Reply", (), {"completion": said})()


def wish(n, name="web_search", ids=True):
    return [ToolCall(id=f"c{i}" if ids else "", name=name, arguments="{}") for i in range(n)]


def talk(model, look=None, **rules):
    async def ok(prompt, place, call):
        return ToolResult(text=f"r{place}", status="ok")

    prompt = Prompt(
        item_id="q",
        messages=({"role": "user", "content": "?"},),
        encoded=canonical([{"role": "user", "content": "?"}]),
        template="t",
        tools=b"[]",
    )
    limits = ToolRules(use=("web_search",), search="searxng", search_url="http://x", **rules)
    return asyncio.run(converse(prompt, model, look or ok, limits))


def test_calls_and_results_go_back_to_the_model_in_order():
    model = Scripted(wish(2))
    found = talk(model)
    assistant, one, two = model.prompts[1].messages[1:]
    assert [c["id"] for c in assistant["tool_calls"]] == ["c0", "c1"]
    assert [(m["role"], m["tool_call_id"], m["content"]) for m in (one, two)] == [
        ("tool", "c0", "r0"),
        ("tool", "c1", "r1"),
    ]
    assert model.prompts[1].encoded == canonical(list(model.prompts[1].messages))
    assert [t.sha256 for t in found.trace] == [sha256_hex(b"r0"), sha256_hex(b"r1")]
    assert not any(hasattr(t, "result") for t in found.trace)  # others' text: in the response store
    assert found.replies[-1].completion.text == "done"


def test_no_more_calls_than_the_limit_are_made_and_a_deaf_model_is_cut_off():
    made = []

    async def look(prompt, place, call):
        made.append(place)
        return ToolResult(text="r", status="ok")

    model = Scripted(wish(5), wish(5), wish(5), wish(5), wish(5), wish(5))
    found = talk(model, look)
    assert len(made) == 8
    assert [t.status for t in found.trace].count("limit") == 2 + 5 + 5
    assert len(model.prompts) == 5
    assert "answer now" in model.prompts[-1].messages[-1]["content"]


def test_no_more_calls_than_allowed_run_side_by_side():
    running, most = [0], [0]

    async def look(prompt, place, call):
        running[0] += 1
        most[0] = max(most[0], running[0])
        await asyncio.sleep(0.01)
        running[0] -= 1
        return ToolResult(text="r", status="ok")

    talk(Scripted(wish(8)), look)
    assert most[0] == 3


def test_calls_without_ids_or_with_broken_arguments_are_sent_back_so_that_endpoints_take_them():
    calls = [*wish(2, ids=False), ToolCall(id="", name="web_search", arguments="{broken")]
    model = Scripted(calls)
    found = talk(model)
    sent = model.prompts[1].messages[1]["tool_calls"]
    assert [c["id"] for c in sent] == ["call_0", "call_1", "call_2"]
    assert sent[2]["function"]["arguments"] == "{}"
    assert found.trace[2].arguments == "{broken"
