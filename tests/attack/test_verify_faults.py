"""Whatever is done to a site, a publication or a run, `verify` says so: no false OK, no hang, no
byte read from elsewhere.
"""

import os
import random
import shutil
import signal
import socket

import pytest

import medassay
from medassay.errors import InputError
from medassay.publishing.history import set_status
from medassay.publishing.verify import verify
from medassay.storage.signature import Signer, new_key
from tests import makers

HANG = 30  # seconds; a check takes a tenth of one


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attacked")
    makers.write_bank(folder / "bank", makers.law_items())
    makers.write_models(folder, makers.fake(letters="hash"))
    run = medassay.run(makers.write_plan(folder), secrets={})
    new_key(folder / "key.pem")
    signer = Signer(folder / "key.pem")
    for name in ("one", "two"):
        medassay.publish(run, folder / "site", publication=name, signer=signer)
    set_status(folder / "site", "one", "superseded", reason="newer", following="two", signer=signer)
    return run.path, folder / "site"


@pytest.fixture
def site(original, tmp_path):
    return writable(original[1], tmp_path / "site")


def writable(place, to):
    shutil.copytree(place, to)
    for path in (to, *to.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return to


def first_mismatch(place):
    """Return what `verify` says first is wrong; a check that hangs fails."""

    def late(number, frame):
        raise AssertionError(f"verify hangs at {place}")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(HANG)
    try:
        report = verify(place)
        return None if report.ok else report.first_mismatch
    except InputError as error:  # nothing there that is a site any more
        return str(error)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_untouched_it_agrees(site, original):
    assert first_mismatch(site) is None
    assert first_mismatch(original[0]) is None


def outside(path):
    """Return a new name beside the site or run that a file is of."""
    *_, place = (p for p in path.parents if p.name in ("site", "run"))  # a site holds runs
    return place.parent / f"outside-{len(list(place.parent.iterdir()))}"


def flip(path, chance):
    data = bytearray(path.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def cut(path, chance):
    os.truncate(path, chance.randrange(path.stat().st_size))


def append(path, chance):
    with path.open("ab") as file:
        file.write(chance.choice([b"\n", b" ", b"{}", b"<script>"]))


def reverse(path, chance):
    path.write_bytes(path.read_bytes()[::-1] + b"x")


def remove(path, chance):
    path.unlink()


def rename(path, chance):
    path.rename(path.with_name(f"{path.stem}2{path.suffix}"))


def link(path, chance):
    kept = path.read_bytes()
    path.unlink()
    target = path.parents[0] / ".." / ".." / "elsewhere"
    path.symlink_to(chance.choice(["/etc/hostname", str(target), path.name]))
    assert kept


def link_to_copy(path, chance):
    """Put the right bytes elsewhere, and a link to them in place: what is read is right, what is
    there is not.
    """
    copy = outside(path)
    copy.write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(copy)


def hard_link(path, chance):
    os.link(path, outside(path))


def pipe(path, chance):
    path.unlink()
    os.mkfifo(path)


def folder_in_place(path, chance):
    path.unlink()
    path.mkdir()


def beside(path, chance):
    names = ["x.html", ".hidden", ".x.part", "index.html~", "evil.js", "Index.html"]
    free = [n for n in names if not path.with_name(n).exists()]
    path.with_name(chance.choice(free)).write_text("evil")


def empty_folder(path, chance):
    path.with_name(chance.choice(["empty", ".git", "etc"])).mkdir()


def full_folder(path, chance):
    folder = path.with_name(chance.choice(["more", ".more"]))
    folder.mkdir()
    (folder / "index.html").write_text("evil")


def linked_folder(path, chance):
    path.with_name("etc").symlink_to(chance.choice(["/etc", "/nowhere", "."]))


def pipe_beside(path, chance):
    os.mkfifo(path.with_name("pipe"))


FAULTS = [
    flip,
    cut,
    append,
    reverse,
    remove,
    rename,
    link,
    link_to_copy,
    hard_link,
    pipe,
    folder_in_place,
    beside,
    empty_folder,
    full_folder,
    linked_folder,
    pipe_beside,
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_random_faults_are_found_wherever_they_are(original, tmp_path, fault):
    """22 of each of 16 kinds: 352."""
    chance = random.Random(fault.__name__)
    files = sorted(
        p.relative_to(original[1])
        for p in original[1].rglob("*")
        if p.is_file() and p.name != ".lock"
    )
    place = writable(original[1], tmp_path / "in" / "site")
    for _ in range(22):
        file = chance.choice(files)
        while (place / file).stat().st_size == 0:
            file = chance.choice(files)
        fault(place / file, chance)
        assert first_mismatch(place), (fault.__name__, file)
        mend(place, original[1], file.parent)
    assert first_mismatch(place) is None


def mend(place, whole, folder):
    """Copy one folder of a site anew: what a fault changed, or left beside."""
    shutil.rmtree(place / folder)
    writable(whole / folder, place / folder)


PLANTED = {
    "a page at the root": lambda s: (s / "evil.html").write_text("x"),
    "a folder at the root": lambda s: made(s / "evil" / "index.html"),
    "a table at the root": lambda s: made(s / "data" / "leaderboard.csv"),
    "a trend at the root": lambda s: made(s / "trend" / "index.html"),
    "what was cut off": lambda s: made(s / "p" / ".x.part" / "index.html"),
    "a file among publications": lambda s: (s / "p" / "x.html").write_text("x"),
    "a publication of which the log says nothing": lambda s: shutil.copytree(
        s / "p" / "one", s / "p" / "three"
    ),
    "a file in the log": lambda s: (s / "log" / "x").write_text("x"),
    "a link in the log": lambda s: (s / "log" / "etc").symlink_to("/etc"),
    "an empty folder in the log": lambda s: (s / "log" / "x").mkdir(),
    "a status of none": lambda s: (s / "status" / "three.json").write_text("{}"),
    "a link to a folder in a publication": lambda s: (s / "p" / "one" / "etc").symlink_to("/etc"),
    "a dangling link": lambda s: (s / "p" / "one" / "x").symlink_to("/nowhere"),
    "a link to itself": lambda s: (s / "p" / "one" / "x").symlink_to("x"),
    "an empty folder in a cell": lambda s: (s / "p" / "one" / "cell" / "x").mkdir(),
    "a pipe in place of items": lambda s: piped(s / "p/one/data/run/items.jsonl"),
    "a pipe in place of the log": lambda s: piped(s / "log.jsonl"),
    "a pipe in place of sums": lambda s: piped(s / "p/two/data/MANIFEST.sha256"),
    "a pipe beside": lambda s: os.mkfifo(s / "p" / "pipe"),
    "a socket": lambda s: bound(s / "s"),
    "another case": lambda s: (s / "Index.html").write_text("x"),
    "another case of a folder": lambda s: made(s / "P" / "x"),
    "another form of a letter": lambda s: (made(s / "log" / "é"), made(s / "log" / "e\u0301")),
    "a hard link from outside": lambda s: os.link(s / "index.html", s.parent / "hard"),
    "a publication by a link": lambda s: moved_out(s / "p" / "one"),
    "the log by a link": lambda s: moved_out(s / "log"),
    "a journal in a published run": lambda s: made(s / "p/one/data/run/journal/d-1.jsonl"),
    "a lock in a published run": lambda s: made(s / "p/one/data/run/lock"),
    "leases in a published run": lambda s: (s / "p/one/data/run/leases").mkdir(),
    "a favicon that is a link": lambda s: (s / "favicon.ico").symlink_to("/etc/hostname"),
    "an empty well-known folder": lambda s: (s / ".well-known").mkdir(),
}


def made(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")


def piped(path):
    path.unlink()
    os.mkfifo(path)


def moved_out(path):
    target = outside(path)
    shutil.move(path, target)
    path.symlink_to(target)


def bound(path):
    here = os.getcwd()
    os.chdir(path.parent)  # a socket's name may not be long
    try:
        with socket.socket(socket.AF_UNIX) as made_here:
            made_here.bind(path.name)
    finally:
        os.chdir(here)


@pytest.mark.parametrize("planted", PLANTED)
def test_what_was_planted_by_hand_is_named(site, planted, cli):
    PLANTED[planted](site)
    code, _, errors = cli("verify", site)
    assert code == 6
    assert len(errors.splitlines()) == 1


def test_what_a_host_wants_at_the_root_is_no_fault(site):
    for name in ("robots.txt", "CNAME", "favicon.ico", ".well-known/security.txt"):
        made(site / name)
    (site / ".lock").unlink(missing_ok=True)
    assert first_mismatch(site) is None


def test_a_run_is_held_to_the_same(original, tmp_path):
    for number, fault in enumerate([link_to_copy, pipe, hard_link, empty_folder, beside]):
        run = writable(original[0], tmp_path / str(number) / "in" / "run")
        fault(run / "trials.jsonl", random.Random(1))
        assert first_mismatch(run), fault.__name__
    run = writable(original[0], tmp_path / "run")
    for name in ("journal", "leases"):  # as a kill just behind the seal leaves them
        (run / name).mkdir()
    assert first_mismatch(run) is None


def test_a_site_may_itself_be_reached_by_a_link(site, tmp_path):
    (tmp_path / "link").symlink_to(site)
    assert first_mismatch(tmp_path / "link") is None
