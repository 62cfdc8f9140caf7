"""Errors a caller can act on.

    PPSynError                   catch this for all of them
    ├── ConfigError              a setting that cannot be honoured
    ├── SchemaError              a schema that contradicts itself or lacks a column
    ├── SourceError              a private table that cannot be read
    ├── DomainRefusedError       a value outside the domain of a column that refuses such values
    ├── ModelTooLargeError       no model fits under the size cap
    ├── BudgetExceededError      a spend that the budget does not cover
    ├── AccountError             a damaged account, or a release that does not fit it
    │   ├── CapExceededError     a release that would pass the cap of its account
    │   ├── PolicyError          what the policy of an account does not allow
    │   └── SignatureError       a signature that is wrong, or of a key that is not trusted
    ├── StoreError               a store that cannot be used
    │   └── MissingError         an object that is not there
    ├── AuditError               a release that fails its audit
    ├── RunError                 a run that cannot go on
    │   ├── ResumeRefusedError   a run that would not be the same run any more
    │   └── RunTakenError        another process goes on with the run
    ├── MissingExtraError        a part of ppsyn whose packages are not installed
    ├── ClusterError             Dask workers that are missing or died
    └── InvariantError           a defect of ppsyn

A message names public facts only: the field, the attribute, the rule and what to
do. It never carries a value of the private table, nor how many rows are at fault.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from types import TracebackType
from typing import Generic, TypeVar

from typing_extensions import override

_Caught = TypeVar("_Caught", bound=BaseException)


def translated(
    caught: type[_Caught] | tuple[type[_Caught], ...],
    *,
    to: Callable[[str], BaseException],
    message: str | Callable[[_Caught], str],
) -> AbstractContextManager[None]:
    """Raise an error of ours in place of one from a library, and leave nothing of the first behind.

    `raise ... from None` hides the first error from tracebacks but keeps it in `__context__`, and so does any `raise`
    inside an `except` block or a context manager. The text of a parser, a driver or a file system may quote a private
    value, and whoever logs or pickles the new error would carry it out. Here `__cause__` and `__context__` are None.

    Privacy:
        Claim C11. The message is all that is left: put in it what is public.

    Args:
        caught: What to catch.
        to: What to raise, made from the message.
        message: The text, or how to make it from what was caught.
    """
    return _Translation(caught, to, message)


class _Translation(AbstractContextManager[None], Generic[_Caught]):
    def __init__(
        self,
        caught: type[_Caught] | tuple[type[_Caught], ...],
        to: Callable[[str], BaseException],
        message: str | Callable[[_Caught], str],
    ) -> None:
        self._caught, self._to, self._message = caught, to, message

    @override
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, self._caught):
            return
        failure = self._to(self._message if isinstance(self._message, str) else self._message(error))
        del error, trace  # a frame of the new traceback would keep them
        try:
            raise failure
        finally:
            failure.__context__ = None  # Python set it just now


class PPSynError(Exception):
    """Base of everything a caller may catch."""


class ConfigError(PPSynError):
    """A setting that cannot be honoured; nothing was spent."""


class SchemaError(PPSynError):
    """A public schema that contradicts itself, or a column it does not describe."""


class MissingExtraError(PPSynError, ImportError):
    """A part of ppsyn whose dependencies are not installed.

    Attributes:
        extra: The extra of the package that installs them.
    """

    def __init__(self, extra: str, purpose: str) -> None:
        """Name the extra, and what needs it."""
        self.extra = extra
        super().__init__(f"{purpose} needs the extra {extra!r} of ppsyn. Run: pip install 'ppsyn[{extra}]'")


class DomainRefusedError(PPSynError):
    """A value outside the domain of a column whose policy is to refuse.

    Stopping tells that such a value exists (PRIVACY.md, limit L2).

    Attributes:
        column: The column, a public name.
        rule: What the schema demands of it.
    """

    def __init__(self, column: str, rule: str) -> None:
        """Name the column and the rule, never the value."""
        self.column, self.rule = column, rule
        super().__init__(
            f"Column {column!r} holds a value outside its domain: {rule}. Widen the domain, or set "
            "`outside` to clip, other or null, which never stop a release."
        )


class ModelTooLargeError(PPSynError):
    """The smallest possible model does not fit under the cap; nothing was spent.

    Attributes:
        needed_mb: The size of the smallest model of this domain.
        cap_mb: The configured cap.
        largest: Attributes and how many values they have, those with the most first.
    """

    def __init__(self, needed_mb: float, cap_mb: float, largest: Mapping[str, int]) -> None:
        """Say how large the model would be, how large it may be, and what makes it large."""
        self.needed_mb, self.cap_mb, self.largest = needed_mb, cap_mb, dict(largest)
        listed = ", ".join(f"{name!r} has {size:,}" for name, size in largest.items())
        super().__init__(
            f"The one-way model needs {needed_mb:.4g} MB and max_model_size_mb={cap_mb:g} allows less. Raise it, or "
            f"give columns fewer bins or values in the schema: {listed}."
        )


class BudgetExceededError(PPSynError):
    """A spend that the budget does not cover; it was refused before any draw.

    Attributes:
        requested: What the spend would have cost, as zCDP rho.
        left: What was left.
    """

    def __init__(self, requested: Fraction, left: Fraction) -> None:
        """Say what was requested and what is left."""
        self.requested, self.left = requested, left
        super().__init__(
            f"Expected 0 < rho <= {float(left):.6g} (the remaining privacy budget), got {float(requested):.6g}."
        )


class ClusterError(PPSynError):
    """Dask workers that are not there, or died; nothing was spent that was not already."""


class StoreError(PPSynError):
    """A store that cannot be used, or an object that cannot be read or written."""


class MissingError(StoreError):
    """An object that is not there.

    Attributes:
        url: Its address.
    """

    def __init__(self, url: str) -> None:
        """Name the object."""
        self.url = url
        super().__init__(f"There is no {url}.")


class SourceError(PPSynError):
    """A private table that cannot be read: the fragment and the rule, never a value; nothing was spent."""


class AccountError(PPSynError):
    """An account that contradicts itself or a release that does not fit it; nothing was spent."""


class AuditError(PPSynError):
    """A release that fails its audit; nothing was spent.

    Attributes:
        problems: One sentence for each thing that is wrong.
    """

    def __init__(self, release: str, problems: Sequence[str]) -> None:
        """Say what is wrong with which release."""
        self.problems = tuple(problems)
        listed = "\n".join(problems)
        super().__init__(f"The release in {release} fails its audit; nothing was charged.\n{listed}")


class CapExceededError(AccountError):
    """A release that would pass the cap of its account; nothing was read or spent.

    Attributes:
        requested: What the release would cost, as zCDP rho.
        left: What the account has left.
        cap: What all its releases may spend together.
    """

    def __init__(self, dataset: str, requested: Fraction, left: Fraction, cap: Fraction) -> None:
        """Say the numbers."""
        self.requested, self.left, self.cap = requested, left, cap
        super().__init__(
            f"Privacy budget exceeded for {dataset!r}: requested rho {float(requested):.6g}, remaining "
            f"{float(left):.6g} (cap {float(cap):.6g}). Request less, close releases that will not be resumed (`ppsyn "
            "abandon`), or have the cap raised."
        )


class PolicyError(AccountError):
    """What the policy of an account does not allow; nothing was read or spent.

    Attributes:
        problems: One sentence for each rule that it breaks.
    """

    def __init__(self, dataset: str, problems: Sequence[str]) -> None:
        """Say which rules it breaks."""
        self.problems = tuple(problems)
        super().__init__(f"The policy of {dataset!r} does not allow this. {' '.join(problems)}")


class SignatureError(AccountError):
    """A signature that is wrong, or of a key that is not trusted; nothing was spent."""


class RunError(PPSynError):
    """A run that cannot go on as asked; what it has paid for is kept."""


class ResumeRefusedError(RunError):
    """A run that would not be the same run any more.

    Attributes:
        differences: One sentence for each thing that differs.
    """

    def __init__(self, run: str, differences: Sequence[str]) -> None:
        """Say what differs."""
        self.differences = tuple(differences)
        super().__init__(f"Run {run} cannot be resumed: {' '.join(differences)}")


class RunTakenError(RunError):
    """Another process goes on with the same run."""

    def __init__(self, run: str) -> None:
        """Say which run."""
        super().__init__(f"Another process goes on with run {run}; this one stops. What it has paid for is kept.")


class InvariantError(PPSynError):
    """A defect of ppsyn: please report it."""
