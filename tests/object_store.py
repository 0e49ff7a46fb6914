"""A real S3 server (moto's) with a door that a test can shut: every request then gets 503, as from
an overloaded store.
"""

import http.client
import os
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEYS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test-secret-that-must-not-leak",
    "AWS_DEFAULT_REGION": "us-east-1",
}


class Store:
    """The server, its address, and the door before it."""

    def __init__(self):
        self.port = free_port()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | KEYS,
        )
        self.shut = False
        self.refused = 0
        self.puts = []
        store = self

        class Door(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def pass_on(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                if store.shut:
                    store.refused += 1
                    answer = (
                        b"<Error><Code>ServiceUnavailable</Code><Message>down</Message></Error>"
                    )
                    self.send_response(503)
                    self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(b"" if self.command == "HEAD" else answer)
                    return
                if self.command == "PUT":
                    store.puts.append(self.path)
                inner = http.client.HTTPConnection("127.0.0.1", store.port, timeout=30)
                inner.request(self.command, self.path, body, dict(self.headers))
                reply = inner.getresponse()
                data = reply.read()
                self.send_response(reply.status)
                for name, value in reply.getheaders():
                    if name.lower() not in (
                        "transfer-encoding",
                        "connection",
                        "content-length",
                    ):
                        self.send_header(name, value)
                size = reply.getheader("Content-Length") if self.command == "HEAD" else len(data)
                self.send_header("Content-Length", str(size or 0))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)
                inner.close()

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = pass_on

        self.door = ThreadingHTTPServer(("127.0.0.1", 0), Door)
        threading.Thread(target=self.door.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.door.server_port}"
        self._await()

    def _await(self):
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)
        raise RuntimeError("moto's server did not start")

    def bucket(self, name):
        inner = http.client.HTTPConnection("127.0.0.1", self.port)
        inner.request("PUT", f"/{name}", headers={"Host": f"127.0.0.1:{self.port}"})
        assert inner.getresponse().status == 200
        return f"s3://{name}"

    def environment(self, cache):
        """Return what a machine needs to reach the store; each has a cache of its own."""
        return KEYS | {"AWS_ENDPOINT_URL": self.url, "XDG_CACHE_HOME": str(cache)}

    def end(self):
        self.door.shutdown()
        self.door.server_close()
        self.process.kill()
        self.process.wait()


def forget_clients():
    """Close what this process has open to any store, so that the next asks as another machine
    would.
    """
    from fsspec.asyn import sync
    from s3fs import S3FileSystem

    for files in S3FileSystem._cache.values():
        if files._s3 is not None:
            sync(files.loop, files._s3.__aexit__, None, None, None)
    S3FileSystem.clear_instance_cache()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
