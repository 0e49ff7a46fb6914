"""Code of a user, and workspaces whose plans name it."""

import json
import textwrap

from tests import makers

import medassay

SCORE = """
def score(item, answer):
    right = set(item.reference_text.split())
    said = set(answer.value.split())
    return {"score": len(right & said) / len(right), "words": min(len(said), 100)}
"""


READ = """
def read(item, text):
    return {"eins": "A", "zwei": "B"}.get(text.strip().lower())
"""


GRADER = """
class MyGrader:
    def prompt(self, item, answer):
        return [{"role": "user", "content": f"{item.question}: {answer.value}. Mark 0 to 5?"}]

    def verdict(self, item, answer, reply):
        mark = reply.split()[-1]
        return float(mark) if mark.isdigit() else None
"""


def workspace(folder, items, *models, code, **plan):
    path = makers.workspace(folder, items, *models, **plan)
    (folder / "my.py").write_text(textwrap.dedent(code))
    return path


def lines(run, name="scores.jsonl"):
    return [json.loads(line) for line in (run.path / name).read_text().splitlines()]


def scores(run):
    return [line["score"] for line in lines(run)]


def content(place, **options):
    report = medassay.verify(place, **options)
    assert report.ok, report.first_mismatch
    return next(check["detail"] for check in report.checks if check["name"].endswith("content"))
