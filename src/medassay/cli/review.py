"""`medassay review …`: serve the review app, people, studies, what goes in and comes out."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from msgspec.structs import replace

from medassay.cli.options import group, load_bank_argument
from medassay.cli.output import out
from medassay.cli.review_store import DATABASE, WHO, named_study, opened_database
from medassay.cli.review_studies import study
from medassay.cli.review_users import user
from medassay.errors import InputError, IntegrityError, UsageError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from medassay.bank.reviews import ReviewedBank
    from medassay.review.store.schema import Study
    from medassay.review.store.studies import NewEntry
    from medassay.storage.run import Run

app = group("Reviews by people: a server for physicians, and what goes in and comes out.")
app.add_typer(user, name="user")
app.add_typer(study, name="study")


@app.command()
def serve(
    database: str = DATABASE,
    host: str = typer.Option("127.0.0.1", help="The address to listen on."),
    port: int = typer.Option(8765, min=0, max=65535, help="The port; 0 takes a free one."),
    url: str = typer.Option(
        "",
        help="The public address, such as https://review.example.org; needed behind a proxy.",
    ),
    root_path: str = typer.Option(
        "", "--root-path", help="Where a proxy puts the app, such as /review."
    ),
    proxy: list[str] = typer.Option(
        [], help="Address of a proxy whose forwarded headers are believed; nobody else's are."
    ),
    certificate: Path | None = typer.Option(None, help="A TLS certificate (PEM)."),
    key: Path | None = typer.Option(None, help="Its private key (PEM)."),
) -> None:
    """Serve the review app; the first start prints the one-use link of the admin."""
    with opened_database(database, make=True) as opened:
        from medassay.web.serve import ListenAddress, checked_origin, serve_app
        from medassay.web.settings import AppSettings

        settings = AppSettings(origin=checked_origin(url), root_path=root_path.rstrip("/"))
        where = ListenAddress(
            host=host, port=port, proxies=tuple(proxy), certificate=certificate, key=key
        )
        serve_app(
            opened, settings, where, say=out.say, result=lambda link: out.tell({"link": link}, link)
        )


_SOURCE = typer.Argument(
    ..., metavar="BANK|RUN|WORKSHOP", help="A bank, a sealed run, or a workshop."
)
_STUDY_NAME = typer.Option(..., "--study", help="The study; made where there is none.")
_FORM = typer.Option(
    "",
    help=(
        "item, pair, answer, preference or judge; default: item of a bank, answer of a run,"
        " pair of a workshop."
    ),
)
_ORIGINAL = typer.Option("", help="The bank that the items of a bank were made from, for pairs.")
_N = typer.Option(0, min=0, help="A sample of so many, every category among them; 0: all.")
_SEED = typer.Option("0", help="Decides sample, orders and sides.")
_OVERLAP = typer.Option(3, help="Reviewers an entry.")
_ITERATION = typer.Option("", help="Which round of making the items this is.")
_TITLE = typer.Option("", help="The title of a new study.")
_DUE = typer.Option("", help="Until when, such as 2027-01-31.")
_PROTOCOL = typer.Option(None, help="A text for the reviewers of a new study.")
_PUBLICATION = typer.Option(
    None,
    help="Of a run with private items: the folder p/<id> whose commitments must match.",
)
_COORDINATOR = typer.Option(
    "", help="E-mail of the coordinator of a new study, who must have an account."
)
_TRAINING = typer.Option(True, help="Begin with the training items of the form.")


@app.command("import")
def import_(
    source: str = _SOURCE,
    study_name: str = _STUDY_NAME,
    form: str = _FORM,
    original: str = _ORIGINAL,
    n: int = _N,
    seed: str = _SEED,
    overlap: int = _OVERLAP,
    iteration: str = _ITERATION,
    title: str = _TITLE,
    due: str = _DUE,
    protocol: Path | None = _PROTOCOL,
    publication: Path | None = _PUBLICATION,
    coordinator: str = _COORDINATOR,
    training: bool = _TRAINING,
    database: str = DATABASE,
) -> None:
    """Bring items, pairs or answers into a study, or a stratified sample of them."""
    with opened_database(database, make=True) as opened:
        from medassay.exchange.review_entries import sampled
        from medassay.review.store import studies
        from medassay.review.store.schema import Study
        from medassay.review.training import training_entries

        chosen, entries, summary = _entries(source, form, original, publication)
        text = _protocol(protocol)
        picked = [replace(entry, iteration=iteration) for entry in sampled(entries, n, seed)]
        with opened.write() as db:
            there = db.get(Study, study_name)
            if there is None:
                settings = studies.StudySettings(
                    due=studies.checked_day(due), protocol=text, source=summary
                )
                there = studies.create_study(
                    db,
                    study_name,
                    chosen,
                    who=WHO,
                    title=title,
                    seed=seed,
                    overlap=overlap,
                    settings=settings,
                )
                if training:
                    studies.add_entries(db, there, training_entries(chosen), who=WHO)
            else:
                _check_existing(there, chosen, bool(title or due or text or publication))
            counts = studies.add_entries(db, there, picked, who=WHO)
            if coordinator:
                _appoint(db, coordinator, study_name)
        facts = {"study": study_name, "form": chosen, "entries": counts}
        out.tell(
            {**facts, "of": len(entries), "seed": seed},
            f"{study_name}: {counts} of {len(entries)} entries, form {chosen}, seed {seed}",
        )


def _check_existing(study: "Study", form: str, is_described: bool) -> None:
    """Refuse options of a new study, and entries of another form, for a study that is there."""
    if is_described:
        raise UsageError(
            f"study '{study.id}' is there: --title, --due, --protocol and --publication are of a"
            " new one"
        )
    if study.form != form:
        raise InputError(f"study '{study.id}' has the form '{study.form}', not '{form}'")


def _appoint(db: "Session", coordinator: str, study_name: str) -> None:
    """Make the account of an address the coordinator of a study."""
    from medassay.review.store import accounts

    account = accounts.account_of(db, accounts.checked_email(coordinator))
    if account is None:
        raise InputError(
            f"nobody has the address {coordinator}; `medassay review user invite` invites them"
        )
    accounts.grant(db, account, study_name, "coordinator", who=WHO)


def _check_run(run: "Run") -> None:
    """Refuse a run that is not sealed, or not what was sealed: people shall not judge answers that
    nobody gave.
    """
    from medassay.publishing.verify import verify

    if not run.sealed:
        raise InputError(f"{run.path}: is not sealed yet; finish it first")
    report = verify(run.path)
    if not report.ok:
        raise IntegrityError(f"{run.path}: {report.first_mismatch}")


def _protocol(path: Path | None) -> str:
    try:
        return "" if path is None else path.read_text("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path}: is no UTF-8 text") from None


def _of_run(
    folder: Path, form: str, publication: Path | None
) -> tuple[str, "list[NewEntry]", dict[str, str]]:
    """Return form, entries and source of a sealed run."""
    from medassay.exchange.review_entries import private_run, run_entries
    from medassay.storage.run import PUBLISHED_RUN, open_run

    run = open_run(folder)
    _check_run(run)
    summary: dict[str, str] = {"run": run.id}
    if private_run(run):
        summary["private_run"] = str(folder.resolve())
    if publication is not None and not (publication / PUBLISHED_RUN).is_dir():
        raise InputError(f"{publication}: no publication; expected a folder p/<id> of a site")
    if publication is not None:
        summary["publication"] = str(publication.resolve())
    return form, run_entries(run, form), summary


def _entries(
    source: str, form: str, original: str, publication: Path | None
) -> tuple[str, "list[NewEntry]", dict[str, str]]:
    """Return form, entries and what the study notes of their source."""
    from medassay.exchange.review_entries import pair_entries
    from medassay.exchange.review_workshop import bank_entries, workshop_entries
    from medassay.review.form import FORMS
    from medassay.synthesis.project import JOURNAL, read_workshop

    folder = Path(source)
    if form and form not in FORMS:
        raise UsageError(f"form '{form}'; expected {', '.join(sorted(FORMS))}")
    if original and (form not in ("", "pair") or (folder / "manifest.json").is_file()):
        raise UsageError("--original is for pairs of two banks")
    if publication is not None and not (folder / "manifest.json").is_file():
        raise UsageError("--publication is for a run with private items")
    if (folder / "manifest.json").is_file():
        return _of_run(folder, form or "answer", publication)
    if (folder / JOURNAL).is_file():
        if form not in ("", "pair"):
            raise UsageError("a workshop holds pairs; import its bank folder for item review")
        return "pair", workshop_entries(read_workshop(folder)), {"workshop": folder.name}
    bank = load_bank_argument(source)
    summary: dict[str, str] = {
        "bank": bank.name,
        "version": bank.version,
        "content_sha256": bank.content_hash,
    }
    if original or form == "pair":
        if not original:
            raise UsageError("pairs of a bank need --original, the bank that it was made from")
        return "pair", pair_entries(bank, load_bank_argument(original)), summary
    if form not in ("", "item"):
        raise UsageError(f"a bank has no entries for the form '{form}'; import a run")
    return "item", bank_entries(bank, folder if folder.is_dir() else None), summary


@app.command()
def export(
    name: str = typer.Argument(..., metavar="STUDY", help="A closed study."),
    labels: Path | None = typer.Option(
        None, help="Write people's labels for `medassay study judges RUN --people FILE`."
    ),
    answers: Path | None = typer.Option(
        None, help="Write answers with people's scores for `medassay study metrics FILE`."
    ),
    votes: Path | None = typer.Option(None, help="Write votes for `medassay bank votes FILE`."),
    bank: Path | None = typer.Option(
        None,
        help=(
            "Note the aggregates in the folder of the reviewed bank: boards show them on its page."
        ),
    ),
    database: str = DATABASE,
) -> None:
    """Print a closed study with every review (--json), or write what other commands read: labels,
    answers, votes, aggregates.
    """
    with opened_database(database) as opened:
        import msgspec

        from medassay.exchange import review_export as made
        from medassay.review.exported import ExportedStudy
        from medassay.review.store import frozen

        with opened.write() as db:
            document = frozen.export_document(db, named_study(db, name), who=WHO)
            reviewed = None if bank is None else made.bank_reviews(db, named_study(db, name))
            exported = msgspec.convert(document, ExportedStudy)
            tables = [
                (path, rows_of(exported))
                for path, rows_of in (
                    (labels, made.label_rows),
                    (answers, made.answer_rows),
                    (votes, made.vote_rows),
                )
                if path is not None
            ]
            # Everything is there before anything is written, and the trail tells it once it is.
            made.check_rows(tables)
            for path, rows in tables:
                out.say(f"{path}: {made.write_rows(path, rows)} rows")
            if bank is not None and reviewed is not None:
                _note_bank(bank, reviewed)
        reviews = exported.frozen.reviews
        training = {entry.number for entry in exported.frozen.entries if entry.training}
        trained = sum(review_.entry in training for review_ in reviews)
        besides = f" and {trained} of training" if trained else ""
        out.tell(
            {key: value for key, value in document.items() if key != "schema_version"},
            f"{name}: {len(reviews) - trained} reviews{besides}, sha256 {document['sha256']}",
        )


def _note_bank(folder: Path, reviewed_bank: "ReviewedBank") -> None:
    from medassay.bank.card import read_card
    from medassay.bank.reviews import REVIEWS, note_reviews

    name, reviewed = read_card(folder).name, reviewed_bank.version.rpartition("-")[0]
    if name != reviewed:
        raise InputError(f"{folder}: is the bank '{name}'; reviewed was '{reviewed}'")
    note_reviews(folder, reviewed_bank)
    out.say(f"{folder / REVIEWS}: what {reviewed_bank.study} found of {reviewed_bank.items} items")


@app.command()
def apply(
    name: str = typer.Argument(..., metavar="STUDY", help="The study whose decisions count."),
    bank: Path = typer.Option(..., help="The folder of the bank that its items came from."),
    by: str = typer.Option(..., "--by", help="Who releases."),
    reason: str = typer.Option(..., help="Why; it is written into CHANGES.md."),
    lock: Path = typer.Option(Path("banks.lock"), help="Where versions are registered."),
    preview: bool = typer.Option(False, "--plan", help="Say what would change; change nothing."),
    approve_right: bool = typer.Option(
        False,
        "--approve-right",
        help=(
            "Approve, too, what all reviewers of an item found right: no score below 3, no harm, no"
            " flag, no open ticket."
        ),
    ),
    database: str = DATABASE,
) -> None:
    """Bring checked decisions into the bank: approved, corrected, rewritten, removed.

    The result is a new version of the bank with its history.
    """
    import datetime as dt

    with opened_database(database) as opened:
        from medassay.exchange.review_apply import agreed_of, apply_decisions, decisions_of

        with opened.read() as db:
            decisions = decisions_of(db, named_study(db, name))
            decisions += agreed_of(db, named_study(db, name)) if approve_right else []
        if preview:
            rows = [
                {"item": decision.item, "verdict": decision.verdict, "change": decision.change}
                for decision in decisions
            ]
            lines = (f"{d.verdict}  {d.item}  {', '.join(d.change)}" for d in decisions)
            out.tell({"study": name, "decisions": rows}, *lines)
            return
        today = dt.datetime.now(dt.UTC).date()
        with opened.write() as db:
            version, content, counts = apply_decisions(
                db,
                named_study(db, name),
                bank,
                who=by,
                reason=reason,
                lock=lock,
                today=today,
                approve_right=approve_right,
            )
        text = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
        out.tell(
            {"version": version, "content_sha256": content, "decisions": counts},
            f"{version}: {text}; content {content}",
        )
