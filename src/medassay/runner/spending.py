"""What an account (a run, a study, a workshop) may still spend, and where its spending is written
down.
"""

import datetime as dt
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

import msgspec

from medassay.core.amount import NOTHING, Amount
from medassay.core.json import unchecked
from medassay.core.private import make_folder
from medassay.core.records.completion import Usage
from medassay.core.records.model import ModelSpec, Price
from medassay.core.records.plan import BudgetRules
from medassay.errors import InputError
from medassay.model.spec import remembered_price
from medassay.runner.budget import Budget, refuse_unknown_prices
from medassay.storage.object_store import Mirror, fetch_stores, is_address, mirror_of
from medassay.storage.response import ResponseStore
from medassay.storage.spend import (
    BEFORE,
    SETTINGS,
    SPEND,
    Spending,
    SpendJournal,
    bounds_of,
    close_dead,
    currency_of,
    spendings,
    used,
    write_sums,
)

_KEY = re.compile(rb'"([0-9a-f]{64})"')


@contextmanager
def spending(
    workspace: Path,
    account: str,
    specs: Mapping[str, ModelSpec],
    store: ResponseStore,
    budget: BudgetRules = BudgetRules(),
    *,
    fresh: bool = False,
) -> Iterator[Budget]:
    """Yield the budget of an account, which knows what was spent before and writes down what is
    spent now.

    Parameters
    ----------
    fresh : whether what has a stored reply is asked, too

    Raises
    ------
    InputError
        When money is bounded, here or in the workspace's medassay.toml, and an entry has no price
        or another currency than the rest.
    """
    refuse_unknown_prices(budget, [*specs.values()], bounds_of(workspace))
    if (mirror := mirror_of(workspace)) is not None:
        mirror.pull(SPEND)
    begin(workspace, store)
    if mirror is None:  # in an object store they may be at work on another machine
        close_dead(workspace / SPEND, usage_in(store))
    _refuse_several_currencies(workspace, specs, usage_in(store))
    journal = SpendJournal(workspace, account, specs, fresh=fresh)
    try:
        yield Budget(budget, journal, journal.spent(usage_in(store)))
    finally:
        journal.close()
        if mirror is not None:
            mirror.carry_whole(journal.path)


def _refuse_several_currencies(
    workspace: Path, specs: Mapping[str, ModelSpec], usage_of: Callable[[str], Usage | None]
) -> None:
    """Refuse a bound of the workspace that would add what was spent in one currency to what is to
    be spent in another.
    """
    bounds = bounds_of(workspace)
    if not bounds:
        return
    month = f"{dt.datetime.now(dt.UTC):%Y-%m}"
    spent_in = {
        spending_.currency
        for spending_ in spendings(workspace / SPEND, usage_of)
        if spending_.amount.money and (bounds.total is not None or spending_.month == month)
    }
    asked_in = {
        price.currency for spec in specs.values() if (price := spec.known_price) and price.costs
    }
    if asked_in and spent_in - asked_in:
        raise InputError(
            f"{SETTINGS} bounds the money of the workspace, of which some was spent in"
            f" {' and '.join(sorted(spent_in))}, but entries are priced in"
            f" {' and '.join(sorted(asked_in))}; no call was made. Price the entries in that"
            " currency, take the bound out, or use another workspace"
        )


def spent_by(workspace: Path, account: str, store: ResponseStore) -> Amount:
    """Return what an account has spent until now."""
    begin(workspace, store)
    spendings_found = spendings(workspace / SPEND, usage_in(store))
    return sum(
        (spending_.amount for spending_ in spendings_found if spending_.account == account),
        NOTHING,
    )


def spent_in_all(place: str) -> tuple[list[Spending], Path]:
    """Return all that a workspace has spent, and its folder on this machine.

    A workspace in an object store is fetched.

    Raises
    ------
    InputError
        When there is no workspace at the place.
    """
    folder = Path(place)
    if is_address(place):
        mirror = Mirror(place)
        fetch_stores(mirror.folder)
        mirror.pull(SPEND)
        folder = mirror.folder
    if not any((folder / name).is_dir() for name in ("runs", "responses", SPEND)):
        raise InputError(
            f"{place}: no workspace; expected a folder with runs/, responses/ or spend/"
        )
    with ResponseStore(folder / "responses") as store:
        begin(folder, store)
        return spendings(folder / SPEND, usage_in(store)), folder


def usage_in(store: ResponseStore) -> Callable[[str], Usage | None]:
    """Return how to find what a stored reply used, by its key."""

    def usage_of(key: str) -> Usage | None:
        stored = store.get(key)
        return None if stored is None or not stored.tells_usage else stored.usage

    return usage_of


def begin(workspace: Path, store: ResponseStore) -> None:
    """Begin the spend journal of a workspace that has replies and no journal: with the usage of
    what is stored, as an estimate.
    """
    folder = workspace / SPEND
    if folder.is_dir():
        return
    opening = _stored_spending(workspace, store)
    # Under another name until it is whole: a folder that is there says that this was done.
    draft = folder.with_name(f".{SPEND}-{token_hex(6)}.part")
    make_folder(draft)
    if opening:
        write_sums(draft / f"{BEFORE}.jsonl", opening)
    try:
        draft.rename(folder)
    except OSError:  # another process was first
        shutil.rmtree(draft)
        if not folder.is_dir():
            raise


def _stored_spending(workspace: Path, store: ResponseStore) -> list[Spending]:
    """Return what stored replies used, by the first run that names each.

    Prices are those that the runs remember.
    """
    manifests = {
        path.parent: _manifest(path) for path in (workspace / "runs").glob("*/manifest.json")
    }
    runs = sorted(manifests, key=lambda run: str(manifests[run].created_at))
    prices: dict[str, Price] = {}
    for run in runs:
        for entry in manifests[run].entries:
            if (price := remembered_price(entry)) is not None:
                prices[str(entry.get("id"))] = price
    usages = store.usages()
    sums: dict[tuple[str, str, str], Amount] = {}

    def add(account: str, month: str, key: str) -> None:
        model, usage = usages.pop(key)
        place = account, model, month
        sums[place] = sums.get(place, Amount()) + used(prices.get(model), usage)

    for run in runs:
        month = str(manifests[run].created_at)[:7]
        for key in _keys_in(run):
            if key in usages:
                add(run.name, month, key)
    for key in list(usages):
        add(BEFORE, "", key)
    return [
        Spending(
            account=account,
            model=model,
            month=month,
            amount=amount,
            currency=currency_of(prices.get(model)),
            estimated=True,
        )
        for (account, model, month), amount in sorted(sums.items())
    ]


class _PricedManifest(msgspec.Struct, frozen=True):
    """What a manifest says of prices; nothing of it is checked."""

    created_at: Any = ""
    models: Any = None
    judges: Any = None

    @property
    def entries(self) -> list[dict[str, Any]]:
        """Return the entries of models and judges that are objects."""
        models = self.models.values() if isinstance(self.models, dict) else ()
        judges = self.judges if isinstance(self.judges, list) else ()
        return [entry for entry in (*models, *judges) if isinstance(entry, dict)]


def _manifest(path: Path) -> _PricedManifest:
    """Return what a manifest says of prices; nothing of one that cannot be read."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError):
        document = None
    return unchecked(document if isinstance(document, dict) else {}, _PricedManifest)


def _keys_in(run: Path) -> Iterator[str]:
    """Yield what may be keys of replies in a run's records: all SHA-256 that they hold."""
    for path in sorted(run.rglob("*.jsonl")):
        if path.name != "items.jsonl":
            with path.open("rb") as file:
                for line in file:
                    yield from (key.decode() for key in _KEY.findall(line))
