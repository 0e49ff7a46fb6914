"""Contract of the catalogue of kinds: nothing of one kind hides something of another."""

from collections import Counter

import pytest

from medassay.bank.check import ITEM_KEYS
from medassay.core.records.target import TARGETS
from medassay.judging.graders.catalog import GRADERS as SHARED_GRADERS
from medassay.kinds.catalog import KINDS, PARSERS, SCORERS, TASKS
from medassay.summary.tool_use import Lookups

# Keys of statistics.json that belong to every run.
_TAKEN = {
    *("schema_version", "run", "metric", "scale", "rank_rule", "separation", "n_resamples"),
    *("level", "domains", "fields", "by_kind", "tools_minus_solo", Lookups.key),
}


@pytest.mark.parametrize(
    "names",
    [
        [task.name for kind in KINDS.values() for task in kind.tasks],
        [parser.name for kind in KINDS.values() for parser in kind.parsers],
        [scorer.name for kind in KINDS.values() for scorer in kind.scorers],
        [measure.name for kind in KINDS.values() for measure in kind.measures],
        [*SHARED_GRADERS, *(name for kind in KINDS.values() for name in kind.graders)],
        [*_TAKEN, *(kind.key or name for name, kind in KINDS.items())],
        [
            *(target.form for target in TARGETS),
            *(target.form for kind in KINDS.values() for target in kind.targets),
        ],
    ],
    ids=("tasks", "parsers", "scorers", "measures", "graders", "keys", "forms"),
)
def test_no_two_kinds_bring_the_same_name(names):
    assert [name for name, times in Counter(names).items() if times > 1] == []


def test_targets_of_kinds_are_told_by_keys_of_their_own():
    for kind in KINDS.values():
        for target in kind.targets:
            assert next(iter(target.keys)) not in ITEM_KEYS


def test_every_task_reads_and_scores_by_what_some_kind_brings():
    for task in TASKS.values():
        for parser, scorer in task.readers.values():
            assert parser is None or parser in PARSERS, task.name
            assert scorer is None or scorer in SCORERS, task.name
