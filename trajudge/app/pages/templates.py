"""The one environment of templates: everything escaped, nothing undefined."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from trajudge.app.pages.untrusted import unfolding, visible

_ROOM = "trajudge.app"


@cache
def templates() -> Environment:
    """Make the environment; ``visible`` is the filter for text that we did not write, ``unfolding``
    that for such text as has to be read whole."""
    environment = Environment(
        loader=PackageLoader(_ROOM),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"visible": visible, "unfolding": unfolding}
    return environment


def static_text(name: str) -> Markup:
    """Read a style sheet or script of ours, to be put into a page as it is."""
    return Markup(files(_ROOM).joinpath("static", name).read_text(encoding="utf-8"))  # noqa: S704 - our own file
