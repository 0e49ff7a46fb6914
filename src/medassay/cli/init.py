"""`medassay init FOLDER`: a starter folder."""

import json
import os
import re
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import typer

from medassay.cli.output import out
from medassay.cli.schema import schema_text
from medassay.core.files import write_whole
from medassay.errors import InputError, UsageError

_FILES = ("plan.toml", "models.json")
_SCHEMAS = ("plan", "models")
_BANK = typer.Option("demo", help="The bank that the plan asks: a folder, or 'demo'.")
_ENDPOINT = typer.Option(
    "", help="A server of the OpenAI protocol to ask, as http://localhost:8000/v1; needs --model."
)
_MODEL = typer.Option("", help="The model's name at --endpoint.")


def command(
    folder: Path = typer.Argument(Path(), help="Where; made if need be."),
    bank: str = _BANK,
    endpoint: str = _ENDPOINT,
    model: str = _MODEL,
) -> None:
    """Write a plan and a models file with example entries for common endpoints."""
    source = files("medassay.cli") / "starter"
    existing = [name for name in _FILES if (folder / name).exists()]
    if existing:
        raise InputError(f"{folder}: {', '.join(existing)} exists; nothing was written")
    plan, models = ((source / name).read_text(encoding="utf-8") for name in _FILES)
    plan = plan.replace('["demo"]', f"[{_bank_from(folder, bank)}]")
    entry = _entry(endpoint, model, ids=set(re.findall(r'"id": "([^"]+)"', models)))
    if entry:
        named = json.dumps([entry["id"], "baseline-random"], ensure_ascii=False)
        plan = re.sub(r"^models = \[.*?\]", lambda _: f"models = {named}", plan, flags=re.M)
        line = f'"models": [\n  {json.dumps(entry, ensure_ascii=False)},'
        models = models.replace('"models": [', line, 1)
    (folder / "schemas").mkdir(parents=True, exist_ok=True)
    for name in _SCHEMAS:  # which both files name, so that editors complete
        write_whole(folder / "schemas" / f"{name}.schema.json", schema_text(name).encode())
    # The plan last: where a full disk takes no more, the same command writes all anew.
    write_whole(folder / "models.json", models.encode())
    try:
        write_whole(folder / "plan.toml", plan.encode())
    except OSError:
        (folder / "models.json").unlink()
        raise
    out.tell(
        {"path": str(folder), "files": list(_FILES)},
        f"{folder}: wrote {' and '.join(_FILES)}",
        f"next: medassay run {folder / 'plan.toml'} --plan"
        if entry
        else 'Set "enabled": true for the models you have, then:'
        f" medassay run {folder / 'plan.toml'} --plan",
    )


def _bank_from(folder: Path, bank: str) -> str:
    """Return how a plan in a folder names a bank."""
    if bank != "demo" and not (Path(bank) / "bank.toml").is_file():
        raise InputError(
            f"--bank: no bank.toml in '{bank}'; `medassay bank import csv TABLE --name {bank}`"
            " makes one of a table"
        )
    place = bank if bank == "demo" else os.path.relpath(bank, folder)
    return json.dumps(Path(place).as_posix(), ensure_ascii=False)


def _entry(endpoint: str, model: str, *, ids: set[str]) -> dict[str, Any]:
    """Return the entry of a model at an endpoint, {} without one; its id is none of `ids`."""
    from medassay.core.address import is_own
    from medassay.core.records.model import holds_secret

    if bool(endpoint) != bool(model):
        raise UsageError("--endpoint and --model go together: where, and which model there")
    if not endpoint:
        return {}
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(
            f"--endpoint: '{endpoint}'; expected an address as http://localhost:8000/v1"
        )
    if holds_secret(endpoint):
        raise UsageError(
            "--endpoint: holds a name, a password or a key; keys stay in the environment"
            ' ("api_key_env" in models.json)'
        )
    host = parts.hostname
    is_number = re.fullmatch(r"[0-9.]+|[0-9a-f:]+", host) is not None
    is_here = host == "localhost" or (is_number and is_own(host))
    name = model.rstrip("/").rpartition("/")[2].lower()
    name = re.sub(r"[^a-z0-9.]+", "-", name).strip("-.") or "model"
    return {
        "id": f"{name}-1" if name in ids else name,
        "provider": "openai_compatible",
        "location": "local" if is_here else "external",
        "url": endpoint,
        "model": model,
        "concurrency": 4,
    }
