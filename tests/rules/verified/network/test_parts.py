"""Addresses, bodies and paths, one by one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tables import table
from trajudge.rules.har import Body, Pair
from trajudge.rules.limits import BadPattern
from trajudge.rules.values import Mode
from trajudge.rules.verified.network import (
    Binding,
    address,
    bound,
    canonical,
    document,
    find,
    load_hosts,
    parse_host,
    same_base,
    start_of,
)
from trajudge.util.errors import UserError

DATA = {
    "a": [{"n": 1, "b": {"c": "x"}}, {"n": 2, "b": {"c": "y"}}],
    "a-b": {"d": None},
    "lists": [{"k": 1, "rows": [{"n": 1}]}, {"k": 2, "rows": [{"n": 1}, {}]}],
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$.a[0].b.c", ["x"]),
        ("$.a[-1].n", [2]),
        ("$.a[*].n", [1, 2]),
        ("$['a-b'].d", [None]),
        ("$.a-b.d", [None]),
        ("$.a[?(@.n == 2)].b.c", ["y"]),
        ("$.a[?(@.n >= 1)].n", [1, 2]),
        ("$.a[?(@.n > 'x')].n", []),
        ("$.a[?(@.n == 1 && @.n <= 2)].b.c", ["x"]),
        ("$.a[?( @.n >= 1 && @.n != 1 )].b.c", ["y"]),
        ("$.a[?(@.n == 1 && @.m == 'a && b')].n", []),
        ("$.a[?(@.b.c == 'y')].n", [2]),
        ("$.lists[?(@.rows[0].n == 1 && @.k == 2)].k", [2]),
        ("$.lists[?(@.rows[1].n != 0)].k", []),
        ("$.a[7].n", []),
        ("$.nothing", []),
        ("$", [DATA]),
    ],
)
def test_a_path_leads_to_values(path: str, found: list[Any]) -> None:
    assert find(path, DATA) == found


@pytest.mark.parametrize("path", ["a.b", "$..a", "$.a[?(@.n =~ /x/)]", "$.a[0"])
def test_a_path_that_is_not_understood_is_said(path: str) -> None:
    with pytest.raises(BadPattern):
        find(path, DATA)


MULTIPART = (
    '--b\r\nContent-Disposition: form-data; name="title"\r\n\r\nTea\r\n'
    '--b\r\nContent-Disposition: form-data; filename="x"; name="file"\r\n\r\nline\r\n--b--\r\n'
)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (Body("application/x-www-form-urlencoded", "a=1&a=2&b[]=1&b[]=2&c="), "last"),
        (Body("application/json; charset=utf-8", '{"a": 1}'), {"a": 1}),
        (Body("text/plain", '{"a": 1}'), {"a": 1}),
        (Body("application/json", "{"), None),
        (Body("multipart/form-data; boundary=b", MULTIPART), {"title": "Tea", "file": "line"}),
        (Body("application/x-www-form-urlencoded", None, (Pair("a", "1"),)), {"a": "1"}),
        (None, None),
    ],
)
def test_a_body_as_data(body: Body | None, found: Any) -> None:
    expected = {"a": "2", "b[]": ["1", "2"], "c": ""} if found == "last" else found
    assert document(body) == expected
    if found == "last":
        assert document(body, Mode.RELEASE) == {"a": "1", "b[]": "1", "c": ""}


GITLAB = Binding((("http://git.example:8023", "__GITLAB__"),))


@table(
    "specified sent",
    r"""
    __GITLAB__/a/b             | HTTP://Git.Example:8023/a/b/
    __GITLAB__//a              | http://git.example:8023/a
    __GITLAB__/a%2Fb           | http://git.example:8023/a%2fb
    __GITLAB__/A               | http://git.example:8023/a
    ^__GITLAB__/\d+$           | http://git.example:8023/77
    __GITLAB__/f/{{post_id}}/c | http://git.example:8023/f/12/c
    """,
)
def test_an_address_that_a_base_address_names(specified: str, sent: str) -> None:
    assert same_base(specified, address(sent, GITLAB))


@table(
    "specified sent",
    r"""
    __GITLAB__/a               | http://git.example:80230/a
    __GITLAB__/a               | http://evil.example/?http://git.example:8023/a
    ^__GITLAB__/\d+$           | http://git.example:8023/x77
    __GITLAB__/f/{{post_id}}/c | http://git.example:8023/f/1/2/c
    """,
)
def test_an_address_that_it_does_not_name(specified: str, sent: str) -> None:
    assert not same_base(specified, address(sent, GITLAB))


def test_addresses_in_texts_give_way_to_the_placeholder() -> None:
    text = "see [it](http://git.example:8023/x) or http://git.example:80231/y"
    assert GITLAB.bind_text(text) == "see [it](__GITLAB__/x) or http://git.example:80231/y"


def test_sites_are_found_by_configuration_or_by_port() -> None:
    pages = ["https://news.example", "http://box:9999", "http://box:1234"]
    found = bound(["__GITLAB__", "__REDDIT__"], {"__GITLAB__": ("http://g/",)}, pages)
    assert {name: base for base, name in found.bases} == {
        "__GITLAB__": "http://g",
        "__REDDIT__": "http://box:9999",
    }
    assert found.inferred == (("http://box:9999", "__REDDIT__"),)
    assert found.notes == (
        "reddit is taken to be http://box:9999, by its port: --site reddit=URL says it",
    )
    assert bound(["__SHOPPING_ADMIN__"], {}, ["http://a:7780"]).bases == (
        ("http://a:7780/admin", "__SHOPPING_ADMIN__"),
    )


@pytest.mark.parametrize(
    "pages",
    [[], ["https://news.example"], ["http://a:9999", "http://b:9999"], ["http://a:19999"]],
)
def test_a_site_that_nothing_tells_stays_unknown(pages: list[str]) -> None:
    found = bound(["__REDDIT__"], {}, pages)
    assert (found.bases, found.unknown) == ((), ("__REDDIT__",))


def test_a_trace_of_placeholders_needs_no_address() -> None:
    assert start_of("__REDDIT__/f/tea") == "__REDDIT__"
    assert bound(["__REDDIT__"], {}, ["__REDDIT__"]) == Binding(())


def test_an_origin_has_one_form() -> None:
    assert canonical("HTTP://A.example:80/X?y#z") == "http://a.example/X?y#z"
    assert canonical("https://[::1]:8443/x") == "https://[::1]:8443/x"
    assert canonical("about:blank") == "about:blank"
    assert canonical("http://a:99999999/") == "http://a:99999999/"


def test_hosts_are_given_by_file_or_by_option(tmp_path: Any) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"environments": {"__GITLAB__": {"urls": ["http://a", "http://b"]}}}')
    assert load_hosts(path) == {"__GITLAB__": ("http://a", "http://b")}
    assert parse_host("shopping_admin=http://x/admin") == ("__SHOPPING_ADMIN__", "http://x/admin")
    for text in ("gitlab", "gitlab=ftp://x", "a b=http://x"):
        with pytest.raises(UserError):
            parse_host(text)
