"""What a busy browser cannot do yet is asked for again; other troubles are passed on."""

from __future__ import annotations

import asyncio
import base64
from typing import Any, cast

import pytest

from trajudge.environments.chromium.observation import PICTURES_TRIED, picture
from trajudge.environments.chromium.protocol import ProtocolError
from trajudge.environments.chromium.tab import stop_loading


class Protocol:
    """Fails as often as it is told, then has a picture and stops loading."""

    def __init__(self, failures: int, message: str) -> None:
        self.failures, self.message, self.asked = failures, message, 0

    async def send(self, _: str, __: dict[str, Any] | None = None) -> dict[str, str]:
        self.asked += 1
        if self.asked <= self.failures:
            raise ProtocolError(self.message)
        return {"data": base64.b64encode(b"png").decode()}


def pictured(protocol: Protocol) -> bytes:
    return asyncio.run(picture(cast(Any, protocol)))


def test_a_missing_frame_is_asked_for_again() -> None:
    protocol = Protocol(PICTURES_TRIED - 1, "Protocol error: Unable to capture screenshot")
    assert pictured(protocol) == b"png"


def test_a_browser_that_never_has_a_frame_is_an_error() -> None:
    with pytest.raises(ProtocolError, match="Unable to capture"):
        pictured(Protocol(PICTURES_TRIED, "Protocol error: Unable to capture screenshot"))


def test_another_trouble_is_passed_on_at_once() -> None:
    protocol = Protocol(1, "Target crashed")
    with pytest.raises(ProtocolError, match="Target crashed"):
        pictured(protocol)
    assert protocol.asked == 1


def test_loading_is_stopped_once_the_page_has_a_document() -> None:
    protocol = Protocol(2, "Protocol error (Page.stopLoading): Not attached to an active page")
    asyncio.run(stop_loading(cast(Any, protocol)))
    assert protocol.asked == 3


def test_a_page_that_is_gone_is_not_stopped_again() -> None:
    protocol = Protocol(1, "Target page, context or browser has been closed")
    with pytest.raises(ProtocolError, match="has been closed"):
        asyncio.run(stop_loading(cast(Any, protocol)))
    assert protocol.asked == 1
