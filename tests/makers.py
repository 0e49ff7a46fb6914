"""Small banks, models files, plans and packages, written to a folder."""

import json
import os
from dataclasses import fields

import msgspec

from medassay.core.records.completion import Completion
from medassay.core.records.item import Item
from medassay.core.records.target import TARGETS, further_targets
from medassay.core.records.trial import Trial

LAW = [
    (
        "Which court hears appeals on points of law?",
        ["A first court", "A cassation court", "A jury"],
        "B",
    ),
    ("A contract made under threat is …", ["voidable", "binding", "a tort"], "A"),
    (
        "Who bears the burden of proof in a civil claim?",
        ["The court", "The claimant", "The state"],
        "B",
    ),
    ("A statute of limitations limits …", ["time to sue", "damages", "witnesses"], "A"),
    ("Hearsay is …", ["a written oath", "a plea", "a statement reported by another"], "C"),
    (
        "Double jeopardy forbids …",
        ["two judges", "a second trial for one act", "two lawyers"],
        "B",
    ),
    ("An injunction is …", ["an order to act or refrain", "a fine", "a tax"], "A"),
    ("Mens rea means …", ["the act", "the place", "the guilty mind"], "C"),
    ("A will takes effect …", ["at death", "when signed", "when read"], "A"),
    ("Ultra vires describes acts …", ["in secret", "beyond one's powers", "of war"], "B"),
]


def law_items():
    return [
        {
            "id": f"law-{n:02}",
            "domain": "law",
            "question": q,
            "options": o,
            "expected": k,
            "source": "written for a test",
        }
        for n, (q, o, k) in enumerate(LAW)
    ]


def write_bank(folder, items, *, name="law", domains=("law",), **card):
    folder.mkdir(parents=True, exist_ok=True)
    text = {
        "name": name,
        "question_bank_version": f"{name}-2026.1",
        "licence": "CC0-1.0",
        "domains": list(domains),
        **card,
    }
    (folder / "bank.toml").write_text("".join(f"{k} = {json.dumps(v)}\n" for k, v in text.items()))
    (folder / "items.jsonl").write_text(
        "".join(json.dumps(item) + "\n" for item in items), encoding="utf-8"
    )
    return folder


def write_models(folder, *models, **more):
    (folder / "models.json").write_text(
        json.dumps({"schema_version": 1, "models": list(models), **more})
    )


def write_plan(folder, **values):
    wanted = {"banks": ["bank"], "models": ["m"], "seed": 1, **values}
    tables = {k: wanted.pop(k) for k, v in [*wanted.items()] if isinstance(v, dict)}
    lines = [f"{k} = {json.dumps(v)}" for k, v in wanted.items()]
    for name, table in tables.items():
        lines += [f"[{name}]", *(f"{k} = {toml_value(v)}" for k, v in table.items())]
    (folder / "plan.toml").write_text("\n".join(lines) + "\n")
    return folder / "plan.toml"


def toml_value(value):
    """Return a value as TOML writes it; a table in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {toml_value(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)


def workspace(folder, items, *models, **plan):
    """Write a bank, models and a plan over them, whose path is returned."""
    folder.mkdir(exist_ok=True)
    write_bank(folder / "bank", items)
    write_models(folder, *models)
    return write_plan(folder, models=[model["id"] for model in models], **plan)


def fake(name="m", **script):
    return {"id": name, "provider": "fake", "script": script}


def endpoint(url, name="m", **more):
    return {
        "id": name,
        "provider": "openai_compatible",
        "url": url,
        "location": "local",
        **more,
    }


def many_items(n, domain="law"):
    return [
        {
            "id": f"q{i:05}",
            "domain": domain,
            "question": f"Question number {i}?",
            "options": ["one", "two", "three", "four"],
            "expected": "ABCD"[i % 4],
            "source": "test",
        }
        for i in range(n)
    ]


def open_items(n, domain="law"):
    return [
        {
            "id": f"open-{i:03}",
            "domain": domain,
            "answer_type": "open",
            "question": f"Explain rule {i}.",
            "facts": [
                {"id": "f1", "text": f"Rule {i} binds courts."},
                {"id": "f2", "text": f"Rule {i} has exceptions."},
                {"id": "f3", "text": f"Rule {i} was amended."},
            ],
            "source": "written for a test",
        }
        for i in range(n)
    ]


def ddx_items(n, domain="medicine", **more):
    """Return cases whose golden diagnosis is "Disease <i>", also called "Malady <i>"."""
    return [
        {
            "id": f"case-{i:03}",
            "domain": domain,
            "answer_type": "open",
            "question": f"Phenotypes of the patient: sign {i}.",
            "diagnoses": [f"Disease {i}", f"Malady {i}"],
            "severity": ["mild", "moderate", "severe", "critical", "rare"][i % 5],
            "category": "odd" if i % 2 else "even",
            "source": "written for a test",
            **more,
        }
        for i in range(n)
    ]


def listed(*names):
    return json.dumps({"diagnoses": [{"rank": r, "name": n} for r, n in enumerate(names, 1)]})


def ddx_judge(n, name="judge", **more):
    """Return a scripted judge who knows every "Disease <i>", and that "Kin <i>" is of its group."""
    levels = ["mild", "moderate", "severe", "critical", "rare"]
    severity = {f"{w} {i}": levels[i % 5] for i in range(n) for w in ("Disease", "Malady", "Kin")}
    relation = {
        f"Disease {i}": {f"Disease {i}": "Exact Synonym", f"Kin {i}": "Exact Disease Group"}
        for i in range(n)
    }
    script = {"labels": {"severity": severity, "relation": relation}}
    return {"id": name, "provider": "fake", "family": "f", "script": script | more}


def judges(**script):
    """Three scripted judges of three families."""
    return [
        {
            "id": f"judge-{family}",
            "provider": "fake",
            "family": family,
            "script": {"judge": 0.6, **script},
        }
        for family in ("alpha", "beta", "gamma")
    ]


def said(*texts):
    """Return replies of a judge."""
    return [Completion(text=text) for text in texts]


def health_record(i, *, taken_on=False):
    """Return a record with one drug taken on and one stopped, "Aus<i>".

    Or with both listed as current.
    """
    made = {
        "categories": ["Kardiologie"],
        "date_and_source": {"date": f"2026-01-{i % 28 + 1:02}", "source": None},
        "diagnosis": [f"Diagnose {i}"],
        "relevant_metrics": [],
        "medications": {
            "current": [{"name": f"Alt{i}", "dose": None, "schedule": None}],
            "advised": [],
            "discontinued": [{"name": f"Aus{i}", "dose": None, "schedule": None}],
        },
        "follow_up": [],
    }
    drugs = made["medications"]
    if taken_on:
        drugs["current"], drugs["discontinued"] = drugs["current"] + drugs["discontinued"], []
    return made


def record_items(n, **more):
    """Return reports "r-<i>" with gold records."""
    return [
        {
            "id": f"r-{i:02}",
            "domain": "records",
            "answer_type": "open",
            "language": "de",
            "question": f"Bericht {i}\n\nAus{i} absetzen.",
            "record": health_record(i),
            "origin": {"standing": "gold", "maker": "us"},
            "source": "written for a test",
            **more,
        }
        for i in range(n)
    ]


def record_reply(record, *, thoughts=False):
    """Return the reply that holds a record, after thoughts or at once."""
    before = {"internal_monologue": {"diagnoses": "so"}} if thoughts else {}
    return json.dumps({**before, "structured_health_record": record})


def record_student(n, name="m", **more):
    """Right when it thinks; without thinking it lists every stopped drug as current."""
    replies = {
        f"health_record/r-{i:02}": record_reply(health_record(i), thoughts=True) for i in range(n)
    }
    replies |= {
        f"health_record_direct/r-{i:02}": record_reply(health_record(i, taken_on=True))
        for i in range(n)
    }
    return {**fake(name, replies=replies), **more}


def silver_origin(maker, family):
    """Return the origin of a reference that a model has written."""
    made = {"standing": "silver", "maker": maker, "family": family}
    return {**made, "prompt_sha256": "0" * 64}


CONDITIONS = {
    "Gout": "Podagra points to gout.\n\nUrate crystals in the joint prove gout.",
    "Anaemia": "A low ferritin points to a lack of iron.\n\nAsk for bleeding in anaemia.",
}


def pathway_items():
    """Return items with a condition and a reasoning path, two of each condition."""
    return [
        {
            "id": f"{condition.lower()}-{n}",
            "domain": condition.lower(),
            "question": f"{question} ({n})",
            "options": ["wait", "aspirate", "ferritin", "operate", "discharge"],
            "expected": key,
            "condition": condition,
            "cluster": condition,
            "path": f"{condition} suspected -> {step}",
            "source": "written for a test",
        }
        for condition, question, key, step in (
            ("Gout", "A joint with urate crystals: what next?", "B", "aspirate the joint"),
            ("Anaemia", "A low ferritin in anaemia: what next?", "C", "measure ferritin"),
        )
        for n in (1, 2)
    ]


def write_index(folder, texts=None, **parameters):
    """Write a corpus and its index, embedded by hashed words."""
    from medassay.context.retrieval.build import Parameters, build_index
    from medassay.context.retrieval.embed import FakeEmbedder
    from medassay.runner.event_loop import run_async

    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for name, text in (CONDITIONS if texts is None else texts).items():
        (corpus / f"{name}.txt").write_text(text)
    wanted = Parameters(embedder="fake", **parameters)
    run_async(lambda: build_index(corpus, folder / "index", wanted, FakeEmbedder()))
    return folder / "index"


def set_aside(run):
    """Move a run out of its workspace, so that its plan is done anew from what is stored.

    Return where it is now.
    """
    place = run.path.parent.parent / f"aside-{len(list(run.path.parent.parent.glob('aside-*')))}"
    place.mkdir()
    return run.path.rename(place / run.path.name)


def trial(**fields):
    """Return an answered trial; `fields` say what a test needs of it."""
    usual = {
        "domain": "law",
        "model": "m",
        "setting": "zero_shot",
        "mode": "solo",
        "item": "law-000",
        "repeat": 0,
        "outcome": "answered",
    }
    return Trial(**(usual | fields))


def plain(record):
    """Return a record as the dicts and lists that its JSON holds."""
    return msgspec.to_builtins(record)


def item(form="choice", **given):
    """Return an item with a target of a form; what the target does not hold is the item's."""
    target = next(target for target in (*TARGETS, *further_targets()) if target.form == form)
    empty = {"options": (), "criteria": (), "diagnoses": (), "record": {}, "lo": 0.0, "hi": 0.0}
    empty |= {"expected": ""} if form == "key" else {}
    names = [field.name for field in fields(target)]
    held = {name: value for name, value in (empty | given).items() if name in names}
    rest = {name: value for name, value in given.items() if name not in names}
    return Item(**{"id": "q", "domain": "d", "question": "?", **rest}, target=target(**held))


def install_package(site, module, text, points, *, version="1.0"):
    """Write what an installer writes of a package of one module; return a PYTHONPATH with it."""
    info = site / f"{module}-{version}.dist-info"
    info.mkdir(parents=True)
    (site / f"{module}.py").write_text(text)
    name = module.replace("_", "-")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(points)
    (info / "RECORD").write_text(f"{module}.py,,\n")
    return os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH", ""))))
