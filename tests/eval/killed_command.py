"""The main command, started, killed and started again."""

from __future__ import annotations

import os
from pathlib import Path

from tests.command_words import instead
from tests.forked import Forked, start
from tests.llm_server import LlmServer


class Command:
    """The main command in a folder of its own; it names its run's folder by itself."""

    def __init__(self, server: LlmServer, folder: Path, *words: str) -> None:
        folder.mkdir()
        self.folder = folder
        self.cache = folder / "cache.sqlite"
        own = (
            *("--data", "sample", "--model", "gpt-4o"),
            *("--base-url", f"{server.url}/v1", "--samples", "2", "--concurrency", "4"),
            *("--cache", str(self.cache)),
        )
        self.words = instead(own, words)

    def start(self) -> Forked:
        return start("eval.judge", self.words, self.folder, os.environ)

    def finish(self) -> None:
        process = self.start()
        _, shown = process.communicate()
        assert process.returncode == 0, shown.decode()

    def result(self, name: str) -> bytes:
        (run,) = (self.folder / "runs").iterdir()
        return (run / name).read_bytes()
