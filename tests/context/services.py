"""A server that imitates E-utilities, arXiv's Atom API and three search APIs, with faults by query.

What a query holds decides: "slow" is answered too late, "torn" by broken XML or JSON, "busy" by 429
for ever, "hiccup" by 429 once, "down" by 500. Every request that arrives is kept.
"""

import contextlib
import html
import json
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

SEARCH = "<eSearchResult><Count>1</Count><IdList><Id>{pmid}</Id></IdList></eSearchResult>"
ARTICLES = (
    '<?xml version="1.0" ?><!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle//EN"'
    ' "x.dtd">'
    "<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>{pmid}</PMID><Article>"
    "<ArticleTitle>On <i>urate</i> &amp; joints</ArticleTitle><Abstract>"
    '<AbstractText Label="METHODS">We looked.</AbstractText><AbstractText>It was'
    " gout.</AbstractText>"
    "</Abstract></Article></MedlineCitation></PubmedArticle></PubmedArticleSet>"
)
FEED = (
    '<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>http://arxiv.org/abs/2401.00001v2</id>'
    "<title>A study\n  of {query}</title><summary>We\n study it.</summary></entry></feed>"
)


class Services:
    """The server; `asked` counts (path, query), `bodies` and `headers` keep what came."""

    def __init__(self, slow=30.0):
        self.asked, self.headers, self.bodies = Counter(), [], []
        self._lock, self._released = threading.Lock(), threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.answer(b"")

            def do_POST(self):
                self.answer(self.rfile.read(int(self.headers["Content-Length"])))

            def answer(self, body):
                parts = urlsplit(self.path)
                given = {name: values[0] for name, values in parse_qs(parts.query).items()}
                given |= json.loads(body) if body else {}
                query = next(
                    (given[n] for n in ("term", "search_query", "q", "query", "id") if n in given),
                    "",
                )
                with outer._lock:
                    outer.asked[parts.path, query] += 1
                    times = outer.asked[parts.path, query]
                    outer.headers.append(dict(self.headers))
                    outer.bodies.append((parts.path, given))
                if "slow" in query:
                    outer._released.wait(slow)
                status = 429 if "busy" in query or ("hiccup" in query and times == 1) else 200
                status = 500 if "down" in query else status
                text = page(parts.path, query)
                if "torn" in query:
                    text = text[: len(text) // 2]
                self.reply(status, text.encode())

            def reply(self, status, data):
                self.send_response(status)
                if status == 429:
                    self.send_header("Retry-After", "0.05")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def handle(self):
                with contextlib.suppress(ConnectionError):
                    super().handle()

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def rules(self, **more):
        """Return the table [tools] of a plan that asks this server."""
        return {
            "use": ["arxiv_search", "pubmed_search", "web_search"],
            "search": "searxng",
            "search_url": self.url,
            "pubmed_url": f"{self.url}/entrez",
            "arxiv_url": f"{self.url}/arxiv",
            **more,
        }

    def stop(self):
        """Free those who wait, and stop."""
        self._released.set()
        time.sleep(0.05)
        self.server.shutdown()
        self.server.server_close()


def page(path, query):
    """Return the reply to a query."""
    pmid = str(sum(query.encode()) % 10**6 + 1)
    if path.endswith("esearch.fcgi"):
        return SEARCH.format(pmid="" if "nothing" in query else pmid)
    if path.endswith("efetch.fcgi"):
        return ARTICLES.format(pmid=query)
    if path == "/arxiv":
        return FEED.format(query=html.escape(query))
    row = {"title": f"About {query}", "url": "https://example.org/x"}
    if path == "/brave":
        return json.dumps({"web": {"results": [{**row, "description": "a snippet"}]}})
    return json.dumps({"results": [{**row, "content": "a snippet"}]})
