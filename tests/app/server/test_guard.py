"""What the guard refuses, over real sockets."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from http.client import HTTPConnection
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from tests.app.serving import Answer, Served, served
from trajudge.app import security
from trajudge.app.security import HEADERS, RequestLimit, allowed_hosts, check_server, new_token
from trajudge.app.serving import Room, addresses, bound_sockets
from trajudge.app.settings import ServerConfig
from trajudge.app.web import PageError, form_fields, page
from trajudge.app.workspace import Workspace
from trajudge.util.errors import UserError
from trajudge.util.machine import own_addresses


@pytest.fixture(scope="module")
def site() -> Iterator[Served]:
    with served(Workspace(), [ROOM]) as running:
        yield running


def session(site: Served) -> tuple[str, str]:
    """A session's cookie and the token of its forms."""
    answer = site.ask("/form")
    (token,) = set(re.findall(r'name="csrf" (?:content|value)="(\w+)"', answer.text))
    return answer.headers["set-cookie"].partition(";")[0], token


def change(site: Served, body: str | None = None, **headers: str) -> Answer:
    cookie, token = session(site)
    sent = {
        "Cookie": cookie,
        "Content_Type": FORM,
        "Origin": site.address,
        "Sec_Fetch_Site": "same-origin",
        **headers,
    }
    kept = {name: value for name, value in sent.items() if value}
    body = f"csrf={token}&text=one" if body is None else body
    return site.ask("/change", "POST", body, **kept)


def test_a_form_of_a_page_is_taken(site: Served) -> None:
    assert change(site).text == "changed one"
    assert change(site, Sec_Fetch_Site="").text == "changed one"
    assert change(site, Origin="").text == "changed one"
    assert change(site, Origin="null").text == "changed one"  # as Chromium sends forms
    cookie, token = session(site)
    again = change(site, "text=two", Cookie=cookie, X_CSRF_Token=token)
    assert again.text == "changed two"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Sec_Fetch_Site": "none"}, 403),
        ({"Sec_Fetch_Site": "", "Origin": "http://evil.test"}, 403),
        ({"Sec_Fetch_Site": "", "Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "cross-site", "Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "", "Origin": ""}, 403),
        ({"Origin": "http://evil.test"}, 403),
        ({"Cookie": ""}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "multipart/form-data; boundary=x"}, 415),
        ({"Content_Type": "application/json"}, 403),
    ],
)
def test_a_form_of_another_site_is_refused(
    site: Served, headers: dict[str, str], status: int
) -> None:
    answer = change(site, **headers)
    assert answer.status == status
    assert "changed" not in answer.text
    assert len(answer.text.splitlines()) == 1


def test_a_form_without_its_sessions_token_is_refused(site: Served) -> None:
    assert change(site, "text=one").status == 403
    _, other = session(site)
    assert change(site, f"csrf={other}&text=one").status == 403
    assert change(site, "csrf=%00%ff&text=one").status == 403


def test_a_session_that_was_not_made_here_is_replaced(site: Served) -> None:
    name = session(site)[0].partition("=")[0]
    answer = site.ask("/form", Cookie=f"{name}={'x' * 43}.{'0' * 64}")
    assert answer.headers["set-cookie"].startswith(f"{name}=")
    assert "HttpOnly; SameSite=Strict" in answer.headers["set-cookie"]


@pytest.mark.parametrize(
    "host", ["evil.test", "evil.test:{}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1:{}.evil.test", ""]
)
def test_a_foreign_host_is_refused(site: Served, host: str) -> None:
    answer = site.ask("/form", Host=host.format(site.port))
    assert answer.status == 421
    assert "csrf" not in answer.text


def test_the_names_of_this_machine_are_answered(site: Served) -> None:
    for name in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        assert site.ask("/form", Host=f"{name}:{site.port}").status == 200


def test_two_hosts_are_refused(site: Served) -> None:
    for request in (
        "GET /form HTTP/1.1\r\nHost: 127.0.0.1:{0}\r\nHost: evil.test\r\n\r\n",
        "GET /form HTTP/1.0\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", site.port), timeout=60) as raw:
            raw.sendall(request.format(site.port).encode())
            assert raw.recv(65_536).split(b" ")[1] in (b"400", b"421")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(site: Served, method: str) -> None:
    assert site.ask("/change", method).status == 405


def test_a_large_body_is_refused_whatever_it_says_of_its_length(site: Served) -> None:
    for size, status in ((1_000_000, 403), (1_000_001, 413)):  # 403: no session's token is in it
        assert change(site, "text=" + "x" * (size - 5)).status == status
    cookie, token = session(site)
    head = (
        f"POST /change HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\nOrigin: {site.address}\r\n"
        f"Cookie: {cookie}\r\nX-CSRF-Token: {token}\r\nContent-Type: {FORM}\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", site.port), timeout=60) as raw:
        raw.sendall(head.encode())
        for _ in range(11):
            raw.sendall(b"186a0\r\n" + b"x" * 100_000 + b"\r\n")
        assert raw.recv(65_536).startswith(b"HTTP/1.1 413")


def test_a_form_with_too_long_or_too_many_fields_is_refused(site: Served) -> None:
    cookie, token = session(site)
    more = {"Cookie": cookie, "X_CSRF_Token": token}
    assert change(site, "text=" + "x" * 20_000, **more).status == 200
    assert change(site, "text=" + "x" * 20_001, **more).status == 413
    assert change(site, "&".join(f"a{n}=1" for n in range(1_001)), **more).status == 413


def test_every_answer_has_the_headers(site: Served) -> None:
    paths = ("/form", "/absent", "/mistake", "/defect", "/static/app.css", "/static/../pages.py")
    answers = [site.ask(path) for path in (*paths, "/healthz", "/favicon.ico")]
    answers += [site.ask("/form", Host="evil.test"), change(site, "")]
    for answer in answers:
        for name, value in HEADERS.items():
            assert answer.headers[name.lower()] == value, answer
        assert "server" not in answer.headers


def test_an_error_is_one_sentence_and_no_traceback(site: Served) -> None:
    mistake = site.ask("/mistake")
    assert mistake.status == 422
    assert "run: &lt;b&gt;is not there&lt;/b&gt;" in mistake.text
    told = site.ask("/mistake", Accept="application/json")
    assert told.text == '{"error":"run: <b>is not there</b>"}'
    defect = site.ask("/defect")
    assert defect.status == 500
    assert "secret" not in defect.text
    assert "Traceback" not in defect.text


@pytest.mark.parametrize(
    "path",
    [
        "/static/..%2f..%2f__init__.py",
        "/static/%2e%2e/__init__.py",
        "/static//etc/passwd",
        "/static/app.css%00.js",
        "/static/__init__.py",
        "//evil.test/static/app.css",
    ],
)
def test_no_path_leads_out_of_the_static_files(site: Served, path: str) -> None:
    answer = site.ask(path)
    assert answer.status == 404
    assert "trajudge.app" not in answer.text


def test_a_static_file_is_kept_under_the_hash_of_its_content(site: Served) -> None:
    (address,) = re.findall(r'href="(/static/app\.css\?v=\w+)"', site.ask("/form").text)
    assert "immutable" in site.ask(address).headers["cache-control"]
    assert site.ask("/static/app.css?v=0").headers["cache-control"] == "no-cache"


def test_a_script_gone_wrong_is_slowed_down() -> None:
    with served(Workspace(), [ROOM]) as site:
        statuses = {site.ask("/healthz").status for _ in range(1_001)}
    assert statuses == {200, 429}


def test_a_limit_counts_each_sender_from_its_first_request(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(security, "time", SimpleNamespace(monotonic=lambda: now))
    limit = RequestLimit(2, 10)

    def refused(*senders: str) -> list[bool]:
        found = []
        for sender in senders:
            try:
                limit.count(sender)
            except PageError as error:
                assert error.status == 429
                found.append(True)
            else:
                found.append(False)
        return found

    assert refused("a", "a", "a", "b") == [False, False, True, False]
    now = 5.0
    assert not any(refused(*(f"one of many {n}" for n in range(10_000))))  # forgets nobody too soon
    now = 9.99
    assert refused("a", "b", "b") == [True, False, True]
    now = 10.0
    assert refused("a", "a", "a") == [False, False, True]
    limit.forget("a")
    assert refused("a") == [False]


FORM = "application/x-www-form-urlencoded"


async def _form(request: Request) -> Response:
    return page(request, "login.html", problem="")


async def _change(request: Request) -> Response:
    return PlainTextResponse("changed " + (await form_fields(request)).get("text", ""))


async def _mistake(request: Request) -> Response:
    raise UserError("run: <b>is not there</b>")


async def _defect(request: Request) -> Response:
    raise ValueError("the secret of the machine")


ROOM = Room(
    [
        Route("/form", _form),
        Route("/change", _change, methods=["POST"]),
        Route("/mistake", _mistake),
        Route("/defect", _defect),
    ]
)


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


def test_port_80_is_not_written_in_addresses() -> None:
    names = {"127.0.0.1", "localhost", "[::1]"}
    ports = {f"{name}:80" for name in names}
    assert allowed_hosts(ServerConfig(), 80) == names | ports
    assert allowed_hosts(ServerConfig(), 8080) == {f"{name}:8080" for name in names}


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


def test_why_it_cannot_be_listened_on_is_said() -> None:
    (taken,) = bound_sockets("127.0.0.2", 0)
    port = taken.getsockname()[1]
    taken.listen()
    with pytest.raises(UserError, match=r"\(Address already in use\): choose another --port$"):
        bound_sockets("127.0.0.2", port)
    taken.close()
    with pytest.raises(UserError, match=r"\(Cannot assign requested address\): .* --host$"):
        bound_sockets("192.0.2.9", 0)


def test_both_loopback_addresses_are_listened_on() -> None:
    sockets = bound_sockets("127.0.0.1", 0)
    families = [each.family for each in sockets]
    assert families in ([socket.AF_INET], [socket.AF_INET, socket.AF_INET6])
    assert (len(families) == 2) is has_loopback_of_version_6()
    assert len({each.getsockname()[1] for each in sockets}) == 1
    for each in sockets:
        each.close()


def has_loopback_of_version_6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True
