"""What axe-core finds wrong with a page in a browser: WCAG 2.2, levels A and AA."""

from functools import cache
from pathlib import Path

_LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
_COLOURS = ["color-contrast", "link-in-text-block"]


# Runs axe and returns what is read of its result: all of it would be a megabyte a page. Of parts in
# which the way from the root has the same tags, classes and styles, the first three have the colours
# of all; every text is looked at where `everywhere` says so.
_RUN = """async ([asked, everywhere]) => {
  const times = new Map()
  const leaves = everywhere ? [] : document.querySelectorAll("body *:not(:has(*))")
  for (const leaf of leaves) {
    let way = ""
    for (let part = leaf; part; part = part.parentElement)
      way += [part.tagName, ...Array.from(part.attributes, ({name, value}) =>
        name === "class" || name === "style" ? name + value : name)].join(" ") + "/"
    times.set(way, (times.get(way) ?? 0) + 1)
    leaf.toggleAttribute("data-alike", times.get(way) > 3)
  }
  const context = {include: [["html"]], exclude: [["[data-alike]"]]}
  const result = await axe.run(everywhere ? document : context, asked)
  for (const leaf of leaves) leaf.removeAttribute("data-alike")
  return {
    passes: result.passes.length,
    violations: result.violations.flatMap(({id, nodes}) =>
      nodes.slice(0, 2).map(({html}) => `${id}: ${html.slice(0, 160)}`)),
  }
}"""


def violations(page, *, colours_only=False):
    """Return a line for each violation, with every section of the page open.

    `colours_only` asks for what depends on colours, of each part once: all that a dark scheme, paper
    or a width changes, and a fraction of the work.
    """
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    if not page.evaluate("'axe' in window"):
        page.evaluate(_source())
    asked = {"runOnly": _COLOURS if colours_only else _LEVELS, "resultTypes": ["violations"]}
    result = page.evaluate(_RUN, [asked, not colours_only])
    assert result["passes"] > (0 if colours_only else 5), page.url  # it did look
    return result["violations"]


@cache
def _source():
    import axe_playwright_python

    return (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
