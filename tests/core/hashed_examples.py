"""One example of every record that is hashed or sealed, each field of it away from its default."""

from medassay.context.retrieval.index import RetrievedChunk
from medassay.core.records.context_config import Retrieval, ToolRules
from medassay.core.records.health_record import Origin, record_from
from medassay.core.records.model import ModelSpec, Price
from medassay.core.records.plan import BudgetRules, DdxRules, EngineRules, Plan
from medassay.core.records.relaxed import RelaxedSetting
from medassay.publishing.times import TimesKey
from medassay.selection.candidate import Candidate
from medassay.selection.steps import SelectionSteps
from medassay.suite.banks import SuiteBank
from medassay.suite.plan import SuitePlan
from medassay.suite.run import BenchmarkPart
from medassay.synthesis.exam_paper import ExamQuestion
from medassay.synthesis.plan import Exam, Pathways, Proposals, SynthesisPlan, Translation

RELAXED = RelaxedSetting(
    samples=7, keep=3, stride=4, max_tokens=64, top_p=0.5, temperature=0.7, sampler="beam"
)
TOOLS = ToolRules(
    use=("pubmed_search", "web_search"),
    max_calls=5,
    parallel=2,
    timeout=7.5,
    search="searxng",
    search_url="https://search.example",
    search_key_env="SEARCH",
    pubmed_url="https://pubmed.example",
    pubmed_key_env="PUBMED",
    arxiv_url="https://arxiv.example",
    allow=("example.org",),
    deny=("example.com",),
)
PRICE = Price(input=1.5, output=2.0, currency="EUR", cached_input=0.5, reasoning=3.0, batch=0.5)
RECORD = {
    "categories": ["Kardiologie"],
    "date_and_source": {"date": "2026-01-02", "source": None},
    "diagnosis": ["Hypertonie"],
    "relevant_metrics": [{"name": "RR", "value": "150/90", "unit": "mmHg", "note": None}],
    "medications": {
        "current": [{"name": "Ramipril", "dose": "5 mg", "schedule": "1-0-0"}],
        "advised": [],
        "discontinued": [],
    },
    "follow_up": ["Kontrolle"],
}
EXAMPLES = {
    "candidate": Candidate(
        model="m",
        qualifier="q",
        parameters_b=7.0,
        open_weights=True,
        context_tokens=4096,
        licence="MIT",
        predictions="p",
        source="s",
        scores={"medicine": 0.5},
    ),
    "exam_question": ExamQuestion(
        exam_id="e",
        question="Q?",
        options=("a", "b"),
        cop=1,
        year=2020,
        category="c",
        dropped="d",
    ),
    "budget": BudgetRules(calls=3, tokens=400, money=1.5, unknown_prices="allow"),
    "ddx_rules": DdxRules(
        rank_limit=3,
        preset="easy",
        k=2.0,
        x0=0.5,
        semantic_max="published",
        unjudged="exclude_rank",
        severity_map="separate",
        names=("names.csv",),
        names_first=False,
    ),
    "engine": EngineRules(
        workers=2, shard=10, replicas={"m": 2}, give_up_after=3, give_up_minutes=1.5, grace=2.0
    ),
    "health_record": record_from(RECORD),
    "origin": Origin(
        standing="silver", maker="m", family="f", prompt_sha256="0" * 64, converted=True
    ),
    "found_chunk": RetrievedChunk(
        rank=1, chunk=2, document="d", start=3, score=0.5, measure="l2", text="t"
    ),
    "model": ModelSpec(
        id="m",
        provider="openai_compatible",
        model="served",
        version="2",
        family="f",
        location="local",
        enabled=False,
        api=False,
        url="http://host/v1",
        api_key_env="KEY",
        protocol="completions",
        system_role="developer",
        system_line="s",
        token_parameter="max_completion_tokens",
        sends_seed=False,
        logprobs=True,
        extra_body={"a": {"b": [1, 2.5]}},
        headers_env={"X-Y": "KEY"},
        max_tokens=9,
        temperature=0.3,
        top_p=0.9,
        stop=("END",),
        concurrency=2,
        requests_per_minute=60.0,
        tokens_per_minute=1000.0,
        timeout=5.0,
        think_tags=True,
        capabilities=("chat", "tools"),
        price=PRICE,
        licence="MIT",
        context=4096,
        size=7.5,
        quantisation="q4",
        engine="e",
        engine_version="1",
        weights_digest="w",
        path="p",
        device="cpu",
        gpus=0.5,
        dtype="float16",
        batch_size=3,
        batch_tokens=100,
        add_bos=True,
        script={"reply": "A"},
        trusted_hosts=("host",),
    ),
    "model_by_default": ModelSpec(id="m", provider="fake"),
    "price": PRICE,
    "plan": Plan(
        banks=("demo",),
        models=("random", "m"),
        task="closed",
        name="n",
        seed=2**60,
        settings=("zero_shot", "rag"),
        modes=("solo", "tools"),
        n_resamples=200,
        sample=3,
        retrieval=Retrieval(index="idx", k=2, query_prefix="q: "),
        tools=TOOLS,
        budget=BudgetRules(calls=3),
        engine=EngineRules(workers=2),
        ddx=DdxRules(rank_limit=3),
        relaxed_perplexity=RELAXED,
        metrics=("bertscore",),
        max_cut_off=0.2,
        chat_template=True,
    ),
    "plan_by_default": Plan(banks=("demo",), models=("random",)),
    "relaxed": RELAXED,
    "steps": SelectionSteps(),
    "suite_bank": SuiteBank(name="n", folder="f", source="s", content_sha256="c", items=3),
    "suite_part": BenchmarkPart(
        benchmark="b",
        runs={"answers": "r"},
        absent={"x": "why"},
        instead_of="o",
        why="w",
        bank=SuiteBank(name="n", folder="f", source="s", content_sha256="c", items=3),
    ),
    "suite_plan": SuitePlan(
        suite=("careqa_open",),
        models=("m",),
        limit=3,
        seed=2**60,
        judge="j",
        metrics=("bertscore",),
        perplexities=False,
        chat_template=True,
        relaxed_perplexity=RELAXED,
        n_resamples=200,
    ),
    "synthesis_exam": SynthesisPlan(
        name="n",
        generator="g",
        title="t",
        exam=Exam(
            file="f.csv",
            key="k.csv",
            columns={"question": "q"},
            year=2020,
            category="c",
            open_versions=True,
            selector="s",
        ),
    ),
    "synthesis_pathways": SynthesisPlan(
        name="n",
        generator="g",
        seed=2**60,
        budget=BudgetRules(tokens=5),
        pathways=Pathways(
            sources="s",
            graphs="g",
            max_per_leaf=2,
            refine=False,
            versions=("open",),
            conditions={"a": "b"},
            domains={"a": "d"},
            dates={"a": "2026"},
        ),
    ),
    "synthesis_proposals": SynthesisPlan(
        name="n",
        generator="g",
        proposals=Proposals(
            topics=("t",), reviewer="r", domain="d", form="quiz", rounds=2, against=("b",)
        ),
    ),
    "synthesis_translation": SynthesisPlan(
        name="n", generator="g", translation=Translation(bank="b", to="de")
    ),
    "times_key": TimesKey(
        role="model", model="m", setting="zero_shot", mode="solo", kind="choice", items="public"
    ),
    "tools": TOOLS,
}
