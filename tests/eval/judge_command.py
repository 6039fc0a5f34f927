"""The main command in short, on the bundled sample, its run in the folder ``run``."""

from __future__ import annotations

from pathlib import Path

from tests.command_words import instead
from tests.llm_server import LlmServer
from trajudge.eval.judge import main
from trajudge.eval.store.run_folder import read_judgments
from trajudge.trajectories import store
from trajudge.trajectories.sample import sample_path

SAMPLE = sum(1 for _ in store.read(sample_path()))


def run(*words: str, data: str = "sample") -> int:
    return main(instead(["--data", data, "--out", "run"], words))


def model(server: LlmServer, *words: str, name: str = "gpt-4o") -> int:
    return run("--model", name, "--base-url", server.url + "/v1", *words)


def statuses(folder: str = "run") -> list[str]:
    return [judgment.status for judgment in read_judgments(Path(folder))]
