"""The tables of the review app.

What was submitted is only ever added to: reviews, steps of tickets, the trail.

Times are texts, ISO 8601 in UTC. Whatever people write stands in JSON columns, which take any text
on every database.
"""

from typing import Any, ClassVar

from sqlalchemy import JSON, ForeignKey, Index, Text, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from medassay.core.json import record_as
from medassay.review.stored import HiddenPart, StoredSettings

ROLES = ("reviewer", "adjudicator", "coordinator", "maintainer", "auditor")


class Base(DeclarativeBase):
    """Base of all tables."""

    type_annotation_map: ClassVar = {
        dict[str, Any]: JSON,
        dict[str, str]: JSON,
        str: Text,
    }


class Account(Base):
    """Somebody who can sign in."""

    __tablename__ = "account"
    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(unique=True)
    name: Mapped[str]
    password: Mapped[str]  # as argon2 writes it
    admin: Mapped[bool] = mapped_column(default=False)
    may_create: Mapped[bool] = mapped_column(default=False)  # studies, as their coordinator
    disabled: Mapped[bool] = mapped_column(default=False)
    qualification: Mapped[str] = mapped_column(default="")
    specialty: Mapped[str] = mapped_column(default="")
    years: Mapped[int | None]
    agreement: Mapped[str] = mapped_column(default="")  # version of what was agreed to
    agreed_at: Mapped[str] = mapped_column(default="")
    keys_on: Mapped[bool] = mapped_column(default=True)
    language: Mapped[str] = mapped_column(default="")
    made_at: Mapped[str]


class Invitation(Base):
    """A one-use link: to an account, to a study, or to a new password."""

    __tablename__ = "invitation"
    token: Mapped[str] = mapped_column(primary_key=True)  # SHA-256 of what stands in the link
    email: Mapped[str]
    study: Mapped[str | None] = mapped_column(ForeignKey("study.id"))
    role: Mapped[str] = mapped_column(default="")  # in the study; or "admin", "creator"
    made_at: Mapped[str]
    ends_at: Mapped[str]
    used_at: Mapped[str | None]


class SignIn(Base):
    """A session on the server's side."""

    __tablename__ = "sign_in"
    token: Mapped[str] = mapped_column(primary_key=True)  # SHA-256 of the cookie's value
    account_id: Mapped[int] = mapped_column(ForeignKey("account.id"), index=True)
    made_at: Mapped[str]
    seen_at: Mapped[str]


class Failure(Base):
    """A sign-in that failed, under a hash of the account's or the address's name."""

    __tablename__ = "failure"
    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(index=True)
    at: Mapped[str]


class Study(Base):
    """Entries under one form, and who reviews them."""

    __tablename__ = "study"
    id: Mapped[str] = mapped_column(primary_key=True)  # its name in addresses
    title: Mapped[str]
    form: Mapped[str]
    seed: Mapped[str]  # decides sample, orders, sides and letters
    overlap: Mapped[int]  # reviewers an entry
    settings: Mapped[dict[str, Any]]
    made_at: Mapped[str]
    closed_at: Mapped[str | None]
    frozen_sha256: Mapped[str | None]

    @property
    def chosen(self) -> StoredSettings:
        """Return the settings as a record."""
        return record_as(self.settings, StoredSettings, f"study '{self.id}': settings")


class Right(Base):
    """A role of somebody in a study.

    `alias` numbers the people of a role as they came, `pseudonym` is what exports call them.
    """

    __tablename__ = "right"
    id: Mapped[int] = mapped_column(primary_key=True)
    account_id: Mapped[int] = mapped_column(ForeignKey("account.id"), index=True)
    study_id: Mapped[str] = mapped_column(ForeignKey("study.id"))
    role: Mapped[str]
    alias: Mapped[int]
    pseudonym: Mapped[str]  # drawn, and told nowhere beside the name
    trained_at: Mapped[str | None]  # when the training items were done
    __table_args__ = (
        UniqueConstraint("study_id", "account_id", "role"),
        UniqueConstraint("study_id", "role", "alias"),
        UniqueConstraint("study_id", "pseudonym"),
    )


class Entry(Base):
    """What is reviewed: an item, a pair, an answer, two answers, or a verdict."""

    __tablename__ = "entry"
    id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[str] = mapped_column(ForeignKey("study.id"))
    number: Mapped[int]  # in the study, from 1
    item: Mapped[str]  # id in the bank
    category: Mapped[str] = mapped_column(default="")
    iteration: Mapped[str] = mapped_column(default="")
    training: Mapped[bool] = mapped_column(default=False)
    content: Mapped[dict[str, Any]]  # what reviewers see
    hidden: Mapped[dict[str, Any]]  # what they do not: model, run, verdict until it is its turn
    sha256: Mapped[str]  # of both
    withdrawn: Mapped[str | None]  # why
    __table_args__ = (UniqueConstraint("study_id", "number"),)

    @property
    def hidden_part(self) -> HiddenPart:
        """Return what reviewers do not see as a record."""
        return record_as(self.hidden, HiddenPart, f"study '{self.study_id}', item {self.number}")


class Assignment(Base):
    """An entry that somebody is to review."""

    __tablename__ = "assignment"
    id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[str] = mapped_column(ForeignKey("study.id"))
    entry_id: Mapped[int] = mapped_column(ForeignKey("entry.id"), index=True)
    account_id: Mapped[int] = mapped_column(ForeignKey("account.id"))
    number: Mapped[int]  # in the reviewer's own order, from 1: the address of the page
    turn: Mapped[int]  # when it is due; skipping moves it behind all others
    revision: Mapped[int] = mapped_column(default=0)  # of the last complete review
    __table_args__ = (
        UniqueConstraint("entry_id", "account_id"),
        UniqueConstraint("study_id", "account_id", "number"),
    )


class Draft(Base):
    """What was filled in and not submitted; `version` tells two tabs apart."""

    __tablename__ = "draft"
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignment.id"), primary_key=True)
    fields: Mapped[dict[str, str]]
    version: Mapped[int]
    saved_at: Mapped[str]


class Review(Base):
    """A submitted review; a change of mind is a further revision with its reason."""

    __tablename__ = "review"
    id: Mapped[int] = mapped_column(primary_key=True)
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignment.id"))
    revision: Mapped[int]  # from 1
    complete: Mapped[bool]  # false for the first part of a judge check
    content: Mapped[dict[str, Any]]
    fields: Mapped[dict[str, str]]  # as they were filled in, to show them again
    reason: Mapped[dict[str, str]]  # {"text": why it was revised}
    submitted_at: Mapped[str]
    __table_args__ = (UniqueConstraint("assignment_id", "revision"),)


class Ticket(Base):
    """Feedback on an entry and what becomes of it."""

    __tablename__ = "ticket"
    id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[str] = mapped_column(ForeignKey("study.id"), index=True)
    entry_id: Mapped[int] = mapped_column(ForeignKey("entry.id"), unique=True)
    state: Mapped[str]
    opened_at: Mapped[str]


class TicketStep(Base):
    """One step of a ticket: who did what, and why."""

    __tablename__ = "ticket_step"
    id: Mapped[int] = mapped_column(primary_key=True)
    ticket_id: Mapped[int] = mapped_column(ForeignKey("ticket.id"), index=True)
    account_id: Mapped[int | None] = mapped_column(ForeignKey("account.id"))
    verb: Mapped[str]
    detail: Mapped[dict[str, Any]]
    at: Mapped[str]


class Access(Base):
    """Who opened what, and what was refused."""

    __tablename__ = "access"
    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[str]
    account_id: Mapped[int | None] = mapped_column(ForeignKey("account.id"), index=True)
    study_id: Mapped[str | None]
    method: Mapped[str]
    path: Mapped[str]
    allowed: Mapped[bool]
    __table_args__ = (Index("access_of_study", "study_id", "id"),)


class TrailLine(Base):
    """A line of the audit trail, chained to the one before."""

    __tablename__ = "trail"
    id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[str | None] = mapped_column(index=True)
    record: Mapped[dict[str, Any]]
    prev: Mapped[str] = mapped_column(unique=True)
    hash: Mapped[str]


class Head(Base):
    """The last hash of the trail: the row that whoever adds to it holds."""

    __tablename__ = "head"
    name: Mapped[str] = mapped_column(primary_key=True)
    hash: Mapped[str]
