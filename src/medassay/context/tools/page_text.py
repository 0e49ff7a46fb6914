"""The text of a page, extracted in a process of its own: `python -m
medassay.context.tools.page_text <page >text`.

It writes a JSON object: `text`, and `headings`, each as level and title. Pages are hostile, and an
extractor can hang, crash or eat all memory; a process can be ended, is bounded, and holds no
secrets.
"""

import json
import resource
import sys
from typing import Any

MEMORY, SECONDS = 2 * 2**30, 15
_LONGEST = 10_000_000  # characters written
_MOST_HEADINGS = 5_000


def main() -> None:
    """Read a page from standard input and write its text, UTF-8, to standard output."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import trafilatura

    page = sys.stdin.buffer.read()
    text = trafilatura.extract(page, output_format="txt", include_comments=False)
    if not text:  # nothing that looks like an article: all that is text
        text = trafilatura.html2txt(page)
    document = {
        "text": (text or "")[:_LONGEST],
        "headings": _headings(trafilatura.load_html(page)),
    }
    sys.stdout.buffer.write(json.dumps(document).encode())


def _headings(tree: Any) -> list[tuple[int, str]]:
    """Return level and title of the headings of a page, in their order."""
    if tree is None:
        return []
    headings = [
        (int(element.tag[1]), " ".join(element.text_content().split()))
        for element in tree.iter("h1", "h2", "h3", "h4", "h5", "h6")
    ]
    return [(level, title) for level, title in headings if title][:_MOST_HEADINGS]


if __name__ == "__main__":
    main()
