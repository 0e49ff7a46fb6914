"""Revisions: what says that one and the same method gave two numbers.

Each parser, scorer, grader, sanitizer, reader of replies and statistical rule has a revision, an
integer. It is raised by one when an output of the corpus
`tests/golden/behaviour/<kind>/<name>.jsonl` changes; a test fails where one changes without the
other. A comment, a docstring or a faster way to the same output changes nothing.
"""


def revision_id(name: str, revision: int) -> str:
    """Return the id by which files name a part of the method.

    Examples
    --------
    >>> revision_id("facts", 1)
    'facts/1'
    """
    return f"{name}/{revision}"


def without_hash(part: str) -> str:
    """Return the id of a part.

    What runs name by a hash of its source, `facts@52f53f93c33a`, is revision 1.

    Only for runs of which is known that they were made by the last code with such hashes.

    Examples
    --------
    >>> without_hash("facts@52f53f93c33a"), without_hash("facts/2")
    ('facts/1', 'facts/2')
    """
    name, at, _ = part.partition("@")
    return revision_id(name, 1) if at else part
