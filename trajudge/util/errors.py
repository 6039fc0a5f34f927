"""Exceptions for user errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


class UserError(Exception):
    """One clear sentence: the problem, its location, the value, and the fix. Commands exit with
    2."""


class MissingExtra(UserError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed: "
            f"install it with  pip install 'trajudge[{extra}]'"
        )

    def __reduce__(self) -> tuple[type[UserError], tuple[str]]:
        """Pickle it as a plain UserError, for worker processes."""
        return UserError, (str(self),)


@contextmanager
def naming(option: str) -> Iterator[None]:
    """Replace ``--data`` in a UserError about data by the given option or argument."""
    try:
        yield
    except UserError as error:
        words = str(error).split(" ")
        raise UserError(" ".join(option if word == "--data" else word for word in words)) from error


class ImageUnreadable(Exception):
    """A screenshot that cannot be used: missing, a git-LFS pointer, truncated, too large.

    It is not a user error but a property of one trajectory: a judge that needs the image gives a
    judgment with status ``skipped`` and this reason.
    """


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``, did you mean 'X'?`` with the closest of ``known``, "" without a close one.

    Case, and the part before the last slash, are ignored.
    """
    by_end = {_end(other): other for other in known}
    close = get_close_matches(_end(name), by_end, n=1, cutoff=0.7)
    return f", did you mean {by_end[close[0]]!r}?" if close else ""


def _end(name: str) -> str:
    return name.rpartition("/")[2].lower()
