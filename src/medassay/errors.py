"""Every error that medassay raises on purpose, as one tree.

    MedassayError                  exit code
    ├── UsageError                 2   the command line was wrong
    ├── InputError                 3   a file or a setting is wrong; says what was expected
    ├── StatisticError             3   data from which the number cannot be computed
    │   └── ScaleError             3   a number outside its declared range, or NaN (a ValueError)
    ├── UnavailableError           3   an optional library or a model is missing; says how to get it
    ├── GateError                  1   ran, and a check or gate said no
    ├── ModelError                 5   a provider did not answer
    │   ├── Transient              5   may pass: asked again a bounded number of times
    │   └── Permanent              5   will not pass: never repeated
    │       ├── Moderated          5   the endpoint's moderation refused the request
    │       └── NotAsked           5   no request was sent: a stop, or the model is given up
    ├── ToolError                  5   what a model looked up could not be had
    ├── IncompleteError            4   trials failed or were not reached, or another process works
    │                                  on the same thing; the command resumes
    ├── IntegrityError             6   stored bytes are not what they were
    └── Interrupted              130   stopped by the user; the same command resumes

A poor *answer* is data and never raises; see `core.records.answer.Outcome`.
"""


class MedassayError(Exception):
    """Base of all errors that medassay raises on purpose.

    Its text says what is wrong, where, what was expected and what to do. `exit_code` is what the
    command line returns: 1 a check refused, 2 usage, 3 wrong data or settings, 4 incomplete and
    resumable, 5 a provider did not answer, 6 stored bytes are not what they were, 130 stopped.

    Examples
    --------
    >>> import medassay
    >>> try:
    ...     medassay.open_run("nowhere")
    ... except medassay.MedassayError as error:
    ...     print(error.exit_code, error)
    3 nowhere: not a run; expected a folder with manifest.json (see runs/)
    """

    exit_code = 1


class UsageError(MedassayError):
    """Say that the command line was wrong."""

    exit_code = 2


class InputError(MedassayError):
    """Say what is wrong in a file or a setting, where, and what was expected."""

    exit_code = 3


class StatisticError(MedassayError):
    """Say that no honest number can be computed from these data."""

    exit_code = 3


class ScaleError(StatisticError, ValueError):
    """Say that a number is NaN, infinite or outside its declared range."""


class UnavailableError(MedassayError):
    """Say that an optional library or a model is not here, and how to get it."""

    exit_code = 3


class GateError(MedassayError):
    """Say that a check ran and refused."""

    exit_code = 1


class ModelError(MedassayError):
    """Say that a provider did not answer."""

    exit_code = 5


class Transient(ModelError):
    """Say that the call may succeed later; `retry_after` holds the seconds the server asked for.

    `overload` says that the server is there and has too much to do, `unconnected` that nobody took
    the connection.
    """

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        overload: bool = False,
        unconnected: bool = False,
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.overload = overload
        self.unconnected = unconnected

    @property
    def patient(self) -> bool:
        """Return whether the server itself asks for patience: it is too busy, or still loading."""
        return self.overload or self.retry_after is not None


class Permanent(ModelError):
    """Say that repeating the call is pointless.

    `endpoint_wide` when every other call would fail too.

    `refused` says that the endpoint took no such request, so that nothing was generated for it.
    """

    def __init__(self, message: str, *, endpoint_wide: bool = False, refused: bool = False) -> None:
        super().__init__(message)
        self.endpoint_wide = endpoint_wide
        self.refused = refused


class Moderated(Permanent):
    """Say that the endpoint's moderation refused this request; others may pass."""


class NotAsked(Permanent):
    """Say that a request was never sent, and why; nothing is known of its item."""


class OverBudget(NotAsked):
    """Say that a request was not sent because a budget forbids it, and which."""


class ToolError(MedassayError):
    """Say why a lookup gave nothing.

    `unavailable` when whoever was asked could not be reached or did not serve.
    """

    exit_code = 5

    def __init__(self, message: str, *, unavailable: bool = False) -> None:
        super().__init__(message)
        self.unavailable = unavailable


class IncompleteError(MedassayError):
    """Say that some of the work is not done, or is being done by another process; the same command
    resumes.
    """

    exit_code = 4


class IntegrityError(MedassayError):
    """Say which stored record is not what it was."""

    exit_code = 6


class Interrupted(MedassayError):
    """Say that the user stopped the work, and how to go on."""

    exit_code = 130
