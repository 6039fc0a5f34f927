"""The benchmark of large runs goes through its stages, in small."""

from __future__ import annotations

from pathlib import Path

from benchmarks.large_runs import STAGES, arrived_run, make_data, written_run


def test_every_stage_does_its_work(tmp_path: Path) -> None:
    make_data(tmp_path / "data", 40)
    STAGES["judge"](tmp_path)
    arrived_run(tmp_path / "run", tmp_path / "arrived")
    written_run(tmp_path / "run", tmp_path / "scored", 60)
    for name, stage in STAGES.items():
        if name != "judge":
            stage(tmp_path)
    runs = [tmp_path / folder / "judgments.jsonl" for folder in ("run", "arrived")]
    assert runs[0].read_bytes() == runs[1].read_bytes()
