"""Every text of the review app is in every catalogue, with the same holes."""

import ast
import re
import string
from importlib.resources import files
from pathlib import Path

import pytest

import medassay.web
from medassay.review.form import FORMS, MARKS, SEVERITIES
from medassay.review.store.accounts import QUALIFICATIONS
from medassay.review.store.schema import ROLES
from medassay.review.store.tickets import VERDICTS
from medassay.web.texts import LANGUAGES, catalogue, translate

WEB = Path(medassay.web.__file__).parent
STATES = ("open", "experts", "declined", "decided", "checked", "released")
STEPS = ("feedback", "decline", "experts", "decide", "check", "return", "release")


def _of_templates():
    for page in sorted((WEB / "templates").glob("*.html")):
        text = page.read_text("utf-8")
        for found in re.finditer(
            r"""(?<![\w.])t\(\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')(?!\s*~)""", text
        ):
            yield ast.literal_eval(found[1])


def _of_code():
    """Yield the sentences that code hands to pages: arguments of calls that show them."""
    shows = {"say", "Problem", "ProfileError", "Forbidden", "_page", "InputError", "GateError"}
    folders = (WEB, WEB.parent / "review" / "form", WEB.parent / "review" / "store")
    paths = (one for folder in folders for one in sorted(folder.rglob("*.py")))
    # The viewer of runs is for those who run them, and speaks English as the terminal does.
    for path in (one for one in paths if WEB / "viewer" not in one.parents):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                given = [
                    *node.args,
                    *(
                        k.value
                        for k in node.keywords
                        if k.arg in ("says", "asks", "title", "label")
                    ),
                ]
                if name in shows:
                    yield from (one.value for one in given if _is_sentence(one))
            if isinstance(node, ast.Return) and isinstance(node.value, ast.IfExp):
                yield from (
                    one.value for one in (node.value.body, node.value.orelse) if _is_sentence(one)
                )
            if (
                isinstance(node, ast.Assign)
                and getattr(node.targets[0], "id", "") == "says"
                and _is_sentence(node.value)
            ):
                yield node.value.value


def _is_sentence(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value


def _of_forms():
    whole = {
        "path": "x",
        "facts": [{"id": "a", "text": "b"}],
        "criteria": [{"id": "a", "text": "b"}],
    }
    for form in FORMS.values():
        yield from (form.title, form.asks)
        for aspect in (*form.aspects(whole), *form.then):
            yield aspect.label
            yield from (words for _, words in aspect.values)
            yield aspect.group
    yield from (*MARKS.values(), *SEVERITIES, *QUALIFICATIONS, *ROLES, "admin", "creator")
    yield from (f"ticket {one}" for one in STATES)
    yield from (f"step {one}" for one in STEPS)
    yield from (f"verdict {one}" for form in VERDICTS.values() for one in (*form, "settle"))


USED = sorted({*_of_templates(), *_of_code(), *_of_forms()} - {""})
ONLY_FOR_US = (
    "--certificate",
    "database: not an address",
    "nothing to draw",
    "no decision graph",
    "`medassay review import`",
    "the server cannot store anything now",
    "HTTP",
    "served on this machine",
    "Open it as localhost",
    "nobody administers",
    "medassay view",
    "on the server; nothing of yours",
)


@pytest.mark.parametrize("language", sorted(set(LANGUAGES) - {"en"}))
def test_every_text_is_said_in_every_language(language):
    texts = catalogue(language)
    missing = [
        one for one in USED if one not in texts and not any(part in one for part in ONLY_FOR_US)
    ]
    assert missing == []


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_every_translation_has_the_holes_of_the_original(language):
    for text, other in catalogue(language).items():
        holes = [
            {name for _, name, _, _ in string.Formatter().parse(one) if name}
            for one in (text, other)
        ]
        assert holes[0] == holes[1], text
        assert other.strip() == other != ""


def test_catalogues_hold_nothing_that_nobody_says():
    words = "\n".join(
        path.read_text("utf-8")
        for path in (*sorted((WEB / "templates").glob("*.html")), *sorted(WEB.rglob("*.py")))
    )
    unused = [
        one for one in catalogue("de") if one not in USED and one not in words and not one.islower()
    ]
    assert unused == []
    assert files("medassay.web.texts").joinpath("de.json").is_file()


def test_what_no_catalogue_has_is_said_in_english():
    assert translate("de", "No such text {n}", n=3) == "No such text 3"
    assert translate("en", "ticket decided") == "decided, to be checked"
