"""What a process of its own costs, and the mock server beside it."""

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def measure(command, cwd=None, env=None):
    """Return (wall, CPU seconds, peak MiB) of one process, its children included."""
    wrapper = (
        "import resource,subprocess,sys,time,json;t=time.perf_counter();"
        "code=subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL,stderr=subprocess.PIPE);"
        "w=time.perf_counter()-t;r=resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(json.dumps([w,r.ru_utime+r.ru_stime,r.ru_maxrss/1024,code.returncode,code.stderr.decode()[-400:]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", wrapper, *map(str, command)],
        capture_output=True,
        text=True,
        check=True,
        cwd=cwd,
        # As installed: compiled modules are kept, whatever this shell says.
        env={k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | (env or {}),
    )
    wall, cpu, peak, code, errors = json.loads(done.stdout)
    if code:
        raise SystemExit(f"{command[:6]} failed: {errors}")
    return wall, cpu, peak


@contextlib.contextmanager
def server(*options):
    process = subprocess.Popen(
        [sys.executable, HERE / "mock_server.py", *map(str, options)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield f"http://127.0.0.1:{re.search('[0-9]+', process.stdout.readline())[0]}/v1"
    finally:
        process.kill()
        process.wait()
