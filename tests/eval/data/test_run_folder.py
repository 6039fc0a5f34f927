"""A run's files: what is written is read back, torn ends are forgiven, damage is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.eval.cases import call, failed, key, label, said
from trajudge.eval.store.run_folder import (
    JUDGMENTS,
    MANIFEST,
    REWARDS,
    copy_run,
    judgment_line,
    read_judgments,
    read_labels,
    read_manifest,
    read_rewards,
    write_labels,
    write_manifest,
    write_rewards,
    write_unreadable,
)
from trajudge.judges.model import Judgment, Status
from trajudge.trajectories.model import TrajectoryKey, Unreadable
from trajudge.util.errors import UserError

REQUEST = "a" * 64


def judgments() -> list[Judgment]:
    return [said(1, True, calls=(call(request=REQUEST),)), failed("\u2028 two", Status.REFUSED)]


def test_every_file_is_read_back(tmp_path: Path) -> None:
    (tmp_path / JUDGMENTS).write_bytes(b"".join(map(judgment_line, judgments())))
    rewards = {key(2): None, key(1): 0.5}
    labels = [label(2, None), label(1, True, optimality=4)]
    write_rewards(tmp_path, rewards)
    write_labels(tmp_path, labels)
    write_manifest(tmp_path, {"protocol": "default", "judge": "j"})
    assert read_judgments(tmp_path) == judgments()
    assert read_rewards(tmp_path) == rewards
    assert list(read_rewards(tmp_path)) == [key(1), key(2)]
    assert read_labels(tmp_path) == {a.key: a for a in labels}
    assert read_manifest(tmp_path) == {"protocol": "default", "judge": "j"}


@given(st.dictionaries(st.builds(key, st.text(max_size=5)), st.none() | st.floats(0, 1)))
def test_rewards_are_written_as_their_records_are(
    tmp_path_factory: pytest.TempPathFactory, rewards: dict[TrajectoryKey, float | None]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    write_rewards(folder, rewards)
    ordered = sorted(rewards.items(), key=lambda entry: entry[0].order)
    lines = [*map(orjson.loads, (folder / REWARDS).read_bytes().splitlines())]
    assert lines == [{"key": vars(key), "official_reward": reward} for key, reward in ordered]
    assert read_rewards(folder) == rewards


def test_a_copied_run_is_scored_and_reported_as_the_run_is(tmp_path: Path) -> None:
    run, copy = tmp_path / "run", tmp_path / "copy"
    run.mkdir()
    write_manifest(run, {"judge": "j"})
    write_labels(run, [label(1, True)])
    write_rewards(run, {key(1): 1.0})
    write_unreadable(run, [Unreadable(source="data:3", reason="no JSON")])
    copy_run(run, copy)
    assert {file.name: file.read_bytes() for file in run.iterdir()} == {
        file.name: file.read_bytes() for file in copy.iterdir()
    }


def test_what_tells_of_the_execution_only_is_not_written() -> None:
    fast = said(1, True, calls=(call(seconds=0.1, cached=True, request=REQUEST),))
    slow = said(1, True, calls=(call(seconds=9.0, request=REQUEST),))
    assert judgment_line(fast) == judgment_line(slow)


@given(
    said_text=st.text(max_size=30),
    numbers=st.tuples(st.floats(0, 1), st.floats(), st.floats(0)),
    status=st.sampled_from(Status),
    process=st.none() | st.booleans(),
)
def test_a_line_is_what_pydantic_writes_without_what_tells_of_the_execution(
    said_text: str,
    numbers: tuple[float, float, float],
    status: Status,
    process: bool | None,
) -> None:
    score, other, cost = numbers
    made = failed(said_text, status).model_copy(
        update={
            "score": score,
            "scores": {said_text: other},
            "record": {"kept": "elsewhere"},
            "process": process,
            "calls": (call(text=said_text, cost=cost, seconds=1.5), call(cached=True, cost=None)),
        }
    )
    left_out: dict[str, Any] = {"calls": {"__all__": {"seconds", "cached"}}, "record": True}
    assert judgment_line(made) == made.model_dump_json(exclude=left_out).encode() + b"\n"


def test_half_a_character_in_a_reply_does_not_stop_a_run(tmp_path: Path) -> None:
    text = "a\ud800b \ud83d\ude00"
    judgment = said(1, True, reasoning=text, calls=(call(text=text),))
    (tmp_path / JUDGMENTS).write_bytes(judgment_line(judgment))
    (back,) = read_judgments(tmp_path)
    assert back.reasoning == back.calls[0].text == "a\ufffdb \U0001f600"
    assert judgment_line(back) == judgment_line(judgment)


@pytest.mark.parametrize("kept", [1, 40, -1])
def test_a_line_torn_by_a_kill_is_left_out(tmp_path: Path, kept: int) -> None:
    first, second = map(judgment_line, judgments())
    (tmp_path / JUDGMENTS).write_bytes(first + second[:kept])
    assert read_judgments(tmp_path) == judgments()[:1]


def test_a_bad_line_elsewhere_is_named(tmp_path: Path) -> None:
    (tmp_path / JUDGMENTS).write_bytes(b'{"key": 1}\n' + judgment_line(judgments()[0]))
    with pytest.raises(UserError, match=r"judgments.jsonl, line 1: key"):
        read_judgments(tmp_path)


@pytest.mark.parametrize("written", ["1e400", "-Infinity", "NaN", "1" + "0" * 400])
def test_a_reward_that_is_no_finite_number_is_named(tmp_path: Path, written: str) -> None:
    """An infinite one was a traceback of the scoring."""
    write_rewards(tmp_path, {key(1): 0.5})
    path = tmp_path / "rewards.jsonl"
    path.write_text(path.read_text().replace("0.5", written))
    with pytest.raises(UserError, match=r"rewards\.jsonl, line 1: .*mend the line"):
        read_rewards(tmp_path)


def test_a_folder_that_is_no_run_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_judgments(tmp_path)
    for content in ("{", "[]"):
        (tmp_path / MANIFEST).write_text(content)
        with pytest.raises(UserError, match="give the folder of a run"):
            read_manifest(tmp_path)
