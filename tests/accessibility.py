"""What axe-core finds wrong with a page in a browser: WCAG 2.2, levels A and AA."""

from functools import cache
from pathlib import Path

_LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
_COLOURS = ["color-contrast", "link-in-text-block"]


def violations(page, *, colours_only=False):
    """Return a line for each violation, with every section of the page open.

    `colours_only` asks for what depends on colours: all that a dark scheme, paper or a width
    changes, and a fraction of the work.
    """
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    if not page.evaluate("'axe' in window"):
        page.evaluate(_source())
    asked = {"runOnly": _COLOURS if colours_only else _LEVELS, "resultTypes": ["violations"]}
    result = page.evaluate("asked => axe.run(document, asked)", asked)
    assert len(result["passes"]) > (0 if colours_only else 5), page.url  # it did look
    return [
        f"{violation['id']}: {node['html'][:160]}"
        for violation in result["violations"]
        for node in violation["nodes"][:2]
    ]


@cache
def _source():
    import axe_playwright_python

    return (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
