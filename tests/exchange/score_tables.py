"""Runs made from tables of scores."""

from medassay.exchange.predictions import import_predictions

NAMES = ["item", "model", "domain", "score"]


def table(tmp_path, name, rows):
    path = tmp_path / f"{name}.csv"
    lines = [",".join(NAMES), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return import_predictions(path, {n: n for n in NAMES}, to=tmp_path / name)


def answers(model, scores, domain="d"):
    return [(f"q{n:04}", model, domain, score) for n, score in enumerate(scores)]
