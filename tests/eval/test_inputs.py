"""No command writes into what it reads: each is run on a copy, whose tree is compared."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from tests.eval.data.test_published_index import ANNOTATIONS, put
from tests.rules.test_evaluate import RUNS, TASKS
from trajudge.eval.cli import main
from trajudge.eval.judge import main as judge
from trajudge.trajectories.sample import sample_path

pytestmark = pytest.mark.usefixtures("own_folder")


def tree(folder: Path) -> dict[str, tuple[str, int]]:
    """Every file and folder, with its content's hash and its date."""
    return {
        str(path.relative_to(folder)): (
            sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
            path.stat().st_mtime_ns,
        )
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trajectories with labels, runs that judged them, published judgments, tasks and runs of
    tasks."""
    folder = tmp_path_factory.mktemp("inputs") / "input"
    shutil.copytree(sample_path(), folder / "sample")
    data = f"trajudge:{folder / 'sample'}"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("heuristic", "rule-based"):
            assert judge(["--judge", name, "--data", data, "--out", f"runs/{name}"]) == 0
    for task in range(4):
        put(folder / "published", task, "Successful" if task % 2 else "Unsuccessful")
    rows = "".join(f"A,webarena,webarena.{i},agent,Successful,No,Unsure,No\n" for i in range(4))
    (folder / "published" / "annotations.csv").write_text(ANNOTATIONS + rows)
    (folder / "tasks.json").write_text(json.dumps(TASKS))
    (folder / "runs.jsonl").write_text("".join(json.dumps(run) + "\n" for run in RUNS))
    return folder


COMMAND_LINES: Sequence[Sequence[str]] = (
    ("judge", "--judge", "heuristic", "--data", "trajudge:{0}/sample"),
    ("judge", "--judge", "simplified", "--model", "gpt-4o", "--data", "{0}/sample", "--dry-run"),
    ("score", "{0}/runs/heuristic", "{0}/runs/rule-based"),
    ("score", "{0}/runs/heuristic", "--mismatches", "wrong.jsonl"),
    ("score", "--judgments", "{0}/published", "--resamples", "20"),
    ("select", "{0}/runs/heuristic", "--target-precision", "0.1"),
    ("audit", "{0}/runs/heuristic", "{0}/runs/rule-based"),
    ("audit", "--judgments", "{0}/published"),
    ("reparse", "{0}/runs/heuristic", "--data", "{0}/sample", "--out", "again"),
    ("rules", "--tasks", "{0}/tasks.json", "--runs", "{0}/runs.jsonl"),
    ("lint", "--tasks", "{0}/tasks.json"),
    ("naive", "--tasks", "{0}/tasks.json"),
    ("telemetry", "--data", "{0}/sample", "--seeds", "1", "--folds", "2", "--out", "model.json"),
)


@pytest.mark.parametrize("words", COMMAND_LINES, ids=lambda words: " ".join(words[:2]))
def test_a_command_leaves_its_input_as_it_was(made: Path, words: Sequence[str]) -> None:
    before = tree(made)
    code = main([word.format(made) for word in words])
    assert code in (0, 1)
    assert tree(made) == before
