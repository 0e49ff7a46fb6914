"""What a run says of the code and the packages that made it."""

import subprocess
from importlib import metadata

import pytest

from medassay.runner.manifest import _PACKAGES, _commit, _version


def git(folder, *command):
    names = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    run = ["git", "-C", str(folder), *names, *command]
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip()


def test_the_commit_of_a_checkout_and_whether_files_differ_from_it(tmp_path):
    assert _commit(tmp_path) is None
    _commit.cache_clear()
    git(tmp_path, "init", "-q")
    assert _commit(tmp_path) is None  # nothing was committed
    (tmp_path / "a").write_text("a")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-qm", "a")
    (tmp_path / "b").write_text("not of the checkout")
    head = git(tmp_path, "rev-parse", "HEAD")
    _commit.cache_clear()
    assert _commit(tmp_path) == head
    (tmp_path / "a").write_text("changed")
    assert _commit(tmp_path) == head  # the code that this process runs is the one from before
    _commit.cache_clear()
    assert _commit(tmp_path) == f"{head}+"
    git(tmp_path, "commit", "-qam", "b")
    git(tmp_path, "checkout", "-q", "--detach")
    _commit.cache_clear()
    assert _commit(tmp_path) == git(tmp_path, "rev-parse", "HEAD")
    _commit.cache_clear()


@pytest.mark.parametrize("package", ["medassay", *_PACKAGES])
def test_versions_are_those_of_the_installed_packages(package):
    try:
        version = metadata.version(package)
    except metadata.PackageNotFoundError:
        with pytest.raises(metadata.PackageNotFoundError):
            _version(package)
    else:
        assert _version(package) == version
