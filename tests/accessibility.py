"""What axe-core finds wrong with a page in a browser: WCAG 2.2, levels A and AA."""

import os
from functools import cache
from pathlib import Path

_LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
_COLOURS = ["color-contrast", "link-in-text-block"]
_EVERY_TEXT = bool(os.environ.get("MEDASSAY_EVERY_SIZE"))

# Runs axe and returns what is read of its results: all of them would be a megabyte a page. What
# does not depend on colours is looked at everywhere. Colours take most of the time: of parts in
# which the way from the root has the same tags, classes and styles, the first three have those of
# all; `make every-size` looks at every text.
_RUN = """async ([levels, colours, coloursOnly, everyText]) => {
  const asked = {resultTypes: ["violations"]}
  const results = []
  if (!coloursOnly) {
    const rules = Object.fromEntries(colours.map(rule => [rule, {enabled: false}]))
    results.push(await axe.run(document, {...asked, runOnly: levels, rules}))
  }
  const times = new Map()
  const leaves = everyText ? [] : document.querySelectorAll("body *:not(:has(*))")
  for (const leaf of leaves) {
    let way = ""
    for (let part = leaf; part; part = part.parentElement)
      way += [part.tagName, ...Array.from(part.attributes, ({name, value}) =>
        name === "class" || name === "style" ? name + value : name)].join(" ") + "/"
    times.set(way, (times.get(way) ?? 0) + 1)
    leaf.toggleAttribute("data-alike", times.get(way) > 3)
  }
  const context = {include: [["html"]], exclude: [["[data-alike]"]]}
  results.push(await axe.run(context, {...asked, runOnly: colours}))
  for (const leaf of leaves) leaf.removeAttribute("data-alike")
  return results.map(({passes, violations}) => ({
    passes: passes.length,
    violations: violations.flatMap(({id, nodes}) =>
      nodes.slice(0, 2).map(({html}) => `${id}: ${html.slice(0, 160)}`)),
  }))
}"""


def violations(page, *, colours_only=False):
    """Return a line for each violation, with every section of the page open.

    `colours_only` asks for what a dark scheme, paper or a width changes: a fraction of the work.
    """
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    if not page.evaluate("'axe' in window"):
        page.evaluate(_source())
    *structure, colours = page.evaluate(_RUN, [_LEVELS, _COLOURS, colours_only, _EVERY_TEXT])
    assert all(found["passes"] > 5 for found in structure), page.url  # it did look
    assert colours["passes"] > 0, page.url
    return [line for found in (*structure, colours) for line in found["violations"]]


@cache
def _source():
    import axe_playwright_python

    return (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
