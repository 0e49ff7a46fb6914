"""The style pages: every component of boards, viewer and review app, in light and in dark.

`python website/style_pages.py FOLDER` writes them; they stand beside the documentation site, at
`style/boards.html` and `style/review.html`. Printed, they show what paper shows. Fragments lie
in `website/style/`.
"""

import sys
from importlib.resources import files
from pathlib import Path

from medassay.report.pages.html import asset

HERE = Path(__file__).parent
SCHEMES = ("light", "dark")
_SHEET = """.scheme { background: var(--back); color: var(--text); padding: 1rem; }
.scheme.light { color-scheme: light; }
.scheme.dark { color-scheme: dark; }
@media print { .scheme { color-scheme: light; } .scheme.dark { display: none; } }
"""
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Style: {name} · medassay</title>
{styles}
<link rel="icon" href="icon.svg" type="image/svg+xml">
</head>
<body>
<main id="main">
{schemes}
</main>
</body>
</html>
"""


def sheets() -> dict[str, dict[str, bytes]]:
    """Return page → its style sheets by name, in their order."""
    package = files("medassay.web")
    viewer = (package / "viewer/static/view.css").read_bytes()
    review = (package / "static/review.css").read_bytes()
    return {
        "boards": {"boards.css": asset("style.css"), "view.css": viewer},
        "review": {"base.css": asset("base.css"), "review.css": review},
    }


def style_page(name: str) -> str:
    """Return a style page: its components once in each scheme."""
    fragment = (HERE / "style" / f"{name}.html").read_text(encoding="utf-8")
    schemes = (
        f'<section class="scheme {scheme}" aria-label="{scheme}">\n'
        f"{fragment.replace('SCHEME', scheme)}</section>"
        for scheme in SCHEMES
    )
    names = [*sheets()[name], "schemes.css"]
    styles = "\n".join(f'<link rel="stylesheet" href="{sheet}">' for sheet in names)
    return _PAGE.format(name=name, styles=styles, schemes="\n".join(schemes))


def write_style_pages(folder: Path) -> None:
    """Write both pages with their style sheets into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "schemes.css").write_text(_SHEET, encoding="utf-8")
    (folder / "icon.svg").write_bytes(asset("icon.svg"))
    for name, page_sheets in sheets().items():
        (folder / f"{name}.html").write_text(style_page(name), encoding="utf-8")
        for sheet, content in page_sheets.items():
            (folder / sheet).write_bytes(content)


if __name__ == "__main__":
    write_style_pages(Path(sys.argv[1]))
