"""What the guard refuses, over real sockets."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator

import pytest

from tests.app.server.rooms import FORM, ROOM
from tests.app.serving import Answer, Served, served
from trajudge.app.security import HEADERS
from trajudge.app.workspace import Workspace


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
    assert change(site, "text=" + "x" * 1_000_000).status == 413
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
