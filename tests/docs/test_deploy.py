"""The manifest and the container file say what the locks and the command line say."""

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import yaml
from tests.conftest import absent

ROOT = Path(__file__).parents[2]


def containers(document):
    if isinstance(document, dict):
        yield from document.get("containers", [])
        for value in document.values():
            yield from containers(value)
    elif isinstance(document, list):
        for value in document:
            yield from containers(value)


def manifest():
    found = yaml.safe_load_all((ROOT / "deploy" / "raycluster.yaml").read_text())
    return {document["kind"]: document for document in found}


def test_cluster_and_job_run_the_locked_ray_in_one_image_with_secrets_from_secrets():
    cluster, job = manifest()["RayCluster"], manifest()["Job"]
    locked = re.search(r"^ray==(\S+)", (ROOT / "requirements" / "scale.txt").read_text(), re.M)
    assert cluster["spec"]["rayVersion"] == locked[1]
    nodes, [driver] = list(containers(cluster)), containers(job)
    assert len(nodes) == 2
    assert {one["image"] for one in (*nodes, driver)} == {"medassay:latest"}
    for one in nodes:  # keys of models reach workers by calls alone
        assert secrets(one) == ["ray-token", "object-store"]
    assert secrets(driver) == ["ray-token", "model-keys", "object-store"]


def secrets(container):
    return [source["secretRef"]["name"] for source in container["envFrom"]]


def test_the_job_drives_a_plan_as_the_command_line_understands_it(cli):
    [driver] = containers(manifest()["Job"])
    shell, flag, script = driver["command"]
    assert (shell, flag) == ("bash", "-c")
    node, run = (shlex.split(part) for part in script.split("&& exec"))
    if importlib.util.find_spec("ray") is None:
        absent("no Ray: install requirements/scale.txt")
    started = subprocess.run(
        [sys.executable, "-m", "ray.scripts.scripts", "start", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    code, out, _ = cli("run", "--help")
    assert (code, node[:2], run[:2]) == (0, ["ray", "start"], ["medassay", "run"])
    for told, options in ((started, node), (out, run)):
        for option in options:
            if option.startswith("--") and option not in ("--quiet", "--log"):
                assert option.partition("=")[0] in told


def test_a_pod_that_ended_by_itself_is_not_started_again_and_spends_no_budget_twice():
    job = manifest()["Job"]["spec"]
    assert job["template"]["spec"]["restartPolicy"] == "Never"
    [rule] = job["podFailurePolicy"]["rules"]
    assert rule["action"] == "FailJob"
    assert rule["onExitCodes"]["values"] == [1, 2, 3, 4, 5, 6]


def test_the_image_installs_from_the_locks_and_runs_as_nobody_special():
    text = (ROOT / "deploy" / "Containerfile").read_text()
    for name in re.findall(r"requirements/(\w+\.txt)", text):
        assert (ROOT / "requirements" / name).is_file()
    assert text.count("--require-hashes") == 3
    assert re.findall(r"^FROM \S+$", text, re.M) == re.findall(
        r"^FROM \S+@sha256:[0-9a-f]{64}$", text, re.M
    )
    assert "USER medassay" in text
