"""How the last url is held against the reference: containment, and the pooled query."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import table
from trajudge.rules.webarena.urls import alternatives, post_address, render, unresolved, url_match

SHOP = "http://shop.test"


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        (f"{SHOP}/cart/", f"{SHOP}/cart"),
        (f"{SHOP}/cart", f"{SHOP}/cart?page=2#top"),
        (f"{SHOP}/find?q=tea", f"{SHOP}/find?page=1&q=tea"),
        (f"{SHOP}/product/1", f"{SHOP}/product/12"),  # contained, which is the weakness
        (f"{SHOP}/a |OR| {SHOP}/b", f"{SHOP}/b/c"),
        (f"{SHOP}/a?x=1 |OR| {SHOP}/b?x=2", f"{SHOP}/a?x=2"),  # pooled, which is another
        ("__SHOPPING__/cart", "__SHOPPING__/cart"),
    ],
)
def test_urls_that_match(reference: str, found: str) -> None:
    assert url_match(alternatives(reference), found) == (True, "")


@pytest.mark.parametrize(
    ("reference", "found", "reason"),
    [
        (f"{SHOP}/cart", f"{SHOP}/", "none of the reference addresses"),
        (f"{SHOP}/cart", "about:blank", "none of the reference addresses"),
        (f"{SHOP}/find?q=tea", f"{SHOP}/find?q=coffee", "the query's 'q'"),
        (f"{SHOP}/find?q=tea", f"{SHOP}/find", "the query's 'q'"),
        (f"{SHOP}/a|OR|{SHOP}/b", f"{SHOP}/b", "none of the reference addresses"),
    ],
)
def test_urls_that_do_not_match_and_why(reference: str, found: str, reason: str) -> None:
    matched, why = url_match(alternatives(reference), found)
    assert not matched
    assert reason in why


def test_a_placeholder_needs_an_address() -> None:
    assert render("__SHOPPING__/cart", {"__SHOPPING__": SHOP}) == f"{SHOP}/cart"
    assert render("__SHOPPING__/cart", {}) == "__SHOPPING__/cart"
    assert unresolved("__SHOPPING__/cart", SHOP) == "__SHOPPING__"
    assert unresolved(f"{SHOP}/cart", SHOP) is None


@table(
    "url post",
    """
    http://r.test/f/books/12/a-title?x#y | http://r.test/f/books/12/
    __REDDIT__/f/books/12/a-title        | __REDDIT__/f/books/12/
    http://r.test/f/books                | http://r.test/f/books
    http://r.test/user/x/12              | http://r.test/user/x/12
    """,
)
def test_a_post_is_found_in_the_urls_of_its_comments(url: str, post: str) -> None:
    assert post_address(url) == post


@given(st.text(), st.text())
def test_no_url_raises(reference: str, found: str) -> None:
    url_match(alternatives(reference), found)
    post_address(found)


def test_a_broken_host_is_compared_as_text() -> None:
    assert url_match(["http://[broken"], "http://[broken/x")[0]
    assert post_address("http://[broken") == "http://[broken"


def test_a_slash_before_the_query_counts_as_in_the_harness() -> None:
    issues = "http://lab.test/x/-/issues/?state=opened"
    assert url_match([issues], "http://lab.test/x/-/issues/?state=opened&page=2")[0]
    assert not url_match([issues], "http://lab.test/x/-/issues?state=opened")[0]
    assert not url_match(["http://lab.test//?a=1"], "http://lab.test/?a=1")[0]
    assert url_match(["http://lab.test/x//"], "http://lab.test/x")[0]


@pytest.mark.parametrize(
    ("reference", "found"), [("/x", "//x"), ("/x//y", "/x/y"), ("/a/b", "/a//b")]
)
def test_doubled_slashes_in_a_path_count_as_in_the_harness(reference: str, found: str) -> None:
    assert not url_match([f"http://lab.test{reference}"], f"http://lab.test{found}")[0]
