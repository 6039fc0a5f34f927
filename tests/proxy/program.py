"""mitmproxy for the tests of a folder, whose modules or ``conftest.py`` name the fixture."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.pinned import users_cache
from tests.proxy.forking import program
from tests.waiting import wait_until
from trajudge.proxy.process import MITMPROXY, VARIABLE, find_mitmdump
from trajudge.util.errors import UserError
from trajudge.util.machine import NoEnvironment


def real_mitmdump() -> Path:
    """mitmproxy's program: the one that the user has, else in an environment of its own, which is
    made if it is not there."""
    with users_cache():
        try:
            return find_mitmdump()
        except UserError:
            try:
                return MITMPROXY.python().with_name("mitmdump")
            except NoEnvironment as error:
                missing("mitmproxy", str(error))


@pytest.fixture(scope="session")
def mitmproxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The same program, with its imports done once, by the variable that names it to commands. It
    is started once, whichever folder's tests come first."""
    named = os.environ.get(VARIABLE)
    if named and "forking" in Path(named).parts:
        yield
        return
    folder = tmp_path_factory.mktemp("mitmproxy") / "forking"
    folder.mkdir()
    python = real_mitmdump().resolve().read_text().partition("\n")[0].removeprefix("#!")
    script, link = Path(__file__).with_name("forking.py"), folder / "socket"
    with (
        subprocess.Popen([python, "-I", script, link]) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        assert wait_until(link.exists, every=0.02)
        patch.setenv(VARIABLE, str(program(folder, link)))
        yield
        server.kill()
