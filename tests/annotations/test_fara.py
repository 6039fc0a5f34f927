"""Verdicts in Fara's score files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.trajectories.loaders.made import fara, rubric
from trajudge.annotations.published import open_verdicts
from trajudge.annotations.sources.fara import read_verdicts
from trajudge.util.errors import UserError


def test_each_kind_of_score_is_a_judge(tmp_path: Path) -> None:
    fara(tmp_path / "a", rubric=rubric(True, 9.0), scores={"gpt_eval": 0, "WebJudge_o4-mini": 1})
    fara(tmp_path / "b", rubric=rubric(False, 4.0), scores={"notes": 1})
    fara(tmp_path / "c", rubric=rubric(None), scores={"gpt_eval": 7})
    verdicts = [*read_verdicts(tmp_path)]
    assert [(v.key.task_id, v.judge_id, v.status, v.success, v.process) for v in verdicts] == [
        ("a", "webjudge@published", "ok", True, None),
        ("a", "webvoyager@published", "ok", False, None),
        ("a", "universal-verifier@published", "ok", True, True),
        ("b", "universal-verifier@published", "ok", False, False),
        ("c", "webvoyager@published", "unparsable", None, None),
        ("c", "universal-verifier@published", "unparsable", None, True),
    ]
    first = verdicts[2]
    assert (first.scores, first.side_effect) == ({"process_score": 0.9}, False)
    assert first.reasoning == "It is green."
    assert verdicts[4].detail == "the score is 7, where 0 or 1 is a verdict"


def test_settings_are_judges_of_their_own(tmp_path: Path) -> None:
    folder = fara(tmp_path / "a", rubric=rubric())
    content = (folder / "scores" / "mmrubric_0.8-5-3.json").read_text()
    (folder / "scores" / "mmrubric_0.5-3-3.json").write_text(content)
    (folder / "scores" / "mmrubric_torn.json").write_text("{")
    assert [(v.judge_id, v.status) for v in read_verdicts(tmp_path)] == [
        ("universal-verifier(0.5-3-3)@published", "ok"),
        ("universal-verifier(0.8-5-3)@published", "ok"),
        ("universal-verifier(torn)@published", "skipped"),
    ]


def test_data_without_verdicts_is_a_mistake(tmp_path: Path) -> None:
    fara(tmp_path / "a")
    with pytest.raises(UserError, match="holds no published verdict"):
        open_verdicts(f"fara:{tmp_path}")
    with pytest.raises(UserError, match="no published verdicts are read of kind 'webvoyager'"):
        open_verdicts(f"webvoyager:{tmp_path}")


def test_the_real_example(real_data: Path) -> None:
    """The verdict's fields are those of the raw file."""
    [verdict] = open_verdicts(str(real_data / "fara_trajectory"))
    folder = real_data / "fara_trajectory" / "alltrails_find_23"
    content = json.loads((folder / "scores" / "mmrubric_0.8-5-3.json").read_text())
    told = json.loads(content["gpt_response_text"])
    assert (verdict.success, verdict.process, verdict.side_effect) == (True, True, False)
    assert verdict.scores == {"process_score": 10 / 10}
    assert verdict.reasoning == told["rubric_outcome_verification"]["reasoning"]
    assert verdict.record == told
