"""Exceptions for user errors."""

from __future__ import annotations


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


class ImageUnreadable(Exception):
    """A screenshot that cannot be used: missing, a git-LFS pointer, truncated, too large.

    Not a user's mistake but a fact about one trajectory: a judge that needs the image gives
    a judgment with status ``skipped`` and this reason.
    """
