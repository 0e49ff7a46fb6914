"""The parts of the method that made the numbers of a run, each with its revision.

A run names the parts that its task uses. What decides whether two runs are of one methodology, and
whether `verify` can compute a number again, is these revisions, the texts of prompts and the rules
of the plan; not the text of the source code.
"""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from msgspec.structs import replace

from medassay.core.canonical import short_hash
from medassay.core.records.manifest import Manifest
from medassay.core.records.target import Form
from medassay.core.records.task import Task
from medassay.core.records.verdict import Grader
from medassay.core.reply import json_objects, json_value, refusal, thoughts
from medassay.core.revision import revision_id
from medassay.judging import panel, sanitize
from medassay.judging.grader_text import before_revisions
from medassay.kinds import read_answer
from medassay.kinds.catalog import measures_of, parser_of, scorer_of
from medassay.kinds.record import reply as record_reply
from medassay.statistic import draws
from medassay.statistic.agreement import alpha, people, votes
from medassay.statistic.interval import bootstrap, cluster, effective, exact, ratio, wilson
from medassay.statistic.metric import correlation, reliability, spread, weighted
from medassay.statistic.ranking import field, oracle, pool, shared, simultaneous
from medassay.statistic.test import holm, margin, mcnemar, paired

Revisions = Mapping[str, Mapping[str, int]]  # kind of part → name → revision

READERS = {
    "json_reply": json_value.REVISION,
    "objects": json_objects.OBJECTS_REVISION,
    "outcome": read_answer.REVISION,
    "record_reply": record_reply.REVISION,
    "refusal": refusal.REVISION,
    "thoughts": thoughts.THOUGHTS_REVISION,
}
SANITIZERS = {"fence": sanitize.FENCE_REVISION, "mask": sanitize.MASK_REVISION}
# Those on which rankings rest, in every sealed statistics.json.
BOARD_STATISTICS = {
    "bootstrap": bootstrap.REVISION,
    "cluster": cluster.REVISION,
    "draws": draws.REVISION,
    "effective": effective.REVISION,
    "exact": exact.REVISION,
    "holm": holm.REVISION,
    "margin": margin.REVISION,
    "mcnemar": mcnemar.REVISION,
    "oracle": oracle.REVISION,
    "paired": paired.REVISION,
    "pool": pool.REVISION,
    "ranks": field.REVISION,
    "ratio": ratio.REVISION,
    "reliability": reliability.REVISION,
    "shared": shared.REVISION,
    "simultaneous": simultaneous.REVISION,
    "wilson": wilson.REVISION,
}
JUDGED_STATISTICS = {"alpha": alpha.REVISION}
PANEL = {"mean": panel.REVISION}  # of the judges, with their agreement
# Those of studies, reviews and suites, which are computed when somebody asks for them.
STUDY_STATISTICS = {
    "correlation": correlation.REVISION,
    "people": people.REVISION,
    "spread": spread.REVISION,
    "votes": votes.REVISION,
    "weighted": weighted.REVISION,
}
_READING = ("parser", "reader")  # parts that decide how a reply is read
_FIRST = "all at revision 1"


def revisions(
    task: Task, graders: Iterable[Grader] = (), *, forms: Collection[Form] | None = None
) -> dict[str, dict[str, int]]:
    """Return kind → name → revision of the parts that this code uses for a task and its graders.

    Parameters
    ----------
    forms : of the items that are asked: what reads and scores others is left out; None for all that
        the task takes
    """
    if forms is not None:
        task = replace(task, readers={f: task.readers[f] for f in task.readers if f in forms})
    parsers = {name: parser_of(task, form) for form, name in task.parsers.items() if name}
    scorers = {name: scorer_of(task, form) for form, (_, name) in task.readers.items() if name}
    measures = (measure for form in task.readers for measure in measures_of(task, form))
    readers = {"outcome", "refusal", "thoughts"}
    if parsers.keys() & {"record", "record_text"}:
        readers |= {"json_reply", "record_reply"}
    parts = {
        "measure": {measure.name: measure.revision for measure in measures},
        "parser": {name: parser.revision for name, parser in parsers.items()},
        "reader": {name: READERS[name] for name in readers},
        "scorer": {name: scorer.revision for name, scorer in scorers.items()},
        "statistic": dict(BOARD_STATISTICS),
    }
    if grader_revisions := {grader.name: grader.revision for grader in graders}:
        parts["grader"] = grader_revisions
        parts["panel"] = dict(PANEL)
        parts["reader"] |= {name: READERS[name] for name in ("json_reply", "objects")}
        parts["sanitizer"] = dict(SANITIZERS)
        parts["statistic"] |= JUDGED_STATISTICS
    return {kind: dict(sorted(named.items())) for kind, named in sorted(parts.items()) if named}


def revision_ids(parts: Revisions) -> dict[str, list[str]]:
    """Return the parts as a manifest holds them: kind → ids."""
    return {kind: [revision_id(*part) for part in named.items()] for kind, named in parts.items()}


def derived_revisions(parts: Revisions, source: Manifest) -> dict[str, list[str]]:
    """Return the parts of a run that is made from another one, as its manifest holds them.

    Its answers stay as the source's parsers read them, so these keep the revisions that they had.

    Parameters
    ----------
    source : the manifest of the run whose answers are taken over
    """
    named = source.revisions
    if named is None and hashes_read_as_first(source):
        named = {kind: [revision_id(name, 1) for name in parts.get(kind, ())] for kind in _READING}
    kept = {part for kind in _READING for part in (named or {}).get(kind, ())}
    kept_revisions = dict(part.rsplit("/", 1) for part in kept)
    kept_revisions.pop("objects", None)  # reads verdicts, which are read anew
    return revision_ids(
        {
            kind: {
                name: int(kept_revisions.get(name, revision)) if kind in _READING else revision
                for name, revision in revisions_of_kind.items()
            }
            for kind, revisions_of_kind in parts.items()
        }
    )


def applied_anew(parts: Revisions) -> dict[str, list[str]]:
    """Return the ids of the parts by which a run judges or scores stored answers; what reads the
    answers is not among them, since they stay as they were read.
    """
    judges = "grader" in parts  # whose replies are read by readers, too
    kinds = (kind for kind in parts if kind != "parser" and (judges or kind != "reader"))
    return revision_ids({kind: parts[kind] for kind in kinds})


def raised(ids: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return the ids of the parts beyond their first revision, {} where there are none.

    Only these are added to a methodology, so that one whose parts are all at revision 1 has the
    text that it had before there were revisions.

    Parameters
    ----------
    ids : the parts as a manifest holds them
    """
    later = {
        kind: [part_id for part_id in named if not part_id.endswith("/1")]
        for kind, named in ids.items()
    }
    return {kind: named for kind, named in later.items() if named}


def hashes_read_as_first(manifest: Manifest) -> bool:
    """Return whether a run was made by the last code that named parts by hashes of their source:
    all at revision 1.
    """
    last = before_revisions()
    return (manifest.parsers, manifest.scorers) == (last["parsers"], last["scorers"])


def revisions_named(manifest: Manifest) -> str:
    """Return the parts of parsers, readers and scorers that a run names, for comparing runs: "at
    revision 1", or ids.
    """
    if manifest.revisions is None:
        if hashes_read_as_first(manifest):
            return _FIRST
        return f"hashes {short_hash([manifest.parsers, manifest.scorers])}"
    ids = sorted({part_id for named in manifest.revisions.values() for part_id in named})
    return ", ".join(part_id for part_id in ids if not part_id.endswith("/1")) or _FIRST


def other_revisions(
    manifest: Manifest,
    here: Revisions,
    kinds: Iterable[str],
    *,
    of_task: Revisions = MappingProxyType({}),
) -> str | None:
    """Return in which parts of some kinds a run differs from this code, None where in none.

    "parser choice/2, here choice/3"; "other code" where the run names parts by hashes of a source
    that is not known.

    Parameters
    ----------
    here : the parts that this code uses for the items of the run
    of_task : those that it uses for any item that the task takes: earlier runs name these, and what
        their items do not need is no difference
    """
    named = manifest.revisions
    if named is None:
        if hashes_read_as_first(manifest) or set(kinds) <= {"panel", "statistic"}:
            named = {kind: [revision_id(name, 1) for name in here.get(kind, ())] for kind in here}
        else:
            return "other code"
    differences = []
    for kind in kinds:
        made_by = dict(part.rsplit("/", 1) for part in named.get(kind, ()))
        for name in sorted(made_by.keys() | here.get(kind, {}).keys()):
            then, now = made_by.get(name), here.get(kind, {}).get(name)
            if now is None and name in of_task.get(kind, {}):
                continue
            if then is None or now is None or then != str(now):
                was = "none" if then is None else f"{name}/{then}"
                differences.append(
                    f"{kind} {was}, here {'none' if now is None else revision_id(name, now)}"
                )
    return ", ".join(differences) or None
