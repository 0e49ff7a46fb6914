"""Flawed items, found in two stages over real runs.

Stage 1: wrong, in zero-shot quiz, for every large model. Stage 2: wrong also for at least half of
the small ones. An answer that is none counts as wrong; a call that failed is no answer, and says
nothing.

Source: specification of bank synthesis, 10.1, flaw detection.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, TypedDict, TypeVar

import msgspec

from medassay.errors import InputError
from medassay.storage.jsonl import read_jsonl
from medassay.storage.records import read_scored_trials
from medassay.storage.run import Run

SETTING, MODE = "zero_shot", "solo"
_LARGE = 2  # models
K = TypeVar("K", bound=Hashable)
Place = tuple[str, str]  # domain, item


class Flaw(msgspec.Struct, Generic[K], frozen=True, kw_only=True):
    """An item that is hard or flawed: which small models were wrong, of how many that answered."""

    item: K
    wrong_small: tuple[str, ...]
    n_small: int


class FlawSelection(msgspec.Struct, Generic[K], frozen=True, kw_only=True):
    """What two stages leave of some items."""

    items: int
    candidates: tuple[K, ...]
    flaws: tuple[Flaw[K], ...]


def select_flaws(
    large: Mapping[str, Mapping[K, bool]], small: Mapping[str, Mapping[K, bool]]
) -> FlawSelection[K]:
    """Return the items that every large model and at least half of the small ones got wrong.

    Parameters
    ----------
    large, small : model → item → whether its answer was wrong

    Raises
    ------
    InputError
        When there is no large or no small model.

    Examples
    --------
    >>> hard = {"q1": True, "q2": False}
    >>> [one.item for one in select_flaws({"a": hard, "b": hard}, {"c": hard}).flaws]
    ['q1']
    """
    if not large or not small:
        raise InputError(
            "flaws: large and small models are needed; name the large ones with --large"
        )
    items = dict.fromkeys(
        item for outcomes in (*large.values(), *small.values()) for item in outcomes
    )
    candidates = [item for item in items if all(outcomes.get(item) for outcomes in large.values())]
    flaws = []
    for item in candidates:
        models_asked = [model for model, outcomes in small.items() if item in outcomes]
        wrong = tuple(model for model in models_asked if small[model][item])
        if models_asked and 2 * len(wrong) >= len(models_asked):
            flaws.append(Flaw(item=item, wrong_small=wrong, n_small=len(models_asked)))
    return FlawSelection(items=len(items), candidates=tuple(candidates), flaws=tuple(flaws))


class FlawedItem(TypedDict):
    """An item that was selected: who is wrong, and how many small models there are."""

    item: str
    domain: str
    wrong_large: list[str]
    wrong_small: list[str]
    small: int


class FlawsObject(TypedDict, total=False):
    """Items that may be flawed, as `--json` prints them; behind a review what it found, too."""

    setting: str
    rule: str
    large: list[str]
    small: list[str]
    unsized: list[str]
    items: int
    candidates: list[str]
    selected: list[FlawedItem]
    reviewed: dict[str, list[int]]
    queue: dict[str, str]
    calls: int


class Flaws(msgspec.Struct, frozen=True, kw_only=True):
    """The flawed items of some runs, with the models and the content of the banks that they were
    asked of.

    `unsized` are models whose size is not stated, so that they count as small.
    """

    large: tuple[str, ...]
    small: tuple[str, ...]
    unsized: tuple[str, ...]
    contents: frozenset[str]
    selected: FlawSelection[Place]

    def to_dict(self) -> FlawsObject:
        """Return all as plain JSON values."""
        return {
            "setting": SETTING,
            "rule": (
                f"wrong for all {len(self.large)} large models and for at least half of the"
                f" {len(self.small)} small ones"
            ),
            "large": list(self.large),
            "small": list(self.small),
            "unsized": list(self.unsized),
            "items": self.selected.items,
            "candidates": [item for _, item in self.selected.candidates],
            "selected": [
                {
                    "item": flaw.item[1],
                    "domain": flaw.item[0],
                    "wrong_large": list(self.large),
                    "wrong_small": list(flaw.wrong_small),
                    "small": flaw.n_small,
                }
                for flaw in self.selected.flaws
            ],
        }


def flaws_of_runs(runs: Sequence[Run], large: Sequence[str] = ()) -> Flaws:
    """Return the flawed items of some runs of the same banks.

    Parameters
    ----------
    large : the large models; without names the two of the largest stated size

    Raises
    ------
    InputError
        When runs are of different banks, two have one model, or it cannot be told which models are
        large.
    IncompleteError
        When a run is not finished.
    """
    outcomes_by_model: dict[str, dict[Place, bool]] = {}
    sizes: dict[str, float | None] = {}
    contents: set[frozenset[str]] = set()
    for run in runs:
        run.refuse_unfinished()
        contents.add(frozenset(bank.content_sha256 for bank in run.manifest.banks))
        wrong = _wrong(run)
        if twice := sorted(wrong.keys() & outcomes_by_model.keys()):
            raise InputError(
                f"run {run.id}: '{twice[0]}' is in another run, too; expected each model once"
            )
        outcomes_by_model |= wrong
        sizes |= {name: run.manifest.models[name].size for name in wrong}
    if len(contents) > 1:
        raise InputError(
            "the runs are of different banks, or versions of them; expected the same ones"
        )
    if not outcomes_by_model:
        raise InputError(
            f"no quiz was answered in the setting {SETTING}; expected runs of closed items"
        )
    names = _large(sizes, large)
    selected = select_flaws(
        {name: outcomes_by_model[name] for name in names},
        {
            name: outcomes
            for name, outcomes in sorted(outcomes_by_model.items())
            if name not in names
        },
    )
    return Flaws(
        large=tuple(names),
        small=tuple(sorted(outcomes_by_model.keys() - set(names))),
        unsized=tuple(sorted(n for n in outcomes_by_model if not sizes[n] and n not in names)),
        contents=next(iter(contents)),
        selected=selected,
    )


def _large(sizes: Mapping[str, float | None], named: Sequence[str]) -> list[str]:
    if strange := [name for name in named if name not in sizes]:
        raise InputError(
            f"--large: '{strange[0]}' is not among the models: {', '.join(sorted(sizes))}"
        )
    if len(set(named)) != len(named):
        raise InputError(f"--large: {', '.join(named)}: expected different models")
    stated = {name: size for name, size in sizes.items() if size}
    large_models = [*named] or sorted(stated, key=lambda name: (-stated[name], name))[:_LARGE]
    if len(large_models) < _LARGE:
        raise InputError(
            "the sizes of fewer than two models are stated, so that the large ones are not known;"
            " name them with --large A,B"
        )
    return large_models


def _wrong(run: Run) -> dict[str, dict[Place, bool]]:
    """Return model → item → whether more of its zero-shot answers were wrong than right."""
    quiz = {(r["domain"], r["id"]) for r in read_jsonl(run.path / "items.jsonl") if "options" in r}
    scores: dict[str, dict[Place, list[float]]] = {}
    for trial, score in read_scored_trials(run.path):
        place = (trial.domain, trial.item)
        here = trial.setting == SETTING and trial.mode == MODE and place in quiz
        if (
            here
            and trial.outcome != "failed"
            and run.manifest.provider_of(trial.model) != "baseline"
        ):
            of = scores.setdefault(trial.model, {})
            of.setdefault(place, []).append(score.score or 0.0)
    return {
        model: {place: 2 * sum(v) < len(v) for place, v in of.items()}
        for model, of in scores.items()
    }
