"""What rules demand, from task files as benchmarks publish them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.eval.cases import key
from trajudge.app.audit_pages import read_rule_texts
from trajudge.util.errors import UserError


@pytest.mark.real_data
def test_published_task_files_are_read(real_data: Path) -> None:
    folder = real_data / "webarena"
    for name, words in (
        ("test.raw.json", ('"exact_match": "Quest Lumaflex\u2122 Band"', '"string_match"')),
        ("webarena-verified.json", ('"AgentResponseEvaluator"', '"retrieve"')),
    ):
        texts = read_rule_texts(folder / name)
        assert len(texts) == 812
        known = texts.get(key("0").task_id)
        assert known is not None
        assert all(word in known.specification for word in words)
        assert "reference_url" not in known.specification  # it is empty there
        assert "top-1 best-selling" in known.intent


def test_a_file_of_ones_own_and_one_that_is_none(tmp_path: Path) -> None:
    file = tmp_path / "tasks.json"
    file.write_text(json.dumps([{"task_id": "own.7", "eval": {"must": ["x"], "none": []}}]))
    assert read_rule_texts(file)["own.7"].specification == '{\n  "must": [\n    "x"\n  ]\n}'
    for text in ("{}", "[1]", "", "[" * 100_000):
        file.write_text(text)
        with pytest.raises(UserError, match="is not a list of tasks"):
            read_rule_texts(file)
    with pytest.raises(UserError, match="is not a list of tasks"):
        read_rule_texts(tmp_path / "absent.json")
