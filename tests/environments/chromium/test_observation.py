"""What a busy browser cannot do yet is asked for again; other troubles are passed on."""

from __future__ import annotations

import asyncio
import base64
from typing import Any, cast

import msgspec
import pytest

from trajudge.environments.chromium.axtree import Mark
from trajudge.environments.chromium.observation import (
    Bids,
    DomSnapshot,
    PageSnapshot,
    picture,
)
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
    protocol = Protocol(3, "Protocol error: Unable to capture screenshot")
    assert pictured(protocol) == b"png"


def test_a_browser_that_never_has_a_frame_is_an_error() -> None:
    with pytest.raises(ProtocolError, match="Unable to capture"):
        pictured(Protocol(4, "Protocol error: Unable to capture screenshot"))


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


STRINGS = ["http://a/", "A", "HTML", "DIV", "INPUT", "type", "HIDDEN", "name", "x", "#text"]
NODES = {
    # A hidden field with something inside, then a field, and two elements without an area.
    "parentIndex": [-1, 0, 0, 2, 1, 0, 0],
    "nodeType": [1, 1, 1, 3, 1, 1, 1],
    "nodeName": [2, 3, 4, 9, 4, 3, 3],
    "nodeValue": [-1, -1, -1, 8, -1, -1, -1],
    "backendNodeId": [10, 11, 12, 13, 14, 15, 16],
    "attributes": [[], [], [5, 6], [], [7, 8], [], []],
    **{name: {"index": []} for name in ("shadowRootType", "pseudoType", "isClickable")},
}
BOXES = [(10.0, 20.0, 100.0, 50.0), (10.0, 95.0, 100.0, 10.0), (10.0, 20.0, 0.0, 0.0)]
MARKS = {
    11: Mark("0"),
    14: Mark("1", clickable=True),
    15: Mark("2", clickable=True),
    16: Mark("3", clickable=True),
}


def snapshot(window: tuple[float, float, float, float]) -> PageSnapshot:
    layout = {"nodeIndex": [1, 4, 6], "bounds": BOXES}
    document = {"documentURL": 0, "title": 1, "nodes": NODES, "layout": layout}
    drawn = msgspec.convert({"documents": [document], "strings": STRINGS}, DomSnapshot)
    return PageSnapshot("http://a/", "A", [], MARKS, None, drawn, window)


def element(visible: float, box: list[float] | None, clicks: bool, marked: bool) -> dict[str, Any]:
    return {"visibility": visible, "bbox": box, "clickable": clicks, "set_of_marks": marked}


def test_the_details_of_a_page_have_boxes_in_its_window_and_no_hidden_field() -> None:
    dom, elements = snapshot((5.0, 10.0, 200.0, 90.0)).details()
    assert elements == {
        "0": element(1, [5, 10, 100, 50], clicks=False, marked=False),
        "1": element(0.5, [5, 85, 100, 10], clicks=True, marked=True),  # half of it shows
        "2": element(0, None, clicks=True, marked=False),
        "3": element(0, [5, 10, 0, 0], clicks=True, marked=False),
    }
    assert dom == {
        "documents": [
            {
                "nodes": {
                    "nodeName": [2, 3, 4, 3, 3],
                    "nodeType": [1, 1, 1, 1, 1],
                    "nodeValue": [-1, -1, -1, -1, -1],
                    "parentIndex": [-1, 0, 1, 0, 0],
                    "attributes": [[], [10, 11], [7, 8, 10, 12], [10, 13], [10, 14]],
                    "contentDocumentIndex": {"index": [], "value": []},
                }
            }
        ],
        "strings": [*STRINGS, "bid", "0", "1", "2", "3"],
    }
    _, everywhere = snapshot((-1e9, -1e9, 2e9, 2e9)).details()
    assert [one["bbox"] for one in everywhere.values()] == [
        [10, 20, 100, 50], [10, 95, 100, 10], None, [10, 20, 0, 0]
    ]  # fmt: skip


def test_bids_are_given_once_in_each_document() -> None:
    bids = Bids()
    bids.start("one")
    assert [bids.of(node) for node in (7, 5, 7)] == ["0", "1", "0"]
    bids.start("one")
    assert bids.of(9, "a9") == "a9"
    assert bids.of(5) == "1"
    bids.start("two")
    assert bids.of(5) == "0"
