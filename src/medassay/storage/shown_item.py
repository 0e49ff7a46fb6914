"""One item of a run with every answer to it, or one trial by its hash."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from medassay.bank.run_items import RunItems
from medassay.core.canonical import sha256_hex
from medassay.core.frame import FrameRow, Tabular, table_html
from medassay.core.json import parse_record
from medassay.core.records.item import Item, banked_letters, shuffle_text
from medassay.core.records.trial import Trial
from medassay.core.wording import visible
from medassay.errors import InputError
from medassay.storage.records import decode_trial, read_stored_trials
from medassay.storage.run import Run, open_run
from medassay.storage.run_records import trial_lines

_SHORTEST_HASH = 8  # digits of a trial's SHA-256 that name it


class ShownTrial(msgspec.Struct, frozen=True, kw_only=True):
    """A trial with its score.

    Attributes
    ----------
    document : the trial as its file has it, with its hash and score
    """

    sha256: str
    trial: Trial
    document: dict[str, Any]

    @property
    def why_none(self) -> str:
        """Return why there is no score, "" where there is one."""
        because = self.document.get("because")
        return f" ({because})" if self.score is None and because else ""

    @property
    def score(self) -> int | float | None:
        """Return the score as the file has it: 1, not 1.0."""
        score: int | float | None = self.document["score"]
        return score

    @property
    def line(self) -> str:
        """Return the trial in one line."""
        trial = self.trial
        name = f"{trial.model} · {trial.setting} · {trial.mode} · repeat {trial.repeat}"
        if trial.tombstone:
            return (
                f"{name}: the reply was deleted ({trial.outcome}, score {self.score});"
                f" its leaf in the Merkle tree is {trial.tombstone[:16]}"
            )
        shuffled = f"; {shuffle_text(trial.order)}" if trial.order else ""
        return (
            f"{name}: {trial.text or ''!r} → {trial.value} ({trial.outcome},"
            f" {trial.reason}{shuffled}), score {self.score}{self.why_none},"
            f" sha256 {self.sha256[:16]}"
        )


@dataclass(frozen=True, kw_only=True)
class ShownItem(Tabular):
    """An item with its trials; `str` gives it as `medassay show` prints it.

    Attributes
    ----------
    other_runs : ids of other finished runs that have the item too
    """

    run: Run
    item: Item
    trials: Sequence[ShownTrial]
    other_runs: Sequence[str] = ()

    @property
    def lines(self) -> list[str]:
        """Return item and trials, a line each."""
        item = self.item
        options = zip(item.letters, item.options, strict=True)
        return [
            f"{item.id} · {item.domain} · target {item.target_text}",
            *filter(None, (item.context, item.question)),
            *(f"  {letter}. {option}" for letter, option in options),
            *(trial.line for trial in self.trials),
        ]

    def __str__(self) -> str:
        return visible("\n".join(self.lines))

    def table_rows(self) -> Iterator[FrameRow]:
        """Yield a row for each trial."""
        for shown in self.trials:
            trial = shown.trial
            yield {
                "model": trial.model,
                "setting": trial.setting,
                "mode": trial.mode,
                "repeat": trial.repeat,
                "text": trial.text,
                "value": trial.value,
                "order": " ".join(banked_letters(trial.order)) if trial.order else None,
                "outcome": trial.outcome,
                "reason": trial.reason,
                "score": shown.score,
                "sha256": shown.sha256,
            }

    def _repr_html_(self) -> str:
        n_of_item = len(self.lines) - len(self.trials)
        text = table_html(["item"], [["\n".join(self.lines[:n_of_item])]])
        return text.replace("<td ", '<td class="item" ') + super()._repr_html_()


def shown_item(run: Run, name: str) -> ShownItem:
    """Return an item of a run with its trials; of a run that is not finished those that are there.

    Parameters
    ----------
    name : id of the item, or at least 8 digits of the SHA-256 of one trial, which is shown alone

    Raises
    ------
    InputError
        When it has no such item or trial.
    """
    trials = _trials(run, name)
    if not trials:
        yet = "" if run.sealed else " by now"
        raise InputError(
            f"run {run.id}: no answer to an item '{name}'{yet}, and no trial whose hash starts so"
        )
    return _shown(run, trials)


def newest_with(name: str, runs: Path) -> ShownItem:
    """Return an item with its trials of the newest finished run in a folder that holds it; see
    `shown_item`.
    """
    folders = [p.parent for p in runs.glob("*/seal.json")]
    if not folders:
        raise InputError(f"{runs}/: no finished run here; name one with --run")
    folders.sort(key=lambda p: (p / "seal.json").stat().st_mtime, reverse=True)
    held = [(run, trials) for run in map(open_run, folders) if (trials := _trials(run, name))]
    if not held:
        raise InputError(
            f"{runs}/: none of the {len(folders)} finished runs here has an item '{name}', or a"
            " trial whose hash starts so"
        )
    return _shown(*held[0], [run.id for run, _ in held[1:]])


def _shown(run: Run, trials: Sequence[ShownTrial], other_runs: Sequence[str] = ()) -> ShownItem:
    first = trials[0].trial
    item = RunItems(run.path, run.manifest.domains).get(first.domain, first.item)
    return ShownItem(run=run, item=item, trials=trials, other_runs=other_runs)


def _trials(run: Run, name: str) -> list[ShownTrial]:
    """Return the trials of an item, or the one whose hash starts so, with their scores."""
    trials = []
    for line, trial, score in _lines(run):
        digest = sha256_hex(line)
        by_hash = len(name) >= _SHORTEST_HASH and digest.startswith(name.lower())
        if trial.item == name or by_hash:
            document = {
                "sha256": digest,
                "trial": parse_record(line, "trials.jsonl"),
                "score": score.get("score"),
                "because": score.get("because", ""),
            }
            trials.append(ShownTrial(sha256=digest, trial=trial, document=document))
    return trials


def _lines(run: Run) -> Iterator[tuple[bytes, Trial, Mapping[str, Any]]]:
    """Yield each trial of a run as it is, or will be, in its file, with the object of its score."""
    if run.sealed:
        for stored in read_stored_trials(run.path):
            line = stored.trial_line.removesuffix(b"\n")
            yield line, stored.trial, stored.score_record
        return
    scores = {score.place: score for score in run.scores()}
    for line in trial_lines(run.path):
        trial = decode_trial(line, "trials", 0)
        score = scores.get(trial.place)
        yield line, trial, {} if score is None else msgspec.to_builtins(score)
