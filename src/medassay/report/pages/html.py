"""Templates, and how hostile text becomes visible and harmless."""

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup, escape

from medassay.core.ranks import p_text
from medassay.core.records.item import shuffle_text
from medassay.core.records.leaderboard import unread_share
from medassay.core.records.statistics import OVERALL, LeaderboardRow
from medassay.core.records.target import LETTERS
from medassay.core.scale import units
from medassay.report.badge import badge_path
from medassay.report.board import Board, ShownCell
from medassay.report.localize import LocalizedLoader
from medassay.report.references import number_text, page_address, reference
from medassay.report.texts import ENGLISH, Texts

# Controls and format marks, among them all that turn the direction of text.
_INVISIBLE = ("Cc", "Cf", "Co", "Cs")
Page = tuple[str, str]  # path relative to the publication, content


def visible(text: object) -> Markup:
    r"""Return text escaped, with control and bidirectional characters spelled out.

    Examples
    --------
    >>> str(visible("<b>\u202ex"))
    '&lt;b&gt;<span class="control">U+202E</span>x'
    """
    full_text = str(text)
    if full_text.replace("\n", "").replace("\t", "").isprintable():  # nearly all that is shown
        return escape(full_text)
    parts: list[Markup] = []
    plain: list[str] = []
    for character in full_text:
        if unicodedata.category(character) in _INVISIBLE and character not in "\n\t":
            parts.append(escape("".join(plain)))
            plain = []
            parts.append(Markup('<span class="control">U+{:04X}</span>').format(ord(character)))
        else:
            plain.append(character)
    parts.append(escape("".join(plain)))
    return Markup("").join(parts)


def neutral(value: Any) -> Any:
    """Return text with the characters that `visible` spells out spelled out plainly.

    Every expression of a template passes here, so that nothing depends on a filter not forgotten;
    in attributes and titles there can be no mark-up anyway.
    """
    if isinstance(value, Markup) or not isinstance(value, str) or value.isprintable():
        return value
    return "".join(
        f"U+{ord(c):04X}" if unicodedata.category(c) in _INVISIBLE and c not in "\n\t" else c
        for c in value
    )


def percent(value: float | None) -> str:
    """Return a share as percent with one decimal, a dash for None."""
    return "–" if value is None else f"{100 * value:.1f}"


def signed(value: float | None, digits: int) -> str:
    """Return a number with a true minus sign, a dash for None.

    Examples
    --------
    >>> signed(-0.3974, 2), signed(0.5, 1), signed(-0.001, 2)
    ('−0.40', '0.5', '0.00')
    """
    if value is None:
        return "–"
    return true_minus(f"{value:.{digits}f}")


def true_minus(text: str) -> str:
    """Return a number as it is printed, with a true minus sign, and none before a zero."""
    if not text.startswith("-"):
        return text
    return f"−{text[1:]}" if float(text) else text[1:]


def short(value: float | None) -> str:
    """Return a number with at most four digits, for data attributes; empty for None."""
    return "" if value is None else f"{value:.4f}".rstrip("0").rstrip(".")


def hardened(loader: jinja2.BaseLoader) -> jinja2.Environment:
    """Return an environment of templates: everything is escaped, and what steers a reading
    direction spelled out.
    """
    jinja = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=neutral,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,  # what is installed does not change while it runs
    )
    jinja.filters["visible"] = visible
    return jinja


@lru_cache(maxsize=8)
def environment(texts: Texts = ENGLISH) -> jinja2.Environment:
    """Return the environment of the site's templates in a language."""
    return environment_of(texts=texts)


def environment_of(*first: tuple[str, str], texts: Texts = ENGLISH) -> jinja2.Environment:
    """Return the environment of the site's templates, with others that come first.

    Parameters
    ----------
    first : packages, each with its folder of templates
    """
    # Kinds have their templates in their folders.
    folders = (*first, ("medassay.report.pages", "templates"), ("medassay", "kinds"))
    loader: jinja2.BaseLoader = jinja2.ChoiceLoader(
        [jinja2.PackageLoader(*folder) for folder in folders]
    )
    if texts is not ENGLISH:
        catalogue = texts.catalogue
        loader = LocalizedLoader(loader, catalogue.texts.get, catalogue.literals.get)
    jinja = hardened(loader)
    plain_format = jinja.filters["format"]
    jinja.filters.update(
        begun=lambda text: text[:1].upper() + text[1:],
        day=texts.day,
        format=lambda form, *values: texts.number(plain_format(form, *values)),
        grouped=lambda number: texts.grouped(f"{number:,}"),
        percent=lambda value: texts.number(percent(value)),
        reason=lambda text: texts.reason(str(text)),
        said=lambda text: texts.said(str(text)),
        short=short,
        shown_number=lambda value: texts.number(str(value)) if type(value) is float else value,
        signed=lambda value, digits: texts.number(signed(value, digits)),
        units=lambda value, scale: texts.number(true_minus(units(value, scale))),
        unread=unread_share,
        shuffle_text=shuffle_text,
    )
    jinja.globals.update(
        LETTERS=LETTERS,
        language=texts.language,
        p_text=lambda p: texts.number(p_text(p)),
        metric_name=lambda metric: texts.said(metric_name(metric)),
        pair_name=_pair_name,
        counted=texts.counted,
        listed=texts.listed,
        cell_key=_cell_key,
        badge_path=badge_path,
        number_text=number_text,
        page_address=page_address,
        reference=reference,
        row_text=_row_text,
    )
    return jinja


def _cell_key(domain: str, row: LeaderboardRow) -> ShownCell:
    return ShownCell(domain=domain, model=row.model, setting=row.setting, mode=row.mode)


def _row_text(board: Board, domain: str, row: LeaderboardRow) -> str:
    """Return the number of a row in words, as it is cited."""
    texts = board.texts
    where = texts.said(OVERALL) if domain == OVERALL else board.domain_name(domain)
    n_ranked = sum(other.rank is not None for other in board.rows(domain, row.mode))
    ranks = "" if row.rank is None else texts.said(f"rank {row.rank_text()} of {n_ranked}")
    score = row.score_text.replace(", ", f"{texts.between} ")
    metric = texts.said(metric_name(row.metric))
    names = f"{row.model}, {where}, {board.setting_name(row.setting)}, {row.mode}"
    return f"{names}, {metric} {texts.number(score)}{', ' if ranks else ''}{ranks}"


def metric_name(metric: str) -> str:
    """Return a metric as captions and links name it."""
    names = {
        "accuracy": "Accuracy",
        "chrf": "chrF",
        "fact_score": "Fact score",
        "top100": "Score",
    }
    return names.get(metric, metric)


def _pair_name(row: Sequence[str], other: Sequence[str]) -> str:
    """Return how one row of a pair is called: with its setting where that tells the two apart."""
    return row[0] if row[0] != other[0] else f"{row[0]} ({row[1]})"


def render(template: str, board: Board, path: str, *, up: str | None = None, **values: Any) -> Page:
    """Return a page of a publication.

    `path` is its folder ("" for the first page); all links are relative to it by `up`.
    """
    root = "../" * path.count("/") if up is None else up
    content = (
        environment(board.texts)
        .get_template(template)
        .render(board=board, up=root or "./", path=path, **values)
    )
    return f"{path}index.html", content


def asset(name: str, texts: Texts = ENGLISH) -> bytes:
    """Return the bytes of a style sheet or script of the site; its style begins with what boards,
    viewer and review app share.
    """
    content = (files("medassay.report.pages") / "templates" / name).read_bytes()
    if name.endswith(".js"):
        return texts.script(content.decode()).encode()
    return asset("base.css") + content if name == "style.css" else content
