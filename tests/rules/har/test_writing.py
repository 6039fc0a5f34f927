"""What is written is read back, however it is packed, and holds no credentials."""

from __future__ import annotations

from pathlib import Path

import pytest

from trajudge.rules.har import RecordedRequest, RecordedResponse, har_document, har_entry, write_har
from trajudge.rules.verified.network import document, load_trace
from trajudge.util.errors import UserError

REQUEST = RecordedRequest(
    method="POST",
    url="http://shop.test/cart?x=1",
    headers={"Content-Type": "application/json", "Cookie": "secret", "Authorization": "secret"},
    body='{"a": "€"}',
    response=RecordedResponse(status=302, headers={"Location": "/", "Set-Cookie": "secret"}),
    started="2026-01-01T00:00:00+00:00",
    resource_type="Fetch",
)


@pytest.mark.parametrize("name", ["network.har", "network.har.gz", "network.har.zip"])
def test_what_is_written_is_read_and_the_same_every_time(tmp_path: Path, name: str) -> None:
    har = har_document([har_entry(REQUEST)], "1")
    assert "secret" not in str(har)
    for folder in ("one", "two"):
        write_har(tmp_path / folder / name, har)
    assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    (event,) = load_trace(tmp_path / "one" / name).events
    assert (event.method, event.url, event.status) == ("POST", REQUEST.url, 302)
    assert document(event.post_data) == {"a": "€"}
    assert event.entry.resource_type == "fetch"


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="name another place"):
        write_har(tmp_path / "file" / "network.har", {})
