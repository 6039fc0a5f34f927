"""Runs in several blocks, decisions on them, and runs of an agent that has not been judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.commands import accept as main
from tests.commands import select as select_main
from tests.eval.cases import key, label, said
from trajudge.eval.store.run_folder import JUDGMENTS, judgment_line, write_labels, write_manifest
from trajudge.judges.model import Judgment
from trajudge.trajectories import store
from trajudge.trajectories.model import Observation, Step, Trajectory


def trajectory(task: object, benchmark: str = "webarena", *, acts: bool = True) -> Trajectory:
    place = key(task, benchmark)
    seen = Observation(url="http://shop/", axtree="full tree", axtree_pruned="pruned tree")
    steps = [
        Step(index=0, observation=seen, reasoning="I look.", action="click('1')" if acts else None),
        Step(index=1, observation=Observation(page_error="no such element"), action="stop()"),
        Step(index=2, observation=seen),
    ]
    return Trajectory(
        key=place,
        raw_task_id=place.task_id,
        goal=" Buy a mug ",
        steps=tuple(steps if acts else steps[:1]),
        official_reward=1.0,
    )


def make_run(folder: Path, trajectories: list[Trajectory], judgments: list[Any]) -> Path:
    data = store.write(folder / "data", trajectories)
    (folder / JUDGMENTS).write_bytes(b"".join(map(judgment_line, judgments)))
    write_labels(folder, [])
    write_manifest(folder, {"data": f"trajudge:{data}"})
    return folder


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def accept(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


SETTINGS: dict[str, Any] = {
    "judge": "simplified-axtree:gpt-4o",
    "model": "gpt-4o-2024-11-20",
    "endpoint": "openai",
    "parameters": {"temperature": 0.0, "max_tokens": 512},
    "prompt_hash": "a" * 64,
    "options": {"representation": "axtree", "max_prompt_tokens": 16000},
    "samples": 1,
    "version": "0.1.0",
    "sent": [
        {
            "model": "gpt-4o-2024-11-20",
            "endpoint": "openai",
            "parameters": {"temperature": 0.0, "max_tokens": 512},
        }
    ],
}
JUDGE = SETTINGS["judge"]


def judged(n: int, success: bool, agent: str = "agent", benchmark: str = "webarena") -> Judgment:
    made = said(n, success, judge=JUDGE, benchmark=benchmark)
    return made.model_copy(update={"key": made.key.model_copy(update={"agent": agent})})


def decided(tmp_path: Path, settings: dict[str, Any]) -> Path:
    """A decision made on 80 labelled runs of ``agent`` on WebArena."""
    run = make_run(tmp_path / "labelled", [], [judged(n, n % 2 == 0) for n in range(80)])
    write_manifest(run, settings | {"data": "sample"})
    write_labels(run, [label(n, n % 2 == 0) for n in range(80)])
    out = tmp_path / "selection"
    assert select_main([str(run), "--target-precision", "0.9", "--out", str(out)]) == 0
    return out


def new_runs(folder: Path, tasks: int) -> Path:
    """Runs of ``stranger``, one or two a task, that the judge said were successful."""
    made, judgments = [], []
    for n in range(tasks):
        for attempt in range(1 + n % 2):
            run = trajectory(n)
            key = run.key.model_copy(update={"agent": "stranger", "attempt": attempt})
            made.append(run.model_copy(update={"key": key}))
            said = judged(n, True, "stranger")
            judgments.append(said.model_copy(update={"key": key}))
    make_run(folder, made, judgments)
    data = json.loads((folder / "manifest.json").read_text())["data"]
    write_manifest(folder, SETTINGS | {"data": data})
    return folder
