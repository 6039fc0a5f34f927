"""Whoever comes from elsewhere signs in with the token that was printed."""

from __future__ import annotations

import re

import pytest

from tests.app.server.test_guard import FORM, ROOM
from tests.app.serving import Answer, Served, served
from trajudge.app.server.security.access import new_token
from trajudge.app.server.settings import ServerConfig, allowed_hosts, check_server
from trajudge.app.server.workspace import Workspace
from trajudge.trajectories.util.errors import UserError


def sign_in(site: Served, token: str, origin: str = "") -> tuple[Answer, str]:
    """Answer to a token, and the cookie of before."""
    form = site.ask("/login")
    cookie = form.headers["set-cookie"].partition(";")[0]
    (csrf,) = set(re.findall(r'name="csrf" (?:content|value)="(\w+)"', form.text))
    headers = {"Cookie": cookie, "Content_Type": FORM, "Origin": origin or site.address}
    return site.ask("/login", "POST", f"csrf={csrf}&token={token}", **headers), cookie


def test_nothing_is_shown_without_a_token() -> None:
    token, people = new_token()
    with served(Workspace(), [ROOM], people) as site:
        asked = site.ask("/form", Accept="text/html")
        assert (asked.status, asked.headers["location"]) == (303, "/login")
        assert site.ask("/form").status == 401
        assert site.ask("/absent").status == 401
        refused, _ = sign_in(site, "wrong")
        assert refused.status == 403
        taken, before = sign_in(site, token)
        cookie = taken.headers["set-cookie"].partition(";")[0]
        assert taken.status == 303
        assert cookie != before
        assert site.ask("/form", Cookie=before).status == 401
        shown = site.ask("/form", Cookie=cookie)
        assert "Sign out" in shown.text
        (csrf,) = set(re.findall(r'name="csrf" (?:content|value)="(\w+)"', shown.text))
        out = {"Cookie": cookie, "Content_Type": FORM, "Origin": site.address}
        assert site.ask("/logout", "POST", f"csrf={csrf}", **out).status == 303
        assert site.ask("/form", Cookie=cookie).status == 401


def test_guessing_a_token_is_slow() -> None:
    _, people = new_token()
    with served(Workspace(), [ROOM], people) as site:
        statuses = [sign_in(site, str(guess))[0].status for guess in range(11)]
    assert statuses == [403] * 10 + [429]


def test_a_cookie_that_came_by_tls_stays_there() -> None:
    token, people = new_token()
    with served(Workspace(), [ROOM], people) as site:
        plain, _ = sign_in(site, token)
        safe, _ = sign_in(site, token, f"https://127.0.0.1:{site.port}")
    assert "Secure" not in plain.headers["set-cookie"]
    assert safe.headers["set-cookie"].endswith("; Secure")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.test"])
def test_an_open_address_wants_a_word(host: str) -> None:
    with pytest.raises(UserError, match="--auth"):
        check_server(ServerConfig(host=host))
    check_server(ServerConfig(host=host, auth=True))
    check_server(ServerConfig(host=host, i_know_it_is_open=True))


def test_loopback_wants_none() -> None:
    for host in ("127.0.0.1", "::1", "localhost", "127.1.2.3"):
        check_server(ServerConfig(host=host))


def test_a_proxy_is_answered_under_the_name_that_the_user_gave() -> None:
    hosts = allowed_hosts(ServerConfig(host="0.0.0.0", allow_host=("Judges.test",)), 8000)
    assert "judges.test" in hosts
    assert "evil.test" not in hosts
    assert "localhost" not in hosts
