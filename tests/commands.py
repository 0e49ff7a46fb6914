"""Commands in processes of their own, and the log in which a mock server writes what it was
asked.
"""

import os
import signal
import subprocess
import sys
import time
from collections import Counter


def start_command(*arguments, env=None):
    """Start a command of medassay; its output is read when it has ended (`ended`)."""

    # A test run in the background may have been told to ignore Ctrl-C or the end of its terminal;
    # its child must hear them.
    def hear():
        for stopping in (signal.SIGINT, signal.SIGHUP):
            signal.signal(stopping, signal.SIG_DFL)

    return subprocess.Popen(
        [sys.executable, "-m", "medassay", *map(str, arguments)],
        env=(env or os.environ) | {"NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear,  # noqa: PLW1509 -- it calls one function before exec
    )


def result_of(process):
    """Return exit code, output and errors of a command."""
    out, errors = process.communicate(timeout=300)
    return process.returncode, out, errors


def requests_in(log):
    """Return how often the mock server was asked each thing."""
    return Counter(log.read_text().split()) if log.exists() else Counter()


def wait_for_requests(log, n, process=None):
    """Wait until the mock server was asked so often."""
    while requests_in(log).total() < n:
        time.sleep(0.02)
        assert process is None or process.poll() is None, process.stderr.read()
