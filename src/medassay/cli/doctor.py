"""`medassay doctor`: what is installed, which models answer, which keys are missing."""

import os
import platform
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer

from medassay.cli.output import out

if TYPE_CHECKING:
    from medassay.core.records.model import ModelSpec

# Extra → a module that comes with it and with no other.
_EXTRAS = {
    "anthropic": "anthropic",
    "data": "duckdb",
    "figures": "vl_convert",
    "google": "google.genai",
    "local": "gguf",
    "metrics": "ot",
    "mistral": "mistralai",
    "notebook": "ipykernel",
    "objects": "s3fs",
    "pdf": "pypdfium2",
    "postgres": "psycopg",
    "rag": "bm25s",
    "ray": "ray",
    "tools": "trafilatura",
    "vllm": "vllm",
    "web": "fastapi",
}


class _ModelState(msgspec.Struct, frozen=True):
    """Whether a model of the models file can be asked, and why not."""

    model: str
    ok: bool
    state: str


def command(
    models: Path = typer.Option(Path("models.json"), help="The models file."),
    ask: bool = typer.Option(
        True,
        help=(
            "Send short questions to each enabled model: one, and one for each thing its entry"
            " declares."
        ),
    ),
) -> None:
    """Print what is installed, which keys are missing, and which models answer and do what their
    entries declare; exit 1 if one does not.
    """
    from medassay.model.connection import proxies_set
    from medassay.model.embedded import packaged_weights

    installed = {name: _is_there(module) for name, module in _EXTRAS.items()}
    version, python = metadata.version("medassay"), platform.python_version()
    weights, proxies = packaged_weights(), proxies_set()
    rows = _models(models, ask=ask) if models.exists() else []
    out.tell(
        {
            "version": version,
            "python": python,
            "installed": installed,
            "weights": weights,
            "proxies": proxies,
            "models_file": str(models) if models.exists() else None,
            "models": [msgspec.to_builtins(row) for row in rows],
        },
        f"medassay {version}, Python {python}",
        *(
            f"  {name}: {'installed' if present else 'not installed'}"
            for name, present in installed.items()
        ),
        *(f"  {name}: weights with SHA-256 {digest}" for name, digest in weights.items()),
        *(f"  {name} is set; models are asked directly, never through a proxy" for name in proxies),
        *([f"  {models}: not here; `medassay init` writes one"] if not models.exists() else []),
        *(f"  {row.model}: {row.state}" for row in rows),
    )
    if not all(row.ok for row in rows):
        raise typer.Exit(1)


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # what it lies in is not there either
        return False


def _models(path: Path, *, ask: bool) -> list[_ModelState]:
    from medassay.model.spec import load_models

    rows: list[_ModelState] = []
    for spec in load_models(path).values():
        names = [spec.api_key_env, *spec.headers_env.values()]
        missing = [name for name in names if name and not os.environ.get(name)]
        if missing:
            state = f"missing key: {', '.join(missing)} is not set"
            rows.append(_ModelState(spec.id, ok=False, state=state))
        elif ask:
            rows.append(_probe_state(spec))
        else:
            rows.append(_ModelState(spec.id, ok=True, state="not asked"))
    return rows


def _probe_state(spec: "ModelSpec") -> _ModelState:
    from medassay.core.secret import secrets as known_secrets
    from medassay.runner.event_loop import run_async
    from medassay.runner.probing import probe

    finding = run_async(lambda: probe(spec, os.environ))
    notes = [] if finding.text is None else [f"answers {known_secrets.quote(finding.text, 40)!r}"]
    state = "; but it ".join([*notes, *finding.problems])
    return _ModelState(spec.id, ok=not finding.problems, state=state)
