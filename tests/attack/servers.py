"""Servers that an attacker would run: one that replies whatever it is told to, and a canary that
notes every byte.
"""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Patient(ThreadingHTTPServer):
    request_queue_size = 128  # connections that come at once wait, and are not refused


class Hostile:
    """Replies what `respond(path, headers, body)` returns: status, headers, and a body of text,
    bytes or JSON values.

    In place of a status: `"cut"` breaks the connection off, `"silent"` says nothing until the
    server is closed, `"raw"` sends the body as all there is of the reply and breaks off.
    """

    def __init__(self, respond, host="127.0.0.1"):
        self.requests = []
        self._closed = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                outer.requests.append((self.path, dict(self.headers), body))
                status, headers, said = respond(self.path, dict(self.headers), body)
                if status == "silent":
                    outer._closed.wait(60)
                if status == "raw":
                    self.wfile.write(said)
                if status in ("cut", "silent", "raw"):
                    self.close_connection = True
                    self.connection.close()
                    return
                if isinstance(said, dict | list):
                    said = json.dumps(said)
                data = said.encode() if isinstance(said, str) else said
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = answer

            def log_message(self, *arguments):
                pass

            def handle_one_request(self):
                try:
                    super().handle_one_request()
                except (OSError, ValueError):  # the other side left
                    self.close_connection = True

        self._server = _Patient((host, 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self.url = f"http://{host}:{self.port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()


class Canary:
    """Listens at an address to which nothing may be sent, and keeps whatever comes."""

    def __init__(self, host="127.0.0.1"):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listening = socket.create_server((host, 0), family=family)
        self.port = self._listening.getsockname()[1]
        self.heard = b""
        self.connections = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            connection.settimeout(0.3)
            try:
                while data := connection.recv(4096):
                    self.heard += data
            except OSError:
                pass
            connection.close()

    def close(self):
        self._listening.close()


def says(text):
    """Return a reply of the OpenAI protocol, whatever else is asked by a vendor's own."""
    return {
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": text},
            }
        ],
        "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
    }
