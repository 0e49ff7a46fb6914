"""medassay: an assay for medical language models.

    >>> import medassay
    >>> run = medassay.example_run()
    >>> medassay.verify(run.path).ok
    True

Names are loaded when they are first used (PEP 562), so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for type checkers, editors and the reference; a test compares it with _WHERE
    from medassay.api import compare as compare
    from medassay.api import example_run as example_run
    from medassay.api import export as export
    from medassay.api import judge as judge
    from medassay.api import judge_agreement as judge_agreement
    from medassay.api import load_bank as load_bank
    from medassay.api import preview as preview
    from medassay.api import rescore as rescore
    from medassay.api import run as run
    from medassay.api import show as show
    from medassay.core.records.answer import Answer as Answer
    from medassay.core.records.completion import Completion as Completion
    from medassay.core.records.estimate import Estimate as Estimate
    from medassay.core.records.item import Bank as Bank
    from medassay.core.records.item import Item as Item
    from medassay.core.records.leaderboard import Leaderboard as Leaderboard
    from medassay.core.records.model import ModelSpec as ModelSpec
    from medassay.core.records.own_code import OwnTask as OwnTask
    from medassay.core.records.plan import Plan as Plan
    from medassay.core.records.plan import load_plan as load_plan
    from medassay.core.records.target import Choice as Choice
    from medassay.core.records.target import Criteria as Criteria
    from medassay.core.records.target import Criterion as Criterion
    from medassay.core.records.target import Diagnoses as Diagnoses
    from medassay.core.records.target import Fact as Fact
    from medassay.core.records.target import Facts as Facts
    from medassay.core.records.target import Pattern as Pattern
    from medassay.core.records.target import Range as Range
    from medassay.core.records.target import Record as Record
    from medassay.core.records.target import Reference as Reference
    from medassay.errors import MedassayError as MedassayError
    from medassay.exchange.predictions import import_predictions as import_predictions
    from medassay.kinds.choice.option import extract_option as extract_option
    from medassay.kinds.read import read as read
    from medassay.kinds.results import figure as figure
    from medassay.kinds.results import leaderboard as leaderboard
    from medassay.model.spec import load_models as load_models
    from medassay.publishing.publish import publish as publish
    from medassay.publishing.verify import verify as verify
    from medassay.statistic.interval.bootstrap import bootstrap_mean as bootstrap_mean
    from medassay.statistic.ranking.shared import rank as rank
    from medassay.statistic.test.paired import paired_difference as paired_difference
    from medassay.storage.run import Run as Run
    from medassay.storage.run import open_run as open_run

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
    "Item": "core.records.item",
    "Leaderboard": "core.records.leaderboard",
    "MedassayError": "errors",
    "ModelSpec": "core.records.model",
    "OwnTask": "core.records.own_code",
    "Pattern": "core.records.target",
    "Plan": "core.records.plan",
    "Range": "core.records.target",
    "Record": "core.records.target",
    "Reference": "core.records.target",
    "Run": "storage.run",
    "bootstrap_mean": "statistic.interval.bootstrap",
    "compare": "api",
    "example_run": "api",
    "export": "api",
    "extract_option": "kinds.choice.option",
    "figure": "kinds.results",
    "import_predictions": "exchange.predictions",
    "judge": "api",
    "judge_agreement": "api",
    "leaderboard": "kinds.results",
    "load_bank": "api",
    "load_models": "model.spec",
    "load_plan": "core.records.plan",
    "open_run": "storage.run",
    "paired_difference": "statistic.test.paired",
    "preview": "api",
    "publish": "publishing.publish",
    "rank": "statistic.ranking.shared",
    "read": "kinds.read",
    "rescore": "api",
    "run": "api",
    "show": "api",
    "verify": "publishing.verify",
}
__all__ = list(_WHERE)

# Folders with a face of their own, as `medassay.synthesis.paths`: loaded when they are named.
_FOLDERS = ("context", "own_code", "synthesis")


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
    return [*__all__, "__version__"]
