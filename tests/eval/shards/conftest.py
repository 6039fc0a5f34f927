"""Stores of every kind: a folder, memory, an S3 server on loopback."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from tests.eval.shards.s3 import s3_server


@pytest.fixture(scope="session")
def s3() -> Iterator[Mapping[str, str]]:
    with s3_server() as settings:
        yield settings
