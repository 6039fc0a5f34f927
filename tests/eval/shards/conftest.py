"""An S3 server on loopback, a model's server, and the run of one machine that shared runs equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.eval.shards.s3 import s3_server
from tests.eval.shards.sharing import words
from tests.llm_server import LlmServer
from trajudge.eval.cli import main


@pytest.fixture(scope="session")
def s3() -> Iterator[Mapping[str, str]]:
    with s3_server() as settings:
        yield settings


@pytest.fixture(scope="session")
def model_server() -> Iterator[LlmServer]:
    """One address for all tests: a manifest names it."""
    with LlmServer(latency=0.02, record=1_000) as made:
        yield made


@pytest.fixture(scope="module")
def alone(model_server: LlmServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of one machine."""
    folder = tmp_path_factory.mktemp("alone")
    options = words(model_server, folder / "replies.sqlite")
    assert main(["judge", *options, "--out", str(folder / "run")]) == 0
    return folder / "run"


@pytest.fixture
def server(model_server: LlmServer) -> LlmServer:
    """The server, which has seen nothing yet."""
    model_server.seen.clear()
    return model_server
