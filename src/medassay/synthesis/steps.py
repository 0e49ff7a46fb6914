"""What a maker asks for: jobs, stage by stage.

Each is done once, journalled, and done again only when its inputs changed.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from medassay.core.canonical import sha256_hex
from medassay.core.records.item_object import ItemObject
from medassay.core.records.model import FREE
from medassay.errors import IncompleteError, InputError
from medassay.runner.ask import Asker
from medassay.runner.budget import estimated_cost, estimated_tokens
from medassay.runner.concurrency import map_concurrently
from medassay.runner.progress import ProgressFactory
from medassay.synthesis.author import Author, Holes
from medassay.synthesis.project import Event, Place, Step, Workshop, basis_of

ATTEMPTS = 3  # of what the specification asks for three times at most


class SynthesisStep(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One thing that a model is asked for.

    `read` turns a reply into a record or JSON values, or raises ValueError; `salvage` does so for a
    reply that a person may still accept. `shown` is what a person who would do it in the model's
    stead must see, noted beside the result.
    """

    step: Step
    subject: str
    author: Author
    part: str
    holes: Holes
    read: Callable[[str], Any]
    sources: Sequence[Place] = ()
    pictures: Sequence[Path] = ()
    attempts: int = ATTEMPTS
    salvage: Callable[[str], Any] | None = None
    shown: Any = None

    @cached_property
    def basis(self) -> str:
        """Return the hash of what decides the result: limits of tokens and time, and how many ask
        at once, do not.
        """
        return self._basis(with_limit=False)

    @cached_property
    def former_basis(self) -> str:
        """Return the hash under which workshops before 2026-12 noted the result."""
        return self._basis(with_limit=True)

    def _basis(self, *, with_limit: bool) -> str:
        picture_hashes = [sha256_hex(path.read_bytes()) for path in self.pictures]
        author = self.author.basis(self.part, with_limit=with_limit)
        return basis_of(author, self.holes, picture_hashes, self.subject)

    @property
    def handle(self) -> str:
        """Return how a person names it in a decision."""
        return handle_of((self.step, self.subject))


def handle_of(place: Place) -> str:
    """Return how a person names a step of a subject; items go by their id."""
    step, subject = place
    return subject if step == "item" else f"{step}:{subject}"


T = TypeVar("T")
Stage = tuple[str, Sequence[SynthesisStep]]  # the plural of what is made, and the jobs


class Maker(Protocol):
    """Makes items in stages; the jobs of a stage follow from what the workshop holds by then.

    `ended` are events of its own that end something without a job: what is left out, or waits for a
    person.
    """

    ended: list[Event]

    def stages(self) -> Iterator[Stage]:
        """Yield what is to be asked for, one stage after the other."""

    def records(self) -> Iterator[tuple[ItemObject, Sequence[Place]]]:
        """Yield each item's record with the steps that it was made from, once all stages are
        done.
        """


def register(
    jobs: Iterable[SynthesisStep], by_handle: dict[str, SynthesisStep]
) -> list[SynthesisStep]:
    """Add jobs to `by_handle`, and return them as a list."""
    stage_jobs = [*jobs]
    by_handle |= {job.handle: job for job in stage_jobs}
    return stage_jobs


def event_of(workshop: Workshop, job: SynthesisStep) -> Event | None:
    """Return how a job ended, None where it was not done yet."""
    done = workshop.done(job.step, job.subject, job.basis)
    return done or workshop.done(job.step, job.subject, job.former_basis)


def value_of(workshop: Workshop, job: SynthesisStep | None, kind: type[T]) -> T | None:
    """Return what a job made, or a person put in its place; None where there is nothing."""
    event = None if job is None else event_of(workshop, job)
    if event is None:
        return None
    decided = decision_on(workshop, event)
    if decided is not None and decided.status == "change":
        return decided.result_as(kind)
    usable = event.status == "made" if decided is None else decided.status == "accept"
    return event.result_as(kind) if usable and event.result is not None else None


def decision_on(workshop: Workshop, event: Event) -> Event | None:
    """Return what a person decided about a step, None where nobody did since it was made."""
    latest = workshop.latest("decision", handle_of(event.place))
    # Bound to the line that was read: what is made anew, by another model say, was not decided
    # about.
    return latest if latest is not None and latest.line.basis == event.hash else None


FAILED = "failed"  # stands for all that a model could not make and nobody decided about


def do_jobs(
    what: str,
    jobs: Sequence[SynthesisStep],
    workshop: Workshop,
    asker: Asker,
    watch: ProgressFactory | None,
    again: Collection[str] = (),
) -> dict[str, str]:
    """Do the jobs of a stage that are not done; return those whose asking failed, with the reason.

    Parameters
    ----------
    again : handles of jobs that are done once more, or "failed" for those that ended in the queue;
        what a person decided about stays

    Raises
    ------
    InputError
        When a person decided about one that is named.
    """
    waiting = pending(jobs, workshop) | _chosen(jobs, workshop, again)
    failed: dict[str, str] = {}
    for author in {job.author.spec.id: job.author for job in waiting.values()}.values():
        own_handles = [
            handle for handle, job in waiting.items() if job.author.spec.id == author.spec.id
        ]

        async def do(handle: str) -> None:
            await _do(waiting[handle], workshop)

        failed |= map_concurrently(
            what,
            own_handles,
            do,
            asker=asker,
            spec=author.spec,
            watch=watch,
            close=author.close,
        )
        if asker.tally.over_budget:
            raise IncompleteError(
                f"{asker.tally.over_budget}; what is made is kept, the same command resumes with a"
                " larger one"
            )
    return failed


def _chosen(
    jobs: Sequence[SynthesisStep], workshop: Workshop, again: Collection[str]
) -> dict[str, SynthesisStep]:
    """Return the finished jobs that are done once more, by handle."""
    steps_by_handle: dict[str, SynthesisStep] = {}
    for job in jobs if again else ():
        event = event_of(workshop, job)
        if event is None or (job.handle not in again and FAILED not in again):
            continue
        decided = decision_on(workshop, event)
        if decided is not None and job.handle in again:
            raise InputError(
                f"--again {job.handle}: {decided.line.by.person} decided about it; a"
                " decision stays until its item changes"
            )
        if decided is None and (job.handle in again or event.status == "queued"):
            steps_by_handle[job.handle] = job
    return steps_by_handle


def _is_short(job: SynthesisStep, event: Event) -> bool:
    """Return whether a job ended in the queue under a smaller token limit than the entry has
    now.
    """
    limit = event.line.max_tokens
    return event.status == "queued" and limit is not None and limit < job.author.spec.reply_tokens


def pending(jobs: Sequence[SynthesisStep], workshop: Workshop) -> dict[str, SynthesisStep]:
    """Return the jobs that are not done, by handle.

    With them those that failed under a smaller token limit, undecided.
    """
    steps_by_handle: dict[str, SynthesisStep] = {}
    for job in jobs:
        event = event_of(workshop, job)
        if event is None or (_is_short(job, event) and decision_on(workshop, event) is None):
            steps_by_handle[job.handle] = job
    return steps_by_handle


async def _do(job: SynthesisStep, workshop: Workshop) -> None:
    reply = await job.author.make(
        job.part,
        job.subject,
        job.holes,
        job.read,
        attempts=job.attempts,
        pictures=job.pictures,
        times=workshop.times(job.step, job.subject, job.basis, job.former_basis),
    )
    spec = job.author.spec
    common: dict[str, Any] = {
        "basis": job.basis,
        "by": {"model": spec.id, "family": spec.family},
        "sources": job.sources,
        "calls": reply.calls,
        **({} if job.shown is None else {"given": job.shown}),
    }
    if reply.value is not None:
        workshop.note(job.step, job.subject, "made", result=reply.value, **common)
        return
    note = f"{reply.problem} (asked {len(reply.calls)} times)"
    common["max_tokens"] = spec.reply_tokens
    if job.salvage is not None:
        with suppress(ValueError):
            common["result"] = job.salvage(reply.calls[-1]["reply"])
    workshop.note(job.step, job.subject, "queued", note=note, **common)


class StagePreview(msgspec.Struct, kw_only=True):
    """How often a model is asked in one stage at least and at most, and upper bounds of tokens and
    money: `most_` where every step is asked again as often as it may be.
    """

    stage: str
    model: str
    calls: int = 0
    most_calls: int = 0
    tokens: int = 0
    money: float = 0.0
    most_money: float = 0.0
    currency: str
    price_known: bool

    def add(self, job: SynthesisStep) -> None:
        """Count a step that is not done."""
        spec = job.author.spec
        prompt = job.author.prompt(job.part, job.subject, job.holes, job.pictures)
        read, written = estimated_tokens(prompt), spec.reply_tokens
        self.calls += 1
        self.most_calls += job.attempts
        self.tokens += read + written
        self.money += estimated_cost(spec, read, written)
        # Asked again, a model is shown its reply beside the prompt.
        again = (job.attempts - 1) * estimated_cost(spec, read + written, written)
        self.most_money += estimated_cost(spec, read, written) + again


class SynthesisPreview(msgspec.Struct, frozen=True, kw_only=True):
    """What making items would ask and cost, as far as it can be known: by stage and in all."""

    plan: str
    maker: str
    stages: list[StagePreview]
    calls: int
    most_calls: int
    tokens: int
    money: float
    most_money: float


def stage_previews(stages: Iterator[Stage], workshop: Workshop) -> list[StagePreview]:
    """Return what each model would be asked in each stage."""
    previews: dict[tuple[str, str], StagePreview] = {}
    for what, jobs in stages:
        for job in pending(jobs, workshop).values():
            spec = job.author.spec
            currency = (spec.known_price or FREE).currency
            is_known = spec.known_price is not None
            stage = StagePreview(stage=what, model=spec.id, currency=currency, price_known=is_known)
            previews.setdefault((what, spec.id), stage).add(job)
    return list(previews.values())


def synthesis_preview(plan: str, maker: str, stages: list[StagePreview]) -> SynthesisPreview:
    """Return the stages of a plan with their sums."""
    return SynthesisPreview(
        plan=plan,
        maker=maker,
        stages=stages,
        calls=sum(stage.calls for stage in stages),
        most_calls=sum(stage.most_calls for stage in stages),
        tokens=sum(stage.tokens for stage in stages),
        money=sum(stage.money for stage in stages),
        most_money=sum(stage.most_money for stage in stages),
    )
