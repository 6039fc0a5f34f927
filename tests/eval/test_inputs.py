"""No command writes into what it reads: each is run on a copy, whose tree is compared."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.eval.inputs import CASES, COMMAND_LINES, made, tree
from tests.proxy.program import mitmproxy
from trajudge.eval.cli import every_command, main

__all__ = ["made", "mitmproxy"]  # fixtures

pytestmark = pytest.mark.usefixtures("own_folder")

SCRIPTED = ("--model", "m", "--adapter", "scripted", "--script", "{0}/replies.jsonl", "--yes")
# Those that drive a browser.
IN_CHROMIUM: Sequence[Sequence[str]] = (
    ("env", "validate", *CASES),
    ("env", "record", *CASES, "--agent", "oracle"),
    ("env", "replay", *CASES),
    ("env", "equivalence", *CASES, "--attempts", "1"),
)
UNTRIED: set[tuple[str, ...]] = {
    *(("judges", name) for name in ("list", "show", "fidelity")),
    ("data", "fetch"),
    ("data", "sources"),
    ("inspect",),  # tests/app/runs: serves until it is stopped
    ("env", "generate"),
    ("run", "batch"),  # tests/eval/batches: keeps its ledger beside the replies
    ("serve",),  # tests/rewards/server: serves until it is stopped
    # A queue is a database, whose folder holds its write-ahead log while it is open.
    *(tuple(name.split()) for name in every_command() if name.startswith("label ")),
    ("proxy", "results"),  # tests/eval/resilience: on runs behind a proxy
    ("proxy", "serve"),  # reads what "proxy run" reads, until it is stopped
}


def check(made: Path, words: Sequence[str]) -> None:
    before = tree(made)
    accepted = json.loads((made / "accepted/accepted.jsonl").read_text().splitlines()[0])
    agent = accepted["provenance"]["agent"]
    code = main([word.format(made, agent=agent) for word in words])
    assert code in (0, 1)
    assert tree(made) == before


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMAND_LINES, ids=lambda words: " ".join(words[:3]))
def test_a_command_leaves_its_input_as_it_was(
    made: Path, words: Sequence[str], request: pytest.FixtureRequest
) -> None:
    if words[:2] == ("proxy", "run"):
        request.getfixturevalue("mitmproxy")
    check(made, words)


@pytest.mark.browser
@pytest.mark.usefixtures("chromium")
@pytest.mark.parametrize("words", IN_CHROMIUM, ids=lambda words: words[1])
def test_a_browser_leaves_the_cases_as_they_were(made: Path, words: Sequence[str]) -> None:
    check(made, words)


def test_every_command_that_reads_files_is_tried() -> None:
    commands = {tuple(name.split()) for name in every_command()}
    lines = (*COMMAND_LINES, *IN_CHROMIUM)
    tried = {tuple(words[:size]) for words in lines for size in (1, 2)} & commands
    assert commands - tried == UNTRIED
