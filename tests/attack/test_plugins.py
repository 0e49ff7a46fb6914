"""Installed packages that would look on."""

import os
import subprocess
import sys

import pytest

from tests import makers

SPY = """
import pathlib
pathlib.Path("seen").write_text("")
plugin = None
"""


@pytest.mark.parametrize("wish", [None, ""])
def test_no_plugin_of_pydantic_sees_a_plan_unless_it_is_wished(tmp_path, wish):
    makers.workspace(tmp_path, makers.many_items(2), makers.fake(reply="B"))
    points = "[pydantic]\nspy = spy:plugin\n"
    path = makers.install_package(tmp_path / "installed", "spy", SPY, points)
    env = {k: v for k, v in os.environ.items() if k != "PYDANTIC_DISABLE_PLUGINS"}
    env |= {"PYTHONPATH": path}
    env |= {} if wish is None else {"PYDANTIC_DISABLE_PLUGINS": wish}
    command = [sys.executable, "-m", "medassay", "run", "plan.toml", "--quiet"]
    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert (tmp_path / "seen").exists() is (wish is not None), done.stderr
    if wish is None:
        assert done.returncode == 0, done.stderr
