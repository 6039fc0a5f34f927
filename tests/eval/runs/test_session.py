"""A session of a run as a whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import score as score_main
from tests.eval.cases import key
from tests.eval.judge_command import SAMPLE, model, run, statuses
from tests.judges.runs import png
from tests.llm_server import LlmServer, always
from tests.screens import on_one_line
from trajudge.eval.store.run_folder import read_rewards
from trajudge.trajectories import store
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey
from trajudge.trajectories.sample import sample_path

pytestmark = pytest.mark.usefixtures("own_folder")


def test_what_a_run_has_come_to_is_not_printed_behind_the_scenes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    printed: list[str] = []

    def told(key: TrajectoryKey) -> str:
        printed.append(key.task_id)
        return key.task_id

    monkeypatch.setattr(TrajectoryKey, "__repr__", told)
    assert run("--judge", "rule-based") == 0
    assert not printed, "asyncio prints a task's result when it compares signal handlers"


def test_a_run_that_ends_early_counts_what_it_has_not_come_to(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By hand: the rest of the data is not judged, whoever scores it; resumed, nothing is missing
    and the files are those of a run that was never stopped."""
    Path("prices.toml").write_text('[models."gpt-4o"]\ninput = 2.5\noutput = 10.0\n')
    words = ["--prices", "prices.toml", "--concurrency", "2"]
    with LlmServer() as server:
        assert model(server, *words, "--max-cost", "0.05") == 1
        some = len(statuses())
        assert 0 < some < SAMPLE
        said = f"Coverage: {some} of {SAMPLE} judged"
        assert said in capsys.readouterr().out
        assert score_main(["run"]) == 0
        assert said in capsys.readouterr().out
        assert len(read_rewards(Path("run"))) == SAMPLE
        assert model(server, *words, "--max-cost", "5") == 0
        assert f"Coverage: {SAMPLE} of {SAMPLE} judged" in capsys.readouterr().out
        assert model(server, *words, "--out", "whole", "--max-cost", "5") == 0
    assert Path("run/rewards.jsonl").read_bytes() == Path("whole/rewards.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("refusing", "advice"),
    [
        (0, "the data lacks what the judge needs: mend it, then start again with --retry-failed"),
        (1, "--retry-failed asks for 1 of them again; 2 were skipped, the data lacks what"),
    ],
)
def test_what_was_skipped_is_not_asked_again(
    refusing: int, advice: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--retry-failed was advised, and would have skipped the same ones again."""
    seen = Observation(url="http://shop/", screenshot=png())
    runs = [
        Trajectory(
            key=key(n), raw_task_id=str(n), goal="Buy tea.",
            steps=(Step(index=0, observation=seen if n < refusing else Observation(url="x")),),
        )
        for n in range(2 + refusing)
    ]  # fmt: skip
    store.write(tmp_path / "data", runs)
    with LlmServer(script=always("refusal")) as server:
        words = ["--representation", "screenshot", "--model", "gpt-4o"]
        address = ["--base-url", f"{server.url}/v1"]
        assert run(*words, *address, data=f"trajudge:{tmp_path / 'data'}") == 1
    told = on_one_line(capsys.readouterr().err)
    assert f"judgments failed, more than --max-failures 0: {advice}" in told


def test_replies_that_were_cut_off_are_not_to_be_asked_for_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with LlmServer(script=always("length")) as server:
        assert model(server) == 1
    told = on_one_line(capsys.readouterr().err)
    assert "the replies were cut off: allow longer ones with --max-tokens N" in told


def test_what_cannot_be_read_has_no_reward_after_a_stop_either(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The last trajectory of the data is damaged; the first session stops before it."""
    runs = [run for run in store.read(sample_path()) if isinstance(run, Trajectory)]
    store.write(Path("data"), runs)
    path = Path("data/trajectories.jsonl")
    *others, last = path.read_bytes().splitlines(keepends=True)
    damaged = json.loads(last) | {"steps": "none"}
    path.write_bytes(b"".join(others) + json.dumps(damaged).encode() + b"\n")
    Path("prices.toml").write_text('[models."gpt-4o"]\ninput = 2.5\noutput = 10.0\n')
    words = ["--prices", "prices.toml", "--concurrency", "2", "--max-failures", "1"]
    with LlmServer() as server:
        assert model(server, *words, "--max-cost", "0.05", "--data", "trajudge:data") == 1
        assert model(server, *words, "--max-cost", "5", "--data", "trajudge:data") == 0
    assert statuses().count("skipped") == 1
    assert len(read_rewards(Path("run"))) == SAMPLE - 1
    capsys.readouterr()
    score_main(["run", "--checks"])
    shown = on_one_line(capsys.readouterr().out)
    assert "1 of 130 judgments skipped" in shown
    assert "missing" not in shown
