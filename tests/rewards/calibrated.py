"""A calibration in a file, and the options of a server that reads it."""

from __future__ import annotations

import json
from pathlib import Path

from trajudge.eval.analysis.calibration import Calibration


def calibration_file(path: Path, judge: str, facts: dict[str, object]) -> Path:
    bins = {"n": 10, "calibration_error": 0.1, "brier": 0.2, "bins": []}
    one = Calibration.model_validate(
        {
            "judge": judge,
            "map": {"method": "verdict", "scores": (0, 1), "values": (0.25, 0.75)},
            **{"fitted_on": 100, "left_out": 0, "raw": bins, "calibrated": bins},
            "configuration": {"judge": judge, "facts": facts},
        }
    )
    path.write_text(f'{{"calibrations": [{one.model_dump_json()}]}}', encoding="utf-8")
    return path


def calibrated_words(folder: Path, base_rate: float) -> list[str]:
    """Write a calibration that knows this base rate; return a server's options for its judge."""
    path = calibration_file(folder / "map.json", "simplified-axtree:mock", {"model": "mock"})
    whole = json.loads(path.read_text())
    bin_ = {"low": 0, "high": 0.1, "n": 10, "tasks": 5, "mean_score": 0, "rate": base_rate}
    whole["calibrations"][0]["raw"]["bins"] = [{**bin_, "rate_low": None, "rate_high": None}]
    path.write_text(json.dumps(whole))
    return ["--model", "mock", "--representation", "axtree", "--calibration-file", str(path)]
