"""Plans that ask how likely texts are: choices, perplexities and Relaxed Perplexity, sealed,
resumed, verified.
"""

import json
import math
import os
import signal
import subprocess
import sys
import time

import msgspec
import pytest
from tests import makers
from tests.runner.likelihood_plans import BOTH, RELAXED, lines, open_items, tiny, workspace

import medassay
from medassay import pipeline
from medassay.core.canonical import canonical
from medassay.core.records.plan import load_plan, plan_from_dict
from medassay.core.records.relaxed import MODES, RelaxedSetting, StoredTables
from medassay.errors import IncompleteError, InputError
from medassay.kinds.catalog import task_of_plan, task_of_run
from medassay.kinds.likelihood import perplexity
from medassay.kinds.likelihood.relaxed_perplexity import combine
from medassay.runner.prepare import prepare
from medassay.runner.preview import preview
from medassay.storage.run import Run, seal_run

LETTERS, TEXTS = (f"zero_shot:{name}" for name in BOTH)


def rows(run):
    return {(r["model"], r["setting"]): r for r in medassay.leaderboard(run).domains["overall"]}


@pytest.fixture(scope="module")
def engine(weights):
    from medassay.model.likelihood import LikelihoodEngine

    return LikelihoodEngine(weights)


@pytest.fixture(scope="module")
def closed(weights, tmp_path_factory):
    plan = workspace(
        tmp_path_factory.mktemp("closed"),
        tiny(weights),
        {"id": "longest", "provider": "baseline", "model": "longest"},
        makers.fake("talker", reply="A"),
        scoring="likelihood",
        templates=BOTH,
    )
    told = []
    return pipeline.run(plan, secrets={}, tell=told.append), told


@pytest.fixture(scope="module")
def relaxed(weights, tmp_path_factory):
    plan = workspace(
        tmp_path_factory.mktemp("relaxed"),
        tiny(weights),
        items=open_items(),
        task="open",
        relaxed_perplexity=RELAXED,
    )
    text = plan.read_text().replace(
        json.dumps(RELAXED),
        "{" + ", ".join(f"{key} = {value}" for key, value in RELAXED.items()) + "}",
    )
    plan.write_text(text)
    return medassay.run(plan, secrets={})


@pytest.mark.parametrize(
    ("keys", "task"),
    [
        ({"scoring": "likelihood"}, "closed_likelihood"),
        ({"scoring": "likelihood", "chat_template": True}, "closed_likelihood_chat"),
        ({"task": "closed_likelihood"}, "closed_likelihood"),
        ({"task": "open", "scoring": "likelihood"}, "perplexity"),
        ({"task": "perplexity_cond", "chat_template": True}, "perplexity_cond_chat"),
        ({"task": "open", "relaxed_perplexity": RELAXED}, "relaxed_perplexity"),
        ({"task": "relaxed_perplexity", "chat_template": True}, "relaxed_perplexity_chat"),
    ],
)
def test_a_plan_names_its_task(keys, task):
    plan = plan_from_dict({"banks": ["b"], "models": ["m"], **keys}, "plan")
    assert task_of_plan(plan).name == task
    again = plan_from_dict({**plan.to_dict(), "seed": plan.seed}, "plan")
    assert again.hash == plan.hash


def test_a_plan_without_the_keys_keeps_its_hash():
    plan = plan_from_dict({"banks": ["b"], "models": ["m"]}, "plan")
    assert not {"scoring", "chat_template", "relaxed_perplexity"} & plan.to_dict().keys()


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"scoring": "perplexity"}, "scoring"),
        (
            {"task": "ddx", "scoring": "likelihood"},
            "'ddx' cannot be scored by likelihood; .* closed, .*, open",
        ),
        ({"task": "closed", "relaxed_perplexity": {}}, "is for open items"),
        ({"task": "open", "chat_template": True}, "asks for replies"),
        ({"task": "perplexity", "chat_template": True}, "without a prompt"),
        ({"task": "open", "relaxed_perplexity": {"samples": 0}}, "'samples' is 0; 1 to"),
        ({"task": "open", "relaxed_perplexity": {"top_p": 1.5}}, "'top_p' is 1.5"),
        ({"task": "open", "relaxed_perplexity": {"temperature": 0}}, "'temperature' is 0"),
        ({"task": "open", "relaxed_perplexity": {"sampler": "diverse"}}, "sampler"),
        ({"task": "open", "relaxed_perplexity": {"strides": 3}}, "strides"),
    ],
)
def test_a_plan_that_means_nothing_is_refused(keys, says):
    with pytest.raises(InputError, match=says):
        task_of_plan(plan_from_dict({"banks": ["b"], "models": ["m"], **keys}, "plan"))


def test_choices_are_the_likeliest_option(closed, engine):
    run, _ = closed
    items = {item["id"]: item for item in makers.law_items()}
    scores = {
        (s["setting"], s["item"]): s for s in lines(run, "scores.jsonl") if s["model"] == "tiny"
    }
    seen = 0
    for trial in lines(run, "trials.jsonl"):
        if trial["model"] != "tiny":
            continue
        item = items[trial["item"]]
        letters = "ABCDEFG"[: len(item["options"])]
        if trial["setting"] == TEXTS:
            context, texts = f"Question: {item['question']}\nAnswer:", item["options"]
        else:
            shown = "".join(f"{x}. {o}\n" for x, o in zip(letters, item["options"], strict=True))
            context = f"Question: {item['question']}\nChoices:\n{shown}Answer:"
            texts = letters
        expected = [one.total for one in engine.score([(context, f" {t}") for t in texts])]
        assert [one["total"] for one in trial["likelihoods"]] == pytest.approx(expected, abs=1e-4)
        assert trial["value"] == letters[expected.index(max(expected))]
        score = scores[trial["setting"], trial["item"]]
        assert score["score"] == float(trial["value"] == item["expected"])
        by_byte = [v / len(t.encode()) for v, t in zip(expected, texts, strict=True)]
        best = letters[by_byte.index(max(by_byte))]
        assert score["parts"]["acc_norm"] == float(best == item["expected"])
        seen += 1
    assert seen == 2 * len(items)


def test_a_row_says_acc_acc_norm_and_ties(closed):
    found = rows(closed[0])["tiny", TEXTS]
    parts = [
        s["parts"]
        for s in lines(closed[0], "scores.jsonl")
        if (s["model"], s["setting"]) == ("tiny", TEXTS)
    ]
    metrics = found["likelihood"]["metrics"]
    assert found["metric"] == "acc"
    for name in ("acc_norm", "acc_norm_characters", "tied"):
        mean = sum(part[name] for part in parts) / len(parts)
        assert metrics[name]["score"] == pytest.approx(mean)
        assert metrics[name]["lo"] <= mean <= metrics[name]["hi"]
        assert metrics[name]["n"] == len(parts)


def test_models_that_cannot_tell_are_asked_by_name_and_never_ranked(closed):
    run, told = closed
    assert run.manifest_document["task"] == "closed_likelihood"
    assert told == [
        "model 'talker' is asked for replies, rows '…:closed_gen', never ranked: provider 'fake'"
        " tells no likelihood of given texts"
    ]
    assert run.manifest_document["fallback"]["task"] == "closed_gen"
    assert list(run.manifest_document["fallback"]["models"]) == ["talker"]
    found = rows(run)
    assert ("talker", "zero_shot:closed_gen") in found
    assert ("talker", TEXTS) not in found
    assert found["talker", "zero_shot:closed_gen"]["rank"] is None
    assert found["talker", "zero_shot:closed_gen"]["likelihood"]["metrics"] == {}
    assert found["longest", LETTERS]["rank"] is None
    assert found["tiny", LETTERS]["rank"] == 1


def test_an_endpoint_that_cannot_tell_is_unranked_for_that_alone(weights, tmp_path, mock_server):
    talker = makers.endpoint(mock_server(), "talker")
    plan = workspace(tmp_path, tiny(weights), talker, scoring="likelihood")
    with pytest.warns(UserWarning, match="model 'talker' is asked for replies"):
        run = medassay.run(plan, secrets={})
    row = rows(run)["talker", "zero_shot:closed_gen"]
    assert "not_ranked:generated" in row["flags"]
    assert row["rank"] is None
    assert row["score"] is not None


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        ({"scoring": "likelihood"}, 'by their replies: task = "closed"'),
        ({"task": "perplexity"}, "'talker' cannot tell: provider 'fake'"),
        ({"task": "relaxed_perplexity"}, "'talker' cannot tell"),
    ],
)
def test_without_a_model_that_can_tell_nothing_is_asked(tmp_path, plan, says):
    items = open_items() if "task" in plan else None
    written = workspace(tmp_path, makers.fake("talker", reply="A"), items=items, **plan)
    with pytest.raises(InputError, match=says):
        medassay.run(written, secrets={})
    assert not (tmp_path / "runs").exists()


def test_local_models_are_loaded_one_after_the_other(weights, tmp_path, monkeypatch):
    """While transformers makes a model, parameters that other threads make have no data."""
    import threading

    import transformers

    load = transformers.AutoModelForCausalLM.from_pretrained
    alone = threading.Lock()

    def watched(*args, **more):
        assert alone.acquire(blocking=False), "two models at once"
        time.sleep(0.1)
        try:
            return load(*args, **more)
        finally:
            alone.release()

    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", watched)
    names = ["one", "two", "three", "four"]
    models = [tiny(weights, name) for name in names]
    plan = workspace(tmp_path, *models, scoring="likelihood")
    run = medassay.run(plan, secrets={})
    found = [r["score"] for (_, setting), r in rows(run).items() if setting == "zero_shot"]
    assert len(found) == len(names)
    assert len(set(found)) == 1


def test_perplexity_alone_has_one_setting(weights, tmp_path):
    plan = workspace(
        tmp_path, tiny(weights), items=open_items(), task="perplexity", settings=["few_shot"]
    )
    with pytest.raises(InputError, match="without a prompt"):
        medassay.run(plan, secrets={})


def test_the_order_in_which_options_are_shown_does_not_matter_to_their_texts(weights, tmp_path):
    found = []
    for shuffle in (False, True):
        (tmp_path / str(shuffle)).mkdir()
        plan = workspace(
            tmp_path / str(shuffle),
            tiny(weights),
            scoring="likelihood",
            templates=["choice_texts"],
            shuffle_options=shuffle,
        )
        run = medassay.run(plan, secrets={})
        trials = lines(run, "trials.jsonl")
        found.append({t["item"]: t["value"] for t in trials})
        assert any("order" in t for t in trials) == shuffle
        assert medassay.verify(run.path).ok
        parts = {
            s["item"]: (s["score"], s["parts"]["acc_norm"]) for s in lines(run, "scores.jsonl")
        }
        found.append(parts)
    assert found[0] == found[2]
    assert found[1] == found[3]


def test_few_shot_examples_carry_what_the_template_asks_for(weights, tmp_path, engine):
    dev = [
        {**item, "id": f"dev-{n}", "split": "dev"} for n, item in enumerate(makers.law_items()[:3])
    ]
    plan = workspace(
        tmp_path,
        tiny(weights),
        items=[*makers.law_items()[3:5], *dev],
        scoring="likelihood",
        settings=["few_shot"],
        few_shot_k=2,
        templates=["choice_texts"],
    )
    run = medassay.run(plan, secrets={})
    [trial, _] = lines(run, "trials.jsonl")
    item = makers.law_items()[3]
    shown = [(i["question"], i["options"]["ABC".index(i["expected"])]) for i in dev]
    pairs = [
        "\n\n".join(f"Question: {q}\nAnswer: {a}" for q, a in (one, other))
        for one in shown
        for other in shown
        if one != other
    ]
    told = [one["total"] for one in trial["likelihoods"]]
    contexts = [f"{pair}\n\nQuestion: {item['question']}\nAnswer:" for pair in pairs]
    found = [
        [one.total for one in engine.score([(c, f" {o}") for o in item["options"]])]
        for c in contexts
    ]
    assert any(told == pytest.approx(one, abs=1e-4) for one in found)


def test_repeats_of_what_is_not_drawn_are_refused(weights, tmp_path):
    plan = workspace(tmp_path, tiny(weights), scoring="likelihood", repeats=2)
    with pytest.raises(InputError, match=r"'repeats' is 2; .* would tell the same"):
        medassay.run(plan, secrets={})


def test_repeats_of_drawn_completions_are_drawn_anew(weights, tmp_path):
    plan = workspace(tmp_path, tiny(weights), items=open_items(), task="open", repeats=2)
    told = ", ".join(f"{key} = {value}" for key, value in RELAXED.items())
    plan.write_text(plan.read_text() + f"relaxed_perplexity = {{{told}}}\n")
    run = medassay.run(plan, secrets={})
    one, two = lines(run, "trials.jsonl")[:2]
    assert (one["item"], one["repeat"], two["repeat"]) == (two["item"], 0, 1)
    assert one["drawn"]["kept"] != two["drawn"]["kept"]


@pytest.mark.parametrize("task", ["perplexity", "perplexity_cond", "perplexity_cond_chat"])
def test_perplexities_are_those_of_the_corpus(weights, tmp_path, engine, task):
    from medassay.model.likelihood_adapter import context_text

    items = open_items(6)
    plan = workspace(tmp_path, tiny(weights), items=items, task=task)
    run = medassay.run(plan, secrets={})
    texts = [item["reference"] for item in items]
    if task == "perplexity":
        found = engine.rolling(texts)
    else:
        chat = task.endswith("chat")
        schedule = prepare(load_plan(plan), tmp_path, tmp_path).schedule
        prompts = [schedule.prompt(*schedule.trial(n)[:2]) for n in range(schedule.n_trials)]
        contexts = [context_text(engine.tokenizer, p, chat_template=chat) for p in prompts]
        assert all(item["question"] in c for item, c in zip(items, contexts, strict=True))
        assert all(c.startswith("[user]") == chat for c in contexts)
        blank = "" if chat else " "
        found = engine.score([(c, blank + t) for c, t in zip(contexts, texts, strict=True)])
    whole = perplexity.corpus([one.total for one in found], texts)
    row = rows(run)["tiny", "zero_shot"]
    suffix = "" if task == "perplexity" else "_cond"
    metrics = row["likelihood"]["metrics"]
    assert list(metrics) == [
        f"{name}{suffix}"
        for name in ("bits_per_byte", "byte_perplexity", "nats_per_word", "word_perplexity")
    ]
    for name in ("word_perplexity", "byte_perplexity", "bits_per_byte", "nats_per_word"):
        one = metrics[f"{name}{suffix}"]
        assert one["score"] == pytest.approx(getattr(whole, name), rel=1e-6)
        assert one["lo"] < one["score"] < one["hi"]
        assert one["scale"] == [0.0, None]
    assert row["likelihood"]["bytes_per_word"] == pytest.approx(whole.bytes_per_word)
    assert row["metric"].endswith(suffix or "document")
    mean = sum(-one.total / len(t.encode()) for one, t in zip(found, texts, strict=True))
    assert row["score"] == pytest.approx(mean / len(texts) / math.log(2), rel=1e-6)
    assert medassay.verify(run.path).ok


def test_relaxed_perplexity_has_every_combination_and_the_pair(relaxed):
    setting = RelaxedSetting(**RELAXED)
    row = rows(relaxed)["tiny", "zero_shot"]
    assert row["metric"] == setting.name("sum") == task_of_run(relaxed.manifest).metric
    metrics = row["likelihood"]["metrics"]
    trials, scores = lines(relaxed, "trials.jsonl"), lines(relaxed, "scores.jsonl")
    for mode in MODES:
        for role, first, last in (("", 0, 3), (" (nice to have)", 3, 5)):
            made = [
                [
                    combine(msgspec.convert(t, StoredTables).tables, mode)
                    for t in trial["drawn"]["targets"][first:last]
                ]
                for trial in trials
            ]
            values = [sum(o.value for o in one) / len(one) for one in made]
            own = metrics[setting.name(mode) + role]
            assert own["score"] == pytest.approx(sum(values) / len(values), rel=1e-9)
            assert own["median"] == pytest.approx((sorted(values)[1] + sorted(values)[2]) / 2)
            assert own["nulls"] == 0
            nats = [sum(o.per_position for o in one) / len(one) for one in made]
            per = metrics[f"{setting.name(mode)} nats per position{role}"]
            assert per["score"] == pytest.approx(sum(nats) / len(nats), rel=1e-9)
    assert row["score"] == pytest.approx(metrics[setting.name("sum")]["score"])
    assert [s["score"] for s in scores] == [s["parts"]["must"]["sum"] for s in scores]
    assert all(t["role"] == "must" for s in scores for t in s["parts"]["targets"][:3])
    assert medassay.verify(relaxed.path).ok


def test_what_was_drawn_is_kept_position_by_position(relaxed, engine):
    items = {item["id"]: item for item in open_items()}
    for trial in lines(relaxed, "trials.jsonl"):
        drawn, item = trial["drawn"], items[trial["item"]]
        texts = [*(fact["text"] for fact in item["facts"]), *item["nice_to_have"]]
        sizes = [len(engine.ids(f" {text}")) for text in texts]
        assert [target["n_tokens"] for target in drawn["targets"]] == sizes
        assert drawn["samples"] == 3
        assert 1 <= len(drawn["kept"]) <= 2
        assert len(drawn["targets"]) == 5
        longest = max(one["n_tokens"] for one in drawn["kept"])
        for target in drawn["targets"]:
            assert [at for at, _ in target["positions"]] == list(range(0, longest + 1, 4))
        for one in drawn["kept"]:
            assert one["ends"][0] == 0
            assert one["ends"] == sorted(one["ends"])
            assert one["ends"][-1] <= len(one["text"])
            for place, which in enumerate(one["prefixes"]):
                assert which < len(drawn["targets"][0]["positions"][place][1])


def test_the_same_seed_gives_the_same_run_and_another_another(relaxed, weights, tmp_path):
    found = []
    for seed in (1, 2):
        (tmp_path / str(seed)).mkdir()
        plan = workspace(
            tmp_path / str(seed), tiny(weights), items=open_items(), task="open", seed=seed
        )
        told = ", ".join(f"{key} = {value}" for key, value in RELAXED.items())
        plan.write_text(plan.read_text() + f"relaxed_perplexity = {{{told}}}\n")
        run = medassay.run(plan, secrets={})
        found.append((run.path / "trials.jsonl").read_bytes())
    assert found[0] == (relaxed.path / "trials.jsonl").read_bytes()
    assert found[0] != found[1]


def test_a_run_over_budget_goes_on_where_it_stopped(weights, tmp_path):
    plan = workspace(
        tmp_path, tiny(weights), scoring="likelihood", templates=BOTH, budget={"calls": 7}
    )
    with pytest.raises(IncompleteError):
        medassay.run(plan, secrets={})
    text = plan.read_text()
    plan.write_text(text.replace("calls = 7", "calls = 20"))
    run = medassay.run(plan, secrets={})
    assert len(lines(run, "trials.jsonl")) == 20
    assert medassay.verify(run.path).ok


@pytest.mark.slow
def test_a_killed_run_keeps_what_it_has_scored(weights, tmp_path):
    plan = workspace(
        tmp_path,
        tiny(weights),
        items=open_items(6),
        task="relaxed_perplexity",
    )  # under the setting of every plan: ten completions of 128 tokens
    command = [sys.executable, "-m", "medassay", "run", str(plan)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and not _stored(tmp_path):
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = _stored(tmp_path)
    assert kept > 0
    cost = preview(plan)
    assert cost.calls + cost.models[0].stored == 6
    assert cost.models[0].stored > 0
    run = medassay.run(plan, secrets={})
    assert len(lines(run, "trials.jsonl")) == 6
    assert medassay.verify(run.path).ok


def _stored(folder):
    """Return the bytes of stored replies; the index, which can be made anew, left out."""
    found = (folder / "responses").rglob("*")
    return sum(p.stat().st_size for p in found if p.is_file() and "sqlite" not in p.name)


def test_a_changed_likelihood_is_found(closed, tmp_path):
    import shutil

    source = closed[0]
    for change in ("likelihoods", "value"):
        copy = tmp_path / change / source.id
        shutil.copytree(source.path, copy)
        trials = copy / "trials.jsonl"
        trials.chmod(0o644)
        changed = lines(source, "trials.jsonl")
        at = next(n for n, t in enumerate(changed) if t["model"] == "tiny")
        if change == "value":
            changed[at]["value"] = "C" if changed[at]["value"] != "C" else "B"
        else:
            totals = [one["total"] for one in changed[at]["likelihoods"]]
            worst = totals.index(min(totals))
            changed[at]["likelihoods"][worst]["total"] = -1e-3
        trials.write_bytes(b"".join(canonical(t) + b"\n" for t in changed))
        (copy / "seal.json").unlink()
        seal_run(Run(copy), sealed_at="2026-11-01T00:00:00Z")
        report = medassay.verify(copy)
        assert not report.ok


def test_the_command_line_tells_what_stands_beside_the_score(closed, relaxed, cli):
    code, out, _ = cli("report", closed[0].path)
    assert code == 0
    for word in ("acc_norm", "closed_gen", "is asked for replies"):
        assert word in out
    code, out, _ = cli("report", relaxed.path)
    assert code == 0
    for word in ("l=2,s=3,stride=4,max_tokens=8", "_conditional", "distinct completions"):
        assert word in out


def test_a_scale_without_an_end_goes_through_every_door(weights, tmp_path, cli):
    models = [tiny(weights, "one"), tiny(weights, "two", dtype="bfloat16")]
    plan = workspace(tmp_path, *models, items=open_items(12), task="perplexity")
    assert cli("run", plan)[0] == 0
    assert cli("run", plan, "--fresh")[0] == 0
    first, second = sorted((tmp_path / "runs").iterdir())
    code, out, _ = cli("compare", first, second)
    assert code == 0
    assert "from 0" in out
    assert cli("report", first, "--by", "language")[0] == 0
    assert cli("report", first, "--figure", "bars", "--to", "bars.svg")[0] == 0
    code, out, _ = cli("export", first, "--format", "every-eval-ever", "--to", "shared")
    assert code == 0
    [record, *_] = (tmp_path / "shared").rglob("*.json")
    told = json.loads(record.read_text())["evaluation_results"][0]["metric_config"]
    assert told["lower_is_better"]
    assert told["max_score"] == "Infinity"
    assert cli("publish", first, "--to", "site")[0] == 0
    assert cli("verify", "site")[0] == 0
    found = rows(Run(first))
    for row in found.values():
        assert row["scale"] == [0.0, None]
        assert 0 < row["lo"] <= row["score"] <= row["hi"]
