"""The recomputation of recorded verdicts: equal on the real one, different where one is altered."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from tests.judges.methods.universal_verifier.fara import SCORES, recorded_scores
from tests.judges.methods.universal_verifier.records import STEPS, recomputed, verdicts

pytestmark = pytest.mark.real_data


def test_the_recorded_run_is_recomputed(real_data: Path) -> None:
    assert all(recomputed(recorded_scores(real_data)).values())
    parquet = real_data / "cuaverifierbench/trajectories_constructed.parquet"
    recorded = [verdict for _, verdict in verdicts([real_data / SCORES, parquet])]
    with_steps = [verdict for verdict in recorded if verdict.get(STEPS)]
    assert (len(recorded), len(with_steps)) == (3, 1)
    assert all(recomputed(with_steps[0]).values())


def test_an_altered_record_differs(real_data: Path) -> None:
    verdict = copy.deepcopy(recorded_scores(real_data))
    verdict[STEPS]["step2_relevance_scores"]["screenshot_0"]["1"] = 9
    verdict["rubric_items"][0]["post_image_earned_points"] = 5
    fields = recomputed(verdict)
    different = {name for name, same in fields.items() if not same}
    assert different == {"ranking", "examined", "earned_points", "process_score"}
