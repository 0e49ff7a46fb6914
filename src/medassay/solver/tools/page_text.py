"""The text of a page, extracted in a process of its own: `python -m medassay.solver.tools.page_text <page >text`.

Pages are hostile, and an extractor can hang, crash or eat all memory; a process can be ended, is bounded, and holds no secrets.
"""

import resource
import sys

MEMORY, SECONDS = 2 * 2**30, 15
_LONGEST = 100_000  # characters written


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
    sys.stdout.buffer.write((text or "")[:_LONGEST].encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
