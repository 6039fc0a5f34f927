"""The bundled site is served on loopback, files only."""

from __future__ import annotations

from http.client import HTTPConnection

import pytest

from environments.server import SHOP, serve


def get(port: int, path: str) -> tuple[int, str | None]:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status, response.getheader("Content-Type")


def test_pages_and_scripts_have_media_types_that_do_not_depend_on_the_machine() -> None:
    with serve() as port:
        assert get(port, "/") == (200, "text/html; charset=utf-8")
        assert get(port, "/state.js") == (200, "text/javascript; charset=utf-8")


@pytest.mark.parametrize("path", ["/pages/", "/nothing", "/../server.py", "/%2e%2e/server.py"])
def test_folders_and_files_outside_are_not_found(path: str) -> None:
    with serve() as port:
        assert get(port, path)[0] == 404


def test_the_site_names_no_other_host() -> None:
    for file in sorted(SHOP.rglob("*.*")):
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "//" not in "".join(
            line for line in text.splitlines() if not line.strip().startswith("//")
        ).replace(" // ", ""), file


def test_the_site_never_writes_markup_from_text() -> None:
    for file in SHOP.rglob("*.js"):
        assert not any(word in file.read_text() for word in ("innerHTML", "outerHTML", "eval("))
