"""Nothing secret is sent, and nothing changes but through a form that was shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from urllib.parse import urlencode

import pytest

from tests.environments.cases import sound
from trajudge.environments.chromium import open_session
from trajudge.environments.kit.html import NONCE
from trajudge.environments.model.config import Config
from trajudge.environments.recording.recorder import Recorder
from trajudge.environments.serving.run import ServedRun
from trajudge.environments.serving.server import BODY, Server, serve
from trajudge.environments.verify import expected

BROWSER = {
    "Sec-Fetch-Mode": "navigate",
    "Sec-Fetch-Dest": "document",
    "Sec-Fetch-Site": "same-origin",
    "Content-Type": "application/x-www-form-urlencoded",
}
SCRIPT = "<script>document.title='broken into'</script><img src=x onerror=\"document.title='x'\">"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serve(b"secret") as running:
        yield running


@pytest.fixture
def run(server: Server) -> Iterator[ServedRun]:
    opened = server.open(Config(app="shop", scenario="price"))
    yield opened
    server.close(opened)


def ask(
    server: Server,
    run_id: str,
    path: str,
    form: Mapping[str, str] | None = None,
    headers: Mapping[str, str] = BROWSER,
) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    body = None if form is None else urlencode(form)
    host = {"Host": f"{run_id}.localhost"}
    connection.request("GET" if form is None else "POST", path, body, {**headers, **host})
    response = connection.getresponse()
    return response.status, response.read().decode()


def product_page(server: Server, run: ServedRun) -> tuple[str, dict[str, str]]:
    """A product's address and what its first form (into the cart) sends."""
    path = f"/product?id={run.state.value('SELECT id FROM product WHERE stock > 1')}"
    _, page = ask(server, run.id, path)
    form = next(f for f in re.findall(r"<form.*?</form>", page, re.DOTALL) if "add-to-cart" in f)
    hidden = dict(re.findall(r'type="?hidden"? name="?(\w+)"? value="?([^">]*)"?', form))
    return path, {**hidden, "quantity": "1"}


def tampering(run: ServedRun) -> list[str]:
    return [event.detail for event in run.events if event.kind == "tamper"]


def test_a_form_that_was_shown_is_carried_out_once(server: Server, run: ServedRun) -> None:
    _, form = product_page(server, run)
    assert ask(server, run.id, "/do/add-to-cart", form)[0] == 303
    held = run.state.value("SELECT count(*) FROM cart")
    assert not tampering(run)
    assert ask(server, run.id, "/do/add-to-cart", form)[0] == 403
    assert run.state.value("SELECT count(*) FROM cart") == held
    assert len(tampering(run)) == 1


@pytest.mark.parametrize(
    ("change", "headers"),
    [
        ({NONCE: ""}, {}),
        ({NONCE: "0" * 20}, {}),
        ({"product": "another"}, {}),
        ({"price": "1"}, {}),
        ({}, {"Sec-Fetch-Mode": "cors"}),
        ({}, {"Sec-Fetch-Dest": "empty"}),
        ({}, {"Sec-Fetch-Site": "cross-site"}),
    ],
    ids=["no nonce", "made up", "hidden value", "new field", "fetch", "no document", "other site"],
)
def test_anything_else_is_refused_and_noted(
    server: Server, run: ServedRun, change: dict[str, str], headers: dict[str, str]
) -> None:
    _, form = product_page(server, run)
    status, _ = ask(server, run.id, "/do/add-to-cart", {**form, **change}, {**BROWSER, **headers})
    assert status == 403
    assert len(tampering(run)) == 1
    assert run.state.dump() == run.before


def test_a_nonce_is_good_for_its_own_operation(server: Server, run: ServedRun) -> None:
    _, form = product_page(server, run)
    assert ask(server, run.id, "/do/wish", form)[0] == 403


def test_a_nonce_is_good_for_its_own_run(server: Server, run: ServedRun) -> None:
    other = server.open(run.config, "other")
    _, form = product_page(server, other)
    assert ask(server, run.id, "/do/add-to-cart", form)[0] == 403
    server.close(other)
    assert ask(server, other.id, "/home")[0] == 404


def test_a_run_that_is_not_open_is_not_found(server: Server) -> None:
    assert ask(server, "rffffffffffff", "/home")[0] == 404


def test_a_large_body_is_refused(server: Server, run: ServedRun) -> None:
    _, form = product_page(server, run)
    assert ask(server, run.id, "/do/add-to-cart", {**form, "quantity": "1" * BODY})[0] == 413
    assert run.state.dump() == run.before


def test_pages_are_read_only(server: Server, run: ServedRun) -> None:
    for page in run.app.pages:
        assert ask(server, run.id, f"/{page}")[0] in (200, 404)
    assert ask(server, run.id, "/do/add-to-cart")[0] == 303
    assert run.state.dump() == run.before


def test_a_code_is_shown_on_its_row_alone(server: Server, run: ServedRun) -> None:
    orders = [row["id"] for row in run.state.rows("SELECT id FROM purchase")]
    codes = {order: run.code("purchase", order) for order in orders}
    assert len(set(codes.values())) == len(orders)
    pages = [ask(server, run.id, f"/{page}")[1] for page in run.app.pages]
    assert not [code for code in codes.values() for page in pages if code in page]
    _, page = ask(server, run.id, f"/order?id={orders[0]}")
    assert [order for order in orders if codes[order] in page] == orders[:1]


def test_a_code_is_another_in_another_run_and_after_a_change(
    server: Server, run: ServedRun
) -> None:
    other = server.open(run.config, "other")
    key = run.state.value("SELECT id FROM purchase")
    before = run.code("purchase", key)
    assert other.code("purchase", key) != before
    run.state.change("purchase", key, status="lost")
    assert run.code("purchase", key) != before
    server.close(other)


def test_the_answer_of_a_chart_is_in_no_page(server: Server) -> None:
    case = sound("cheapest-month")
    run = server.open(case.config, goal=case.goal)
    key = (
        run.bound["product"]["id"]
        if "product" in run.bound
        else next(iter(run.bound.values()))["id"]
    )
    _, page = ask(server, run.id, f"/product?id={key}")
    month, *_ = expected(run.evidence())
    assert month not in page
    assert "<img" in page
    server.close(run)


@pytest.mark.browser
def test_what_users_wrote_does_not_run(recorder: Recorder) -> None:
    run = recorder.server.open(Config(app="shop", scenario="price"), "xss")
    key = run.state.value("SELECT id FROM product")
    run.state.change("product", key, name=SCRIPT, blurb=SCRIPT)
    with open_session(recorder.browser, f"{run.origin}/product?id={key}") as session:
        view = session.observe()
        assert "broken into" in (view.observation.axtree or "")  # as text
        assert session.evaluate("document.title").startswith("<script>")
        assert session.evaluate("document.querySelectorAll('script').length") == 0
    recorder.server.close(run)


@pytest.mark.browser
def test_a_script_that_posts_is_refused_and_noted(recorder: Recorder) -> None:
    run = recorder.server.open(Config(app="shop", scenario="price"), "fetch")
    with open_session(recorder.browser, f"{run.origin}/home") as session:
        script = "fetch('/do/wish', {method: 'POST'}).then(r => r.status, () => 'refused')"
        assert session.evaluate(script) == 403
        elsewhere = script.replace("/do/wish", "http://other.localhost/do/wish")
        assert session.evaluate(elsewhere) == "refused"  # by the page's policy
    assert run.state.dump() == run.before
    assert tampering(run) == ["Sec-Fetch-Mode is not that of a form in a page"]
    recorder.server.close(run)
