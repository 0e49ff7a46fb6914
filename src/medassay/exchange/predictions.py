"""A CSV table of finished predictions → a sealed run, so that intervals, ranks and boards work on
it.
"""

import math
import re
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from itertools import combinations
from pathlib import Path

import msgspec

from medassay.bank.builder import numbered_csv
from medassay.bank.delimited import form_of
from medassay.bank.run_items import RunItems
from medassay.core.records.model import ModelSpec
from medassay.core.records.target import Key
from medassay.errors import InputError
from medassay.exchange.imported import ImportSource, file_digest
from medassay.exchange.logs import run_of
from medassay.exchange.prediction import Prediction, PredictionFile
from medassay.storage.records import read_trials
from medassay.storage.run import Run

REQUIRED = ("item", "model", "domain")
_NUMBER = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,3})?"
_MOST_LABELS = 10  # different keys; of more, each item has a text of its own
KNOWN = (*REQUIRED, "prediction", "key", "score", "setting", "mode", "repeat", "cluster")


def import_predictions(
    table: Path | str,
    columns: Mapping[str, str],
    *,
    runs: Path | str | None = None,
    to: Path | str | None = None,
    models: Mapping[str, ModelSpec] | None = None,
) -> Run:
    r"""Return the sealed run made from a CSV table of predictions.

    Parameters
    ----------
    columns : what a column holds → its name in the table. Needed: item, model, domain, and either
        prediction and key, or score (on [0, 1]; an empty one is null). Also: setting, mode, repeat,
        cluster.
    runs : folder for the new run; `to` names the run's own folder instead
    models : entries that say family, size and licence of models

    Raises
    ------
    InputError
        Naming the file, the row, the column and what was expected; nothing is left half-written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from medassay import import_predictions
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> lines = ["question,system,topic,reply,key"]
    >>> lines += [f"q{n:02},m,renal,{'AB'[n % 3 == 0]},A" for n in range(30)]
    >>> _ = (folder / "table.csv").write_text("\n".join(lines))
    >>> columns = {"item": "question", "model": "system", "domain": "topic"}
    >>> columns |= {"prediction": "reply", "key": "key"}
    >>> run = import_predictions(folder / "table.csv", columns, to=folder / "run")
    >>> print(run.leaderboard)
               1  66.7 [48.8, 80.8] n=30        m · zero_shot
    """
    table = Path(table)
    check_columns(columns)
    source = ImportSource(file=table, digest=file_digest(table), task="closed")
    log = PredictionFile(
        source=source,
        predictions=read_predictions(table, columns),
        scored="score" in columns,
        remembered={"columns": dict(columns)},
        entries=models or {},
    )
    return run_of(
        [log], runs=None if runs is None else Path(runs), to=None if to is None else Path(to)
    )


def unlike_keys_lines(run: Run) -> Iterator[str]:
    """Yield for each model how many of its predictions are none of the keys, where these are a few
    labels: predictions are held against keys as they are, and "B)" is not "B".
    """
    targets = (item.target for item in RunItems(run.path, run.manifest.domains))
    keys = {target.expected for target in targets if isinstance(target, Key)}
    labels = {key.casefold() for key in keys}
    if len(labels) > _MOST_LABELS:
        return
    unlike: dict[str, list[str]] = {}
    answers: Counter[str] = Counter()
    for trial in read_trials(run.path):
        if trial.outcome == "answered":
            answers[trial.model] += 1
            if (value := str(trial.value)).strip().casefold() not in labels:
                unlike.setdefault(trial.model, []).append(value)
    for model, values in sorted(unlike.items()):
        yield (
            f"{model}: {len(values)} of {answers[model]} predictions are none of the keys"
            f" ({', '.join(sorted(keys))}) and count as wrong, the first is {values[0]!r:.40};"
            " write them as the keys, or name the bank, by which replies are read: --bank"
        )


def check_columns(columns: Mapping[str, str], *, on_bank: bool = False) -> None:
    """Refuse columns that are unknown or too few; a bank has domains and keys itself.

    Raises
    ------
    InputError
        Naming the column.
    """
    for name in columns:
        if name not in KNOWN:
            raise InputError(f"--columns: '{name}' is unknown; known are {', '.join(KNOWN)}")
    for name in ("item", "model") if on_bank else REQUIRED:
        if name not in columns:
            example = "" if on_bank else ",domain=task"
            raise InputError(
                f"--columns: '{name}' is missing; e.g. item=id,model=model{example} (a bank has"
                " the domains: --bank)"
            )
    needed = {"prediction"} if on_bank else {"prediction", "key"}
    if "score" not in columns and not needed <= columns.keys():
        raise InputError(
            "--columns: give prediction=…, or score=…"
            if on_bank
            else "--columns: give prediction=… and key=…, or score=… (a bank has the keys: --bank)"
        )
    if {"key", "score"} <= columns.keys():
        raise InputError(
            "--columns: an answer is scored by its key=… or by its score=…; leave one of them out"
        )
    for one, other in combinations(("prediction", "key", "score"), 2):
        if one in columns and columns.get(other) == columns[one]:
            raise InputError(f"--columns: '{columns[one]}' stands for both {one} and {other}")


def read_predictions(table: Path, columns: Mapping[str, str]) -> Generator[Prediction, None, None]:
    """Yield the predictions of a table, row by row; without a column of domains "" is theirs.

    Raises
    ------
    InputError
        Naming the file, the row, the column and what was expected.
    """
    n_rows = 0
    try:
        form = form_of(table)
        for n_rows, (number, cells) in enumerate(numbered_csv(table, form=form), 1):
            if n_rows == 1:
                for name, column in columns.items():
                    if column not in cells:
                        columns_found = ", ".join(cells)
                        raise InputError(
                            f"{table.name}: no column '{column}' (for {name}); found"
                            f" {columns_found}"
                        )
            if not any(cell.strip() for cell in cells.values()):  # Excel leaves some at the end
                continue
            texts = {name: (cells[column] or "").strip() for name, column in columns.items()}
            row = msgspec.convert(texts, _Cells)
            yield _prediction(row, f"{table.name} row {number}", scored="score" in columns)
        if not n_rows:
            raise InputError(f"{table.name}: no rows below the header")
    except OSError as error:
        raise InputError(f"{table}: cannot be read: {error.strerror}") from None


class _Cells(msgspec.Struct):
    """The cells of a row; "" where a cell is empty or there is no such column."""

    model: str
    item: str
    domain: str = ""
    prediction: str = ""
    score: str = ""
    key: str | None = None
    setting: str = ""
    mode: str = ""
    repeat: str = ""
    cluster: str = ""


def _prediction(cells: _Cells, where: str, *, scored: bool) -> Prediction:
    key = None if scored else cells.key
    if key == "":
        raise InputError(f"{where}: 'key' is empty; expected the right answer")
    repeat = cells.repeat or "0"
    if not re.fullmatch("[0-9]{1,9}", repeat):
        raise InputError(f"{where}: 'repeat' is '{repeat}'; expected a whole number from 0")
    return Prediction(
        where=where,
        domain=cells.domain,
        model=cells.model,
        item=cells.item,
        text=cells.prediction,
        score=_score(cells.score, where) if scored else None,
        key=key,
        setting=cells.setting or "zero_shot",
        mode=cells.mode or "solo",
        repeat=int(repeat),
        cluster=cells.cluster or None,
    )


def _score(text: str, where: str) -> float | None:
    if not text:
        return None
    score = float(text) if re.fullmatch(_NUMBER, text) else math.nan
    if not 0 <= score <= 1:
        raise InputError(f"{where}: 'score' is '{text}'; expected a number from 0 to 1, or nothing")
    return score
