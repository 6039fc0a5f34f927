"""What stands around a page: its application's title and navigation, the theme, and addresses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import quote, urlencode

from markupsafe import Markup

from trajudge.environments.kit.theme import Theme
from trajudge.environments.model.page import Chart, Form, Link, Overlay

FrameParts = dict[tuple[str, str], tuple[tuple[tuple[Link, ...], tuple[Link, ...]] | None, Markup]]


def address(page: str, args: Mapping[str, str]) -> str:
    """Return the path of a page with its arguments."""
    return _address(page, tuple(args.items()))


@lru_cache(maxsize=4096)
def _address(page: str, args: tuple[tuple[str, str], ...]) -> str:
    query = urlencode(args, errors="replace")
    safe = "" if page.startswith("/") else "/"  # "//name" would be another host
    return f"/{quote(page, safe=safe, errors='replace')}" + (f"?{query}" if query else "")


@dataclass(frozen=True)
class PageLayout:
    """What is around a page. ``nonce`` makes the single-use word of a form that changes the state,
    ``chart`` the address of a picture. ``identity`` is a name in ``identities.toml``, ``name`` and
    ``args`` are those of the page, ``information`` the links that every site has at its foot. With
    ``script`` the widgets do more than their plain forms. A ``folded`` navigation is behind a menu
    button. ``frame`` keeps the parts of the frame by name and section, with the links that they
    were made of: pages that share it have the same theme and words."""

    title: str
    navigation: tuple[Link, ...]
    theme: Theme
    words: Mapping[str, str]
    nonce: Callable[[Form], str]
    chart: Callable[[Chart], str]
    identity: str = "plain"
    name: str = ""
    args: Mapping[str, str] = field(default_factory=dict)
    information: tuple[Link, ...] = ()
    noise: tuple[Overlay, ...] = ()
    script: bool = False
    folded: bool = False
    frame: FrameParts = field(default_factory=dict)
