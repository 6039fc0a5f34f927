"""A proxy that refuses is named, through every adapter, and its password is not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.judges.adapters.every_adapter import every_adapter
from tests.judges.adapters.requests import MODELS, request
from tests.llm_replies import Outgoing
from tests.llm_server import LlmServer
from trajudge.judges.adapters import errors
from trajudge.judges.adapters.context_windows import ask_server
from trajudge.judges.adapters.routing import make_adapter

pytestmark = pytest.mark.anyio


class Refusing(LlmServer):
    """A proxy that answers every request, ``CONNECT`` among them, with ``status``."""

    status = 403

    def handle(self, target: str, headers: dict[str, str], body: bytes) -> Outgoing:
        return Outgoing(self.status, b"<html>Not here</html>", {"content-type": "text/html"})


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Refusing]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    server = Refusing()
    with server:
        address = server.url.replace("//", "//user:secret@")
        monkeypatch.setenv("HTTP_PROXY", address)
        monkeypatch.setenv("HTTPS_PROXY", address)
        yield server


@every_adapter
@pytest.mark.parametrize(
    ("scheme", "status", "kind", "words"),
    [
        ("https", 403, errors.NoAccess, "it refuses the host (403)"),
        ("https", 407, errors.NoAccess, "a user and a password (407)"),
        ("https", 502, errors.Unreachable, "it answered 502"),
        ("http", 403, errors.Forbidden, "answered 403: Not here"),
        ("http", 407, errors.NoAccess, "a user and a password (407)"),
    ],
)
async def test_a_refusing_proxy_is_named(
    name: str, scheme: str, status: int, kind: type[errors.CallFailed], words: str, proxy: Refusing
) -> None:
    proxy.status = status
    url = f"{scheme}://model.invalid/v1"
    adapter, model = make_adapter(MODELS[name], adapter=name, base_url=url)
    with pytest.raises(kind) as raised:
        await adapter.send(request(model))
    await adapter.close()
    message = str(raised.value)
    variable = "HTTPS_PROXY" if scheme == "https" else "HTTP_PROXY"
    assert f"through the proxy 127.0.0.1:{proxy.port} ({variable})" in message
    assert words in message
    assert "secret" not in message


def test_the_question_for_a_window_names_it_too(proxy: Refusing) -> None:
    with pytest.raises(errors.Unreachable, match=r"proxy 127.0.0.1:\d+ \(HTTPS_PROXY\).*\(403\)"):
        ask_server("https://model.invalid/v1", "m", "none")


async def test_no_password_of_a_proxy_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://user:secret@127.0.0.1:9")
    adapter, model = make_adapter("m", adapter="http", base_url="https://model.invalid/v1")
    with pytest.raises(errors.Unreachable) as raised:
        await adapter.send(request(model))
    await adapter.close()
    assert "secret" not in str(raised.value)
