"""Whoever comes from elsewhere signs in with the token that was printed."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from tests.app.server.rooms import FORM, ROOM
from tests.app.serving import Answer, Served, served
from trajudge.app.security import allowed_hosts, check_server, new_token
from trajudge.app.serving import addresses
from trajudge.app.settings import ServerConfig
from trajudge.app.workspace import Workspace
from trajudge.util.errors import UserError
from trajudge.util.machine import own_addresses


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


def test_a_wrong_token_is_limited_for_its_client_alone() -> None:
    token, people = new_token()
    with served(Workspace(), [ROOM], people) as site:
        statuses = [site.ask(f"/form?token={guess}").status for guess in range(11)]
        assert statuses == [403] * 10 + [429]
        assert sign_in(site, token)[0].status == 429
        other = "127.0.0.2"
        host = f"127.0.0.1:{site.port}"
        connection = HTTPConnection("127.0.0.1", site.port, source_address=(other, 0))
        connection.request("GET", f"/form?token={token}", headers={"Host": host})
        assert connection.getresponse().status == 303
        connection.close()


def test_right_tokens_are_not_limited() -> None:
    token, people = new_token()
    with served(Workspace(), [ROOM], people) as site:
        assert {site.ask(f"/form?token={token}").status for _ in range(15)} == {303}


def test_the_printed_address_signs_in_and_loses_its_token() -> None:
    token, people = new_token()
    with served(Workspace(), [ROOM], people) as site:
        answer = site.ask(f"/form?a=1&token={token}&b=%20")
        assert (answer.status, answer.headers["location"]) == (303, "/form?a=1&b=+")
        cookie = answer.headers["set-cookie"].partition(";")[0]
        assert site.ask("/form", Cookie=cookie).status == 200
        assert site.ask(f"//evil.test/?token={token}").headers["location"] == "/evil.test/"
        mailed = site.ask(f"/form?token={token}", Sec_Fetch_Site="cross-site")
        assert mailed.status == 200
        assert 'content="0;url=/form"' in mailed.text
        assert token not in mailed.text
        assert site.ask("/form", Authorization=f"Bearer {token}").status == 200
        assert site.ask("/form", Authorization="Bearer wrong").status == 401


def test_a_cookie_that_came_by_tls_stays_there() -> None:
    token, people = new_token()
    with served(Workspace(), [ROOM], people) as site:
        plain, _ = sign_in(site, token)
        safe, _ = sign_in(site, token, f"https://127.0.0.1:{site.port}")
    assert "Secure" not in plain.headers["set-cookie"]
    assert safe.headers["set-cookie"].endswith("; Secure")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.test"])
def test_others_always_need_a_token(host: str) -> None:
    check_server(ServerConfig(host=host))
    with pytest.raises(UserError, match="leave --no-token out"):
        check_server(ServerConfig(host=host, no_token=True))


def test_this_machine_may_go_without() -> None:
    for host in ("127.0.0.1", "::1", "localhost", "127.1.2.3"):
        check_server(ServerConfig(host=host, no_token=True))


def test_a_proxy_is_answered_under_the_name_that_the_user_gave() -> None:
    hosts = allowed_hosts(ServerConfig(host="0.0.0.0", allow_host=("Judges.test",)), 8000)
    assert {"judges.test", "judges.test:8000"} <= hosts
    assert "evil.test" not in hosts
    assert "localhost" not in hosts


def second_address() -> str:
    """An address of an interface of this machine, as the system's own tool lists them."""
    if shutil.which("ip") is None:
        pytest.skip("no program  ip  lists the addresses of this machine")
    listed = subprocess.run(["ip", "-j", "-4", "address"], capture_output=True, check=True)
    addresses = [
        entry["local"] for link in json.loads(listed.stdout) for entry in link["addr_info"]
    ]
    return next((each for each in addresses if not each.startswith("127.")), "127.0.0.2")


def test_every_address_of_the_machine_is_served_and_no_other_name() -> None:
    token, people = new_token()
    own = second_address()
    with served(Workspace(), [ROOM], people, host="0.0.0.0") as site:
        for at in (own, "127.0.0.2"):
            assert site.ask(f"/form?token={token}", at=at).status == 303
        for name in (socket.gethostname(), "LOCALHOST", own):
            asked = site.ask(f"/form?token={token}", Host=f"{name}:{site.port}")
            assert asked.status == 303, name
        for name in ("evil.test", "192.0.2.77", f"{own}.evil.test", "127.0.0.2"):
            refused = site.ask(f"/form?token={token}", Host=f"{name}:{site.port}")
            assert refused.status == 421
            assert "--allow-host" in refused.text
        assert own in own_addresses(socket.AF_INET) or own == "127.0.0.2"


def test_what_is_printed_can_be_opened() -> None:
    token, people = new_token()
    config = ServerConfig(host="0.0.0.0")
    with served(Workspace(), [ROOM], people, host="0.0.0.0") as site:
        first, *others = addresses(config, site.port, token)
        hosts = [urlsplit(line.split()[0]) for line in (first, *others[1:])]
        assert hosts[0].hostname == "127.0.0.1"
        assert second_address() in {host.hostname for host in hosts} | {"127.0.0.2"}
        for host in hosts:  # names of the local network are not known to every resolver
            asked = site.ask(f"/form?{host.query}", Host=host.netloc)
            assert asked.status == 303, host.netloc


def test_what_is_printed_for_one_address_is_that_address() -> None:
    assert addresses(ServerConfig(), 80, "") == ["http://127.0.0.1:80/   (Ctrl-C ends it)"]
    first, *_ = addresses(ServerConfig(host="192.0.2.9"), 8000, "T")
    assert first == "http://192.0.2.9:8000/?token=T   (Ctrl-C ends it)"
    first, *_ = addresses(ServerConfig(host="::"), 8000, "T")
    assert first == "http://[::1]:8000/?token=T   (Ctrl-C ends it)"
