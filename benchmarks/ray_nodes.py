"""Ray nodes on this machine, each a group of processes that can be killed."""

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil

TOKEN = secrets.token_hex(16)
RAY = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN, "RAY_USAGE_STATS_ENABLED": "0"}
PORT = 6390
_WATCH = """
import time
import ray
for _ in range(20):  # the head may not answer yet
    try:
        ray.init(log_to_driver=False)
        break
    except ConnectionError:
        time.sleep(0.5)
for _ in range(3000):  # five minutes, on a loaded machine
    print(sum(node["Alive"] for node in ray.nodes()), flush=True)
    time.sleep(0.1)
"""


class Cluster:
    """Ray nodes on this machine, each a process group of its own that can be killed."""

    def __init__(self, nodes, cpus=1, port=PORT, head_cpus=0):
        self.port = port
        self.env = os.environ | RAY | {"RAY_ADDRESS": f"127.0.0.1:{port}"}
        # The head has no processor to give unless told so: workers live on nodes that may die.
        head = ["--head", f"--port={port}", "--include-dashboard=false"]
        self.head = self._node(head, head_cpus)
        self.nodes = []
        try:
            self._start(nodes, cpus)
        except BaseException:
            self.__exit__()
            raise

    def _start(self, nodes, cpus):
        """Start nodes one after the other, since two at once may choose one port; one process looks
        at them, for each costs two seconds to start.
        """
        self._wait_for_head()
        watch = subprocess.Popen(
            [sys.executable, "-c", _WATCH],
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            for number in range(nodes + 1):
                if number:
                    self.nodes.append(self.add(cpus))
                if not any(int(alive) > number for alive in watch.stdout):
                    raise SystemExit(f"no cluster of {number + 1} nodes came up")
        finally:
            watch.kill()
            watch.wait()
            watch.stdout.close()

    def _wait_for_head(self):
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.1)
        raise SystemExit("the head of the cluster did not come up")

    def _node(self, options, cpus):
        command = [Path(sys.executable).parent / "ray", "start", "--block", *options]
        command += [f"--num-cpus={cpus}", "--node-ip-address=127.0.0.1"]
        command += ["--include-log-monitor=false"]  # a process more, that nobody reads
        env = {k: v for k, v in self.env.items() if k != "RAY_ADDRESS"}
        return subprocess.Popen(
            list(map(str, command)),
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def add(self, cpus=1):
        return self._node([f"--address=127.0.0.1:{self.port}"], cpus)

    def cpu(self):
        """Return the CPU seconds of Ray's own processes: those of nodes that are not workers."""
        spent = 0.0
        for node in (self.head, *self.nodes):
            with contextlib.suppress(psutil.Error):
                for process in psutil.Process(node.pid).children(recursive=True):
                    with contextlib.suppress(psutil.Error):
                        if "_Actor" not in " ".join(process.cmdline()):
                            times = process.cpu_times()
                            spent += times.user + times.system
        return spent

    def kill(self, node):
        """Kill a node as a power cut does: all its processes, at once."""
        with contextlib.suppress(psutil.Error):
            family = psutil.Process(node.pid).children(recursive=True)
            for process in (psutil.Process(node.pid), *family):
                with contextlib.suppress(psutil.Error):
                    process.send_signal(signal.SIGKILL)
        node.wait()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for node in (*self.nodes, self.head):
            self.kill(node)
