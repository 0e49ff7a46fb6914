"""Installs torch into an environment: a build whose bytes are known where there is one for this
platform, else any, and says so.

A script as well: `python install_torch.py PYTHON`; it needs nothing but Python itself.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

_PLAIN = "torch==2.13.0"
_LOCK = Path(__file__).with_name("torch.txt")
_TESTED = ("Linux", "x86_64", "3.11")
_ABSENT = "No matching distribution found for torch"


def install_torch(python: str, say: Callable[[str], None]) -> bool:
    """Install torch for an interpreter; return whether that worked.

    A build that is there and has other bytes than the list says is refused, not replaced.

    Parameters
    ----------
    say : called with what a user must know
    """
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    program = "import platform as p; print(p.system(), p.machine(), p.python_version())"
    about = subprocess.run([python, "-c", program], capture_output=True, text=True, check=False)
    system, machine, version = [*about.stdout.split(), "", "", ""][:3]
    if (system, machine, version.rpartition(".")[0]) == _TESTED:
        locked = [*pip, "--require-hashes", "--no-deps", "-r", str(_LOCK)]
        done = subprocess.run(
            locked, stdout=sys.stderr, stderr=subprocess.PIPE, text=True, check=False
        )
        if done.returncode == 0:
            return True
        if _ABSENT not in done.stderr:
            say(done.stderr)
            return False
        why = "your package index has no CPU build of it"
    else:
        why = f"{system} {machine} with Python {version} is not among the platforms that are tested"
    say(f"torch is installed without a check of its bytes: {why}")
    return subprocess.run([*pip, _PLAIN], stdout=sys.stderr, check=False).returncode == 0


def _print(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(0 if install_torch(sys.argv[1], _print) else 1)
