"""What is taken for a style, a script, a picture or a font is what the address's path says."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trajudge.rules.har import STATIC_SUFFIXES, is_static

_PIECES = st.sampled_from(
    [*STATIC_SUFFIXES, "http://", "https:", "//", "/", "a.b", ":80", "[::1]", "?", "#", ";", "%2e",
     " ", "\n", "\t", "é", "／", "@", "q=a.css", "HTTP://A", "\x00"]
)  # fmt: skip


@given(st.lists(_PIECES, max_size=7).map("".join))
@example("http://a.b/x.css?y#z")
@example("http://a.js")
@example("http://a.b/x.css\n")
def test_an_address_is_static_by_its_path(url: str) -> None:
    try:
        said = urlsplit(url).path.endswith(STATIC_SUFFIXES)
    except ValueError:
        said = False
    assert is_static(url) is said


@pytest.mark.parametrize("url", ["http://a.b/x.PNG", "http://a.b/x.png/", "http://a.b/?x=y.png"])
def test_what_only_looks_so_is_not(url: str) -> None:
    assert not is_static(url)
