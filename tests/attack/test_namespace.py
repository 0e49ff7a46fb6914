"""Names that change their address, public addresses and IPv6, for real: in a network namespace with
a resolver of our own.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.conftest import ROOT, absent


@pytest.fixture(scope="module")
def found():
    """Run the attacks of `in_namespace` once; skipped where the kernel allows no namespaces."""
    more = [] if os.geteuid() == 0 else ["--map-root-user"]
    enter = ["unshare", "--net", "--mount", *more]
    try:
        allowed = subprocess.run(
            [*enter, "ip", "link", "set", "lo", "up"], check=False, capture_output=True
        )
    except FileNotFoundError:
        absent("no unshare here: install util-linux")
    if shutil.which("ip") is None:
        absent("no ip here: install iproute2")
    if allowed.returncode:
        pytest.skip("this kernel allows no network namespace")
    done = subprocess.run(
        [*enter, sys.executable, "-m", "tests.attack.in_namespace"],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_a_local_entry_whose_name_changes_is_not_connected_to_elsewhere(found):
    assert len(found["rebinding"]) == 18
    for case, came in found["rebinding"].items():
        assert came["heard"] == 0, case
        assert "is no loopback or private address; nothing was sent there" in came["said"], case
        # What changes between two looks is not seen before; the rest is.
        assert (came["looked"] is None) == case.endswith("changes"), case


def test_a_trusted_host_may_have_a_public_address(found):
    assert found["trusted"].startswith("Completion(text='A'")


def test_pages_come_over_ipv6_and_none_from_inside(found):
    came = found["fetching"]
    for what in ("an address", "a name"):
        assert came[f"fetching {what}"].startswith("Aspirin lowers")
    inner = [v for k, v in came.items() if "loopback" in k or "both" in k or "mapped" in k]
    refused = [said for said in inner if said != 0]
    assert len(refused) == 6
    assert all(said.startswith("GateError") for said in refused)
    first, second = came["fetching a name that changes"]
    assert first.startswith("Aspirin")
    assert second.startswith("GateError")
    assert came["heard at loopback"] == 0
