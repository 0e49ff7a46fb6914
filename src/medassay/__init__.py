"""medassay: an assay for medical language models.

    >>> import medassay
    >>> medassay.extract_option("The answer is C.")
    ('C', 'S2')

Names are loaded when they are first used (PEP 562), so that importing the package costs nothing.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from medassay.core.records.plan import Plan
    from medassay.storage.run import Run

_WHERE = {
    "Answer": "core.records.answer",
    "Bank": "core.records.item",
    "Choice": "core.records.target",
    "Completion": "core.records.completion",
    "Criteria": "core.records.target",
    "Criterion": "core.records.target",
    "Diagnoses": "core.records.target",
    "Estimate": "core.records.estimate",
    "Fact": "core.records.target",
    "Facts": "core.records.target",
    "GraderClass": "own_code.signatures",
    "Item": "core.records.item",
    "Leaderboard": "core.records.leaderboard",
    "MedassayError": "errors",
    "ModelSpec": "core.records.model",
    "OwnTask": "core.records.own_code",
    "Pattern": "core.records.target",
    "Plan": "core.records.plan",
    "Range": "core.records.target",
    "ReadFunction": "own_code.signatures",
    "Record": "core.records.target",
    "Reference": "core.records.target",
    "Run": "storage.run",
    "ScoreFunction": "own_code.signatures",
    "bootstrap_mean": "statistic.interval.bootstrap",
    "extract_option": "kinds.choice.option",
    "figure": "kinds.results",
    "import_predictions": "exchange.predictions",
    "leaderboard": "kinds.results",
    "load_bank": "bank.folder",
    "load_models": "model.spec",
    "load_plan": "core.records.plan",
    "open_run": "storage.run",
    "paired_difference": "statistic.test.paired",
    "publish": "publishing.publish",
    "rank": "statistic.ranking.shared",
    "read": "kinds.read",
    "verify": "publishing.verify",
}
__all__ = [
    "Answer",
    "Bank",
    "Choice",
    "Completion",
    "Criteria",
    "Criterion",
    "Diagnoses",
    "Estimate",
    "Fact",
    "Facts",
    "GraderClass",
    "Item",
    "Leaderboard",
    "MedassayError",
    "ModelSpec",
    "OwnTask",
    "Pattern",
    "Plan",
    "Range",
    "ReadFunction",
    "Record",
    "Reference",
    "Run",
    "ScoreFunction",
    "bootstrap_mean",
    "extract_option",
    "figure",
    "import_predictions",
    "leaderboard",
    "load_bank",
    "load_models",
    "load_plan",
    "open_run",
    "paired_difference",
    "publish",
    "rank",
    "read",
    "run",
    "verify",
]


def run(
    plan: "Plan | str | Path",
    *,
    secrets: "dict[str, str] | None" = None,
    workspace: Path | str | None = None,
    engine: str = "local",
    trust_code: bool = False,
) -> "Run":
    """Ask all models of a plan and return the sealed run; see `medassay.pipeline.run`.

    A model that must be asked otherwise than the plan says is told of by a warning.

    Parameters
    ----------
    plan : a `Plan`, or the path of its TOML file
    secrets : keys by the names that models.json gives them; None reads the environment once
    workspace : folder for runs/, responses/ and banks.lock, or an address as s3://bucket/work
        (extra `objects`); default: the plan's folder
    engine : "local", or "ray" for several processes or machines (extra `ray`)
    trust_code : whether code of your own that the plan names may be executed
    """
    import os
    import warnings

    from medassay import pipeline

    def tell(line: str) -> None:
        warnings.warn(line, stacklevel=4)

    environment = dict(os.environ) if secrets is None else secrets
    return pipeline.run(
        plan,
        secrets=environment,
        workspace=workspace,
        engine=engine,
        trust_code=trust_code,
        tell=tell,
    )


# Folders with a face of their own, as `medassay.synthesis.paths`: loaded when they are named.
_FOLDERS = ("context", "synthesis")


def __getattr__(name: str) -> Any:
    if name in _FOLDERS:
        return import_module(f"{__name__}.{name}")
    if name == "__version__":
        from importlib.metadata import version

        return version("medassay")
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return __all__
