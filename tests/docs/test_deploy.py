"""The manifest and the container file say what the locks and the command line say."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def containers(document):
    if isinstance(document, dict):
        yield from document.get("containers", [])
        for value in document.values():
            yield from containers(value)
    elif isinstance(document, list):
        for value in document:
            yield from containers(value)


def test_cluster_and_job_run_the_locked_ray_in_one_image_with_secrets_from_secrets():
    cluster, job = yaml.safe_load_all((ROOT / "deploy" / "raycluster.yaml").read_text())
    locked = re.search(r"^ray==(\S+)", (ROOT / "requirements" / "scale.txt").read_text(), re.M)
    assert cluster["spec"]["rayVersion"] == locked[1]
    found = [*containers(cluster), *containers(job)]
    assert len(found) == 4
    assert {one["image"] for one in found} == {"medassay:latest"}
    for one in found:
        names = [source["secretRef"]["name"] for source in one["envFrom"]]
        assert names == ["ray-token", "model-keys", "object-store"]


def test_the_job_drives_a_plan_as_the_command_line_understands_it(cli):
    _, job = yaml.safe_load_all((ROOT / "deploy" / "raycluster.yaml").read_text())
    [driver] = containers(job)
    name, *arguments = driver["command"]
    assert name == "medassay"
    code, out, _ = cli("run", "--help")
    assert code == 0
    for option in arguments:
        if option.startswith("--") and option not in ("--quiet", "--log"):
            assert option in out


def test_the_image_installs_from_the_locks_and_runs_as_nobody_special():
    text = (ROOT / "deploy" / "Containerfile").read_text()
    for name in re.findall(r"requirements/(\w+\.txt)", text):
        assert (ROOT / "requirements" / name).is_file()
    assert text.count("--require-hashes") == 2
    assert "USER medassay" in text
