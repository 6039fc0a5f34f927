"""Commands and the files that they read."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.commands import accept, perturb, select
from tests.environments.cases import sound
from tests.eval.published_files import ANNOTATIONS, put
from tests.rules.evaluated import RUNS, TASKS
from tests.rules.verified.tasks import page, task
from tests.trajectories.loaders.made import fara, rubric
from trajudge.annotations import store as annotation_store
from trajudge.annotations.model import Label
from trajudge.environments.model.case import write_cases
from trajudge.environments.recheck import content_digest
from trajudge.eval.judge import main as judge
from trajudge.rules.verified.tasks import task_record
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.trajectories.sample import sample_path


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
    """Trajectories with labels, runs that judged them, what a selection accepted of them, published
    judgments, tasks and runs of tasks, attempts, and cases of the environments with runs."""
    folder = tmp_path_factory.mktemp("inputs") / "input"
    shutil.copytree(sample_path(), folder / "sample")
    data = f"trajudge:{folder / 'sample'}"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("heuristic", "rule-based"):
            assert judge(["--judge", name, "--data", data, "--out", f"runs/{name}"]) == 0
        changed = ["--perturbation", "identity", "--perturbation", "claim-short"]
        assert perturb(["--data", data, *changed, "--limit", "20", "--out", "attacked"]) == 0
        attacked = ["--data", f"trajudge:{folder / 'attacked'}", "--out", "runs/attacked"]
        assert judge(["--judge", "heuristic", *attacked]) == 0
        # Eight tasks of one run and eight of 15 or 16: too few for 95 %, whatever the target.
        chosen = ["--target-precision", "0.1", "--confidence", "0.8", "--out", "selection"]
        assert select([str(folder / "runs/heuristic"), *chosen]) == 0
        Path("verdicts.csv").write_text("task,verdict,label\n1,yes,yes\n2,yes,no\n")
        applied = ["--decision", "selection", "--run", "runs/heuristic", "--out", "accepted"]
        assert accept(applied) == 0
    for number in range(4):
        put(folder / "published", number, "Successful" if number % 2 else "Unsuccessful")
    rows = "".join(
        f"{who},webarena,webarena.{i},agent,Successful,No,Unsure,No\n"
        for who in "AB"
        for i in range(4)
    )
    (folder / "published" / "annotations.csv").write_text(ANNOTATIONS + rows)
    (folder / "tasks.json").write_text(json.dumps(TASKS))
    (folder / "runs.jsonl").write_text("".join(json.dumps(run) + "\n" for run in RUNS))
    (folder / "replies.jsonl").write_text(json.dumps({"text": "<answer>N/A</answer>"}) + "\n")
    with sqlite3.connect(folder / "shop.db") as connection:
        connection.execute("create table orders (id integer, status text)")
    connection.close()
    orders = {"kind": "sql", "url": f"sqlite:///{folder}/shop.db", "query": "select * from orders"}
    (folder / "probes.json").write_text(json.dumps({"orders": orders}))
    fault = {"id": "late", "kind": "delay", "seconds": 1, "policy": "at(2)"}
    (folder / "faults.json").write_text(json.dumps({"seed": 0, "faults": [fault]}))
    _environments(folder / "environments")
    fara(folder / "fara" / "Tea--1", rubric=rubric())
    (folder / "verified.json").write_text(json.dumps([task_record(task(["a"]))]))
    (folder / "traced" / "1").mkdir(parents=True)
    har = {"log": {"entries": [page("/")]}}
    (folder / "traced" / "1" / "network.har").write_text(json.dumps(har))
    return folder


def _environments(folder: Path) -> None:
    """A case, and a recorded run of it."""
    case = sound("unwish")
    write_cases(folder / "cases.jsonl", [case])
    key = TrajectoryKey(benchmark="shop", agent="a", task_id=case.id)
    run = Trajectory(key=key, raw_task_id=case.id, goal="g", telemetry={"n_steps": 4.0})
    store.write(folder / "recorded", [run])
    label = Label(key=key, raw_task_id=case.id, annotator="state", success=True)
    annotation_store.write(folder / "recorded" / "labels.jsonl", [label])
    facts: dict[str, Any] = {"key": key.model_dump(mode="json"), "app": "shop"}
    facts |= {"config": case.config.model_dump(), "content": content_digest(case.config)}
    facts |= {"code_key": "", "changes": [], "repeated": 0, "steps": 1, "shortest": 1}
    (folder / "recorded" / "facts.jsonl").write_text(json.dumps(facts) + "\n")
    (folder / "recorded" / "traces").mkdir()
    har = json.dumps({"log": {"entries": [page("/")]}})
    (folder / "recorded" / "traces" / f"{case.id}.a.0.har").write_text(har)


AGAIN = ("--agent", "{agent}", "--out", "kept", "--recertify", "again")
PROBED = ("--run-folder", "probed", "--when", "before")
SAMPLED = ("--data", "{0}/sample")
RULED = ("--tasks", "{0}/tasks.json", "--runs", "{0}/runs.jsonl")
CASES = ("--cases", "{0}/environments/cases.jsonl")
COMMAND_LINES: Sequence[Sequence[str]] = (
    ("judge", "--judge", "heuristic", "--data", "trajudge:{0}/sample"),
    ("judge", "--judge", "simplified", "--model", "gpt-4o", *SAMPLED, "--dry-run"),
    ("check", "{0}/verdicts.csv"),
    ("score", "{0}/runs/heuristic", "{0}/runs/rule-based"),
    ("score", "{0}/runs/heuristic", "--mismatches", "wrong.jsonl"),
    ("score", "--judgments", "{0}/published"),
    ("select", "{0}/runs/heuristic", "--target-precision", "0.1"),
    ("accept", "--decision", "{0}/selection", "--run", "{0}/runs/heuristic", "--out", "kept"),
    ("audit", "{0}/runs/heuristic", "{0}/runs/rule-based"),
    ("audit", "--judgments", "{0}/published"),
    ("report", "{0}/runs/heuristic", "--baselines", "off", "--show", "3", "--out", "report.html"),
    ("score", "{0}/runs/heuristic", "--ranks"),
    (
        "judges",
        "train",
        "--data",
        "{0}/sample",
        "--folds",
        "2",
        "--save",
        "model.json",
    ),
    ("run", "reparse", "{0}/runs/heuristic", *SAMPLED, "--out", "again"),
    ("accept", "--decision", "{0}/selection", "--run", "{0}/runs/heuristic", *AGAIN),
    ("score", "{0}/runs/heuristic", "{0}/runs/rule-based", "--checks"),
    ("data", "verdicts", "fara:{0}/fara", "--out", "verdicts"),
    ("data", "convert", "{0}/sample", "converted"),
    ("data", "perturb", *SAMPLED, "--perturbation", "identity", "--limit", "2"),
    ("robust", "{0}/runs/attacked", "--attacked", "{0}/attacked"),
    ("robust", "--judge", "heuristic", *SAMPLED, "--perturbation", "claim-short", "--limit", "20"),
    ("rules", "evaluate", *RULED),
    ("rules", "lint", "--tasks", "{0}/tasks.json"),
    ("rules", "mutate", "--tasks", "{0}/tasks.json"),
    ("rules", "mutate", *RULED),
    ("rules", "blind", "--tasks", "{0}/tasks.json"),
    ("rules", "probe", "--probes", "{0}/probes.json", *PROBED),
    ("env", "results", "{0}/environments/recorded", *CASES),
    ("env", "verify", "{0}/environments/recorded", "--other-goals", "1"),
    ("proxy", "plan", "--faults", "{0}/faults.json", "--task", "shop.1"),
    ("proxy", "run", "--faults", "{0}/faults.json", "--out", "measured", "--", "true"),
)
