"""Real Ray nodes on this machine, started by `ray start` as an operator does.

Nodes and drivers die by kill -9.
"""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests import makers
from tests.commands import requests_in, result_of, start_command, wait_for_requests
from tests.conftest import absent
from tests.object_store import free_port
from tests.runner.engine.scripted_workers import keys_of, sealed, workspace
from tests.runner.mixed_plans import text_items

import medassay
from medassay.core.records.model import ModelSpec
from medassay.core.records.plan import EngineRules
from medassay.errors import UnavailableError
from medassay.runner.engine import ray as engine

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster():
    """Start a head that takes no work and two nodes of one processor each."""
    try:
        import psutil  # noqa: F401
        import ray  # noqa: F401
    except ImportError:
        absent("no Ray: install requirements/scale.txt")
    from benchmarks.ray_nodes import Cluster

    with Cluster(2, port=free_port()) as found:
        yield found


def drive_run(cluster, plan, *options):
    return start_command("run", plan, "--quiet", *options, env=cluster.env)


@pytest.mark.slow
def test_ray_seals_what_one_process_seals_judges_and_all(cluster, tmp_path):
    tested = [makers.fake("m1", reply="Rule binds courts."), makers.fake("m2", reply="No.")]
    options = {"task": "open", "judges": [j["id"] for j in makers.judges()]}
    options |= {"engine": {"shard": 8, "workers": 2}}
    found = {}
    for name in ("local", "ray"):
        plan = workspace(
            tmp_path / name, makers.open_items(30), *tested, *makers.judges(), **options
        )
        if name == "local":
            found[name] = medassay.run(plan, secrets={}).path
        else:
            code, _, errors = result_of(drive_run(cluster, plan, "--engine", "ray"))
            assert code == 0, errors
            [found[name]] = (tmp_path / name / "runs").iterdir()
    names = ("items.jsonl", "trials.jsonl", "verdicts.jsonl", "scores.jsonl", "statistics.json")
    for name in names:
        assert (found["ray"] / name).read_bytes() == (found["local"] / name).read_bytes()


OWN = """
def score(item, answer):
    return {"score": len(answer.value) % 7 / 7, "words": len(answer.value.split())}


def read(item, text):
    return text.upper()


class Grader:
    def prompt(self, item, answer):
        return [{"role": "user", "content": answer.value}]

    def verdict(self, item, answer, reply):
        return len(answer.value) % 5 / 5
"""


SCORER = {"scorer": "my.py:score", "columns": {"words": [0, 100]}}
GRADER = {"parser": "my.py:read", "grader": "my.py:Grader"}
LETTER = {"type": "object", "properties": {"rule": {"type": "string"}}}


def records(n):
    for item in makers.open_items(n):
        del item["facts"]
        yield {**item, "document": {"rule": "binds courts"}}


# What is the user's own: items, entries of the plan, a reply.
OWN_PARTS = {
    "scorer": (text_items(30), {"task": SCORER}, "Rule binds courts."),
    "parser and grader": (
        makers.open_items(30),
        {"task": GRADER, "judges": ["judge"]},
        "Rule binds courts.",
    ),
    "prompt and parser": (
        makers.many_items(30),
        {"task": {"template": "ask.txt", "parser": "my.py:read"}},
        "a",
    ),
    "schema": ([*records(30)], {"schema": "letter.json"}, json.dumps({"rule": "binds"})),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", OWN_PARTS)
def test_what_is_the_users_own_gives_on_ray_what_it_gives_here(cluster, tmp_path, what):
    items, entries, reply = OWN_PARTS[what]
    found = {}
    models = (makers.fake("m", reply=reply), makers.fake("judge", reply="ok"))
    for name in ("local", "ray"):
        options = {"engine": {"shard": 8, "workers": 1}, **entries}
        plan = workspace(tmp_path / name, items, *models, **options)
        (plan.parent / "my.py").write_text(OWN)
        (plan.parent / "ask.txt").write_text(
            "{{ question }}{% for letter, option in options %}{{ letter }} {{ option }}{% endfor %}"
        )
        (plan.parent / "letter.json").write_text(json.dumps(LETTER))
        if name == "local":
            found[name] = medassay.run(plan, secrets={}, trust_code=True).path
        else:
            ended = result_of(drive_run(cluster, plan, "--engine", "ray", "--trust-code"))
            assert ended[0] == 0, ended[2]
            [found[name]] = (tmp_path / name / "runs").iterdir()
    for name in ("trials.jsonl", "verdicts.jsonl", "scores.jsonl", "statistics.json"):
        files = [found[where] / name for where in ("local", "ray")]
        if files[0].exists() or name != "verdicts.jsonl":
            assert files[0].read_bytes() == files[1].read_bytes()
    assert medassay.verify(found["ray"], trust_code=True).ok


SUITE = """
models = ["m"]
[[benchmark]]
name = "letters"
bank = "bank"
task = {scorer = "my.py:score", columns = {words = [0, 100]}}
"""


@pytest.mark.slow
def test_a_benchmark_of_ones_own_gives_on_ray_what_it_gives_here(cluster, tmp_path):
    scores = {}
    for name in ("local", "ray"):
        workspace(tmp_path / name, text_items(30), makers.fake("m", reply="Rule binds courts."))
        (tmp_path / name / "my.py").write_text(OWN)
        (tmp_path / name / "suite.toml").write_text(SUITE)
        plan = tmp_path / name / "suite.toml"
        ended = result_of(drive_run(cluster, plan, "--engine", name, "--trust-code"))
        assert ended[0] == 0, ended[2]
        [run] = (tmp_path / name / "runs").iterdir()
        scores[name] = (run / "scores.jsonl").read_bytes()
    assert scores["ray"] == scores["local"]


PROVIDER = """
from medassay import Completion


class Mine:
    def __init__(self, spec, secrets):
        pass

    async def complete(self, prompt, sampling, *, repeat):
        return Completion(text="Rule binds courts.")

    async def close(self):
        pass
"""


@pytest.fixture
def provider_package(tmp_path, monkeypatch):
    """Install a package with a provider for all processes that are started from here on."""
    points = "[medassay.providers]\nmine = mine_eval:Mine\n"
    path = makers.install_package(tmp_path / "site-packages", "mine_eval", PROVIDER, points)
    monkeypatch.setenv("PYTHONPATH", path)
    return path


@pytest.mark.slow
def test_the_provider_of_a_package_is_asked_where_it_is_installed(
    cluster, tmp_path, provider_package
):
    from benchmarks.ray_nodes import Cluster

    model = {"id": "m", "provider": "mine", "location": "local"}
    plan = workspace(tmp_path / "ray", text_items(20), model, engine={"shard": 8, "workers": 2})
    driver = {**cluster.env, "PYTHONPATH": provider_package}  # its nodes are without the package
    command = ("run", plan, "--quiet", "--engine", "ray")
    code, _, errors = result_of(start_command(*command, env=driver))
    assert code == 4
    assert "provider 'mine' is not installed here" in errors
    with Cluster(0, port=free_port(), head_cpus=1) as installed:
        code, _, errors = result_of(start_command(*command, env=installed.env))
    assert code == 0, errors
    [run] = (tmp_path / "ray" / "runs").iterdir()
    assert '"failed"' not in (run / "trials.jsonl").read_text()
    assert medassay.verify(run).ok


@pytest.mark.slow
def test_killed_nodes_and_drivers_lose_nothing_and_no_journalled_answer_is_asked_again(
    cluster, tmp_path, mock_server
):
    log = tmp_path / "asked"
    n = 4000
    model = makers.endpoint(mock_server("--log", log, "--delay-ms", "40"), concurrency=24)
    items = makers.many_items(n)
    plan = workspace(tmp_path / "many", items, model, engine={"shard": 200, "workers": 2})
    first = drive_run(cluster, plan, "--engine", "ray", "--log", tmp_path / "events")
    wait_for_requests(log, 800, first)
    cluster.kill(cluster.nodes.pop())  # a node with its worker, as a power cut does
    while "worker_lost" not in (tmp_path / "events").read_text():
        time.sleep(0.02)
        assert first.poll() is None, first.stderr.read()
    first.send_signal(signal.SIGKILL)
    first.communicate()
    cluster.nodes.append(cluster.add())
    second = drive_run(cluster, plan, "--engine", "ray", "--log", tmp_path / "events")
    code, _, errors = result_of(second)
    assert code == 0, errors
    assert "waiting_for_leases" in (tmp_path / "events").read_text()
    [run] = (tmp_path / "many" / "runs").iterdir()
    assert medassay.verify(run).ok
    whole = medassay.run(
        workspace(tmp_path / "one", items, makers.fake(letters="hash")), secrets={}
    )
    assert [t["item"] for t in trials(run)] == [t["item"] for t in trials(whole.path)]
    # A reply is stored before its answer is journalled: what was journalled would be stored twice.
    stored = Counter(
        key
        for path in (tmp_path / "many" / "responses").glob("*.jsonl.zst")
        for key in keys_of(path)
    )
    assert len(stored) == n
    assert max(stored.values()) == 1
    # Only what was under way at the two kills was asked twice.
    assert sum(times - 1 for times in requests_in(log).values()) <= 2 * 24


def trials(run):
    from medassay.storage.jsonl import read_jsonl

    return list(read_jsonl(run / "trials.jsonl"))


@pytest.mark.slow
def test_ctrl_c_ends_all_workers_and_the_local_engine_goes_on(cluster, tmp_path, mock_server):
    log = tmp_path / "asked"
    model = makers.endpoint(mock_server("--log", log, "--delay-ms", "20"), concurrency=8)
    items = makers.many_items(4000)
    plan = workspace(tmp_path / "many", items, model, engine={"shard": 100, "workers": 2})
    process = drive_run(cluster, plan, "--engine", "ray", "--log", tmp_path / "events")
    wait_for_requests(log, 300, process)
    process.send_signal(signal.SIGINT)
    code, _, errors = result_of(process)
    before = requests_in(log).total()
    assert code == 130, (errors, before, (tmp_path / "events").read_text())
    assert "the same command resumes" in errors
    assert before < 4000
    time.sleep(1)  # what must not happen is given time: a request that a worker still sends
    assert requests_in(log).total() == before
    run = medassay.run(plan, secrets={})
    assert max(requests_in(log).values()) == 1
    assert sum(requests_in(log).values()) == 4000
    assert sealed(run)["trials.jsonl"].count(b"\n") == 4000


@pytest.mark.slow
def test_what_ray_says_of_a_lost_node_does_not_stand_where_the_result_belongs(
    cluster, tmp_path, mock_server
):
    import psutil

    log, events = tmp_path / "asked", tmp_path / "events"
    model = makers.endpoint(mock_server("--log", log, "--delay-ms", "50"), concurrency=4)
    plan = workspace(tmp_path / "many", makers.many_items(6000), model, engine={"shard": 50})
    process = drive_run(cluster, plan, "--engine", "ray", "--log", events, "--json")
    wait_for_requests(log, 50, process)
    node = cluster.nodes.pop()
    [raylet] = [p for p in psutil.Process(node.pid).children() if p.name() == "raylet"]
    raylet.kill()  # the processes beside it tell everybody why, on up to forty lines
    while '"worker_lost"' not in events.read_text():
        time.sleep(0.1)
    time.sleep(5)  # for what must not be printed: the lines in which Ray tells of it
    cluster.kill(node)
    process.send_signal(signal.SIGINT)
    code, out, errors = result_of(process)
    cluster.nodes.append(cluster.add())
    assert code == 130, errors
    assert json.loads(out)["error"]["kind"] == "Interrupted"
    assert errors == ""


@pytest.mark.slow
def test_a_study_is_asked_by_workers_and_finds_what_one_process_finds(
    cluster, tmp_path, mock_server
):
    log = tmp_path / "asked"
    found = {}
    for name in ("local", "ray"):
        (tmp_path / name).mkdir()
        makers.write_models(
            tmp_path / name,
            makers.endpoint(
                mock_server("--log", log, "--delay-ms", "150"),
                "judge",
                family="x",
                concurrency=4,
            ),
        )
        options = ["--workspace", tmp_path / name, "--models", tmp_path / name / "models.json"]
        options += ["--engine", name, "--log", tmp_path / f"events-{name}"]
        command = ("--json", "--quiet", "study", "injection", "--judge", "judge")
        code, found[name], errors = result_of(start_command(*command, *options, env=cluster.env))
        assert code == 0, errors
    assert found["local"] == found["ray"]
    assert (tmp_path / "events-ray").read_text().count('"worker_left"') == 2
    assert not any(times % 2 for times in requests_in(log).values())
    assert not list((tmp_path / "ray" / "studies").iterdir())


def test_a_secret_reaches_the_workers_and_nothing_else(cluster, tmp_path, mock_server):
    key = "sk-" + "a1" * 20
    model = makers.endpoint(mock_server(), api_key_env="SCALE_TEST_KEY")
    plan = workspace(tmp_path / "many", makers.many_items(20), model)
    log = tmp_path / "events"
    env = cluster.env
    try:
        cluster.env = env | {"SCALE_TEST_KEY": key}
        code, out, errors = result_of(drive_run(cluster, plan, "--engine", "ray", "--log", log))
    finally:
        cluster.env = env
    assert code == 0, errors
    assert key not in out + errors + log.read_text()
    for path in (tmp_path / "many").rglob("*"):
        assert not path.is_file() or key.encode() not in path.read_bytes()
    logs = Path("/tmp/ray/session_latest/logs").resolve()
    assert any(logs.glob("worker-*")), logs  # those of a worker are there
    found = subprocess.run(
        ["grep", "-rl", "--binary-files=text", key, logs], capture_output=True, check=False
    )
    assert (found.returncode, found.stdout) == (1, b"")  # 2 would be: could not look


@pytest.mark.local_model
def test_replicas_of_weights_tell_the_likelihoods_that_one_process_tells(
    cluster, tmp_path, weights
):
    model = {"id": "m", "provider": "transformers", "path": str(weights), "location": "local"}
    found = {}
    for name in ("local", "ray"):
        plan = workspace(
            tmp_path / name,
            makers.many_items(500),  # enough for the one that is ready later
            model | {"device": "cpu", "concurrency": 16},
            scoring="likelihood",
            engine={"shard": 10},
        )
        plan.write_text(plan.read_text() + "[engine.replicas]\nm = 2\n")
        options = ["--engine", "ray", "--log", tmp_path / "events"] if name == "ray" else []
        code, _, errors = result_of(drive_run(cluster, plan, *options))
        assert code == 0, errors
        [run] = (tmp_path / name / "runs").iterdir()
        found[name] = trials(run)
    assert (tmp_path / "events").read_text().count('"worker_left"') == 2
    for one, many in zip(found["local"], found["ray"], strict=True):
        assert one["value"] == many["value"]
        for a, b in zip(one["likelihoods"], many["likelihoods"], strict=True):
            assert a["logprob" if "logprob" in a else "total"] == pytest.approx(
                b["logprob" if "logprob" in b else "total"], abs=1e-4
            )


def spec(name, provider="openai_compatible", **values):
    url = {"url": "http://127.0.0.1:9"} if provider == "openai_compatible" else {}
    return ModelSpec(id=name, provider=provider, **url, **values)


def test_weights_get_replicas_with_their_devices_and_endpoints_the_processors_left():
    specs = {
        "api": spec("api"),
        "done": spec("done"),
        "big": spec("big", "transformers", gpus=2),
        "small": spec("small", "transformers", device="cpu"),
    }
    units = {"api": 5000, "done": 0, "big": 100, "small": 100}
    rules = EngineRules(shard=1000, replicas={"big": 3})
    pools = engine.parted(specs, units, rules, {"CPU": 16.0, "GPU": 8.0})
    found = {tuple(sorted(pool.models)): (pool.workers, pool.gpus) for pool in pools}
    assert found == {("big",): (3, 2), ("small",): (1, 0), ("api",): (5, 0)}
    # Never more workers than shards; as many as the plan says where it says so; no GPU is asked for
    # where there is none.
    [pool] = engine.parted({"api": spec("api")}, {"api": 700}, rules, {"CPU": 16.0})
    assert pool.workers == 1
    [pool] = engine.parted({"api": spec("api")}, {"api": 700}, EngineRules(workers=4), {})
    assert pool.workers == 4
    [pool] = engine.parted({"big": specs["big"]}, {"big": 9}, rules, {"CPU": 4.0})
    assert pool.gpus == 0
    # What cannot do without a device waits for one, where a cluster grows on demand.
    for needy in (spec("v", "vllm"), spec("v", "transformers", device="cuda")):
        [pool] = engine.parted({"v": needy}, {"v": 9}, rules, {"CPU": 4.0})
        assert pool.gpus == 1


def test_without_ray_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UnavailableError, match=r"pip install 'medassay\[ray\]'"):
        engine.connect()


def test_an_address_where_nobody_answers_is_told_in_one_line(tmp_path, cluster):
    plan = workspace(tmp_path, makers.many_items(3), makers.fake(reply="A"))
    env = cluster.env
    try:
        cluster.env = env | {"RAY_ADDRESS": "127.0.0.1:1"}
        code, _, errors = result_of(drive_run(cluster, plan, "--engine", "ray"))
    finally:
        cluster.env = env
    assert code == 3
    assert "no cluster answers at RAY_ADDRESS" in errors
    assert errors.count("\n") == 1
