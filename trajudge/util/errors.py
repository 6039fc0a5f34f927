"""Exceptions for user errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


class UserError(Exception):
    """One clear sentence: what is wrong, where, the value, and what to do. Commands exit with 2."""


class MissingExtra(UserError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed: "
            f"install it with  pip install 'trajudge[{extra}]'"
        )

    def __reduce__(self) -> tuple[type[UserError], tuple[str]]:
        """As a plain UserError, so that a worker process can hand it to its parent."""
        return UserError, (str(self),)


@contextmanager
def naming(option: str) -> Iterator[None]:
    """Let a UserError about data name the option or argument that it was given by, in place of the
    ``--data`` of most commands."""
    try:
        yield
    except UserError as error:
        words = str(error).split(" ")
        raise UserError(" ".join(option if word == "--data" else word for word in words)) from error


class ImageUnreadable(Exception):
    """A screenshot that cannot be used: missing, a git-LFS pointer, truncated, too large.

    Not a user's mistake but a fact about one trajectory: a judge that needs the image gives
    a judgment with status ``skipped`` and this reason.
    """


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``, did you mean 'X'?`` with the closest of ``known``, "" where none is close.

    Case, and what stands before the last slash, do not count.
    """
    by_end = {_end(other): other for other in known}
    close = get_close_matches(_end(name), by_end, n=1, cutoff=0.7)
    return f", did you mean {by_end[close[0]]!r}?" if close else ""


def _end(name: str) -> str:
    return name.rpartition("/")[2].lower()
