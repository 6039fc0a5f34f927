"""What users and files get wrong: named in one sentence, or passed over and named."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.eval.judge_command import SAMPLE, model, run, statuses
from tests.llm_server import LlmServer, always
from tests.screens import on_one_line
from tests.tables import mistakes
from trajudge.eval.judge import main
from trajudge.eval.store.run_folder import read_judgments
from trajudge.judges.model import Status
from trajudge.trajectories.sample import sample_path

pytestmark = pytest.mark.usefixtures("own_folder")


class TestMistakes:
    """One sentence, exit code 2, and no call."""

    @mistakes(
        """
        --model gpt-4o => OPENAI_API_KEY
        --model claude-3-7-sonnet-latest => ANTHROPIC_API_KEY
        --model mystery => mystery
        => --model
        --judge oracle => oracle
        --judge heuristic --benchmark webarna => webarna
        --judge heuristic --split test => no splits
        --model m --base-url 'not a url' => not a url
        --model m --adapter scripted --script absent => absent
        --judge heuristic --annotations absent => absent
        --model m --temperature 9 => --temperature 9: must be at most 2
        """
    )
    def test_is_named(
        self, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(*words) == 2
        shown = capsys.readouterr().err
        assert sentence in shown
        assert "Traceback" not in shown
        assert shown.count("error:") == 1

    def test_paths_come_first_then_the_data_then_the_model(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        Path("empty").mkdir()
        Path("empty/trajectories.jsonl").write_text("")
        data = {"logs": "--data 'logs'", "trajudge:empty": "holds no trajectory", "sample": ""}
        for spec, its_own in data.items():
            for labels, theirs in (("labels.csv", "labels.csv: no such file"), ("", "")):
                words = ["--data", spec, *(["--annotations", labels] if labels else [])]
                assert main([*words, "--judge", "simplified"]) == 2
                # The path of the data, that of the labels, what the data holds, the model.
                expected = its_own if spec == "logs" else theirs or its_own or "--model NAME"
                assert expected in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            (
                ["--temperature", "1"],
                "judge heuristic does not ask a model: without effect: --temp",
            ),
            (["--model", "gpt-4o", "--captioner-model", "m"], "effect: --model, --captioner-model"),
            (["--judge", "rule-based", "--base-url", "http://x/v1"], "no judge here asks a model"),
            (
                ["--judge", "panel", "--members", "heuristic,rule-based", "--model", "m"],
                "no judge here asks a model: without effect: --model",
            ),
        ],
    )
    def test_what_a_loop_over_judges_gives_to_one_that_asks_no_model_is_said(
        self, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run("--judge", "heuristic", "--limit", "2", *words) == 0
        shown = capsys.readouterr().err
        assert shown.count("warning: ") == 1
        assert sentence in on_one_line(shown)

    def test_a_member_that_asks_has_a_use_for_them(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        words = ["--members", "heuristic,simplified", "--model", "gpt-4o", "--temperature", "1"]
        assert run("--judge", "panel", *words, "--limit", "2", "--dry-run") == 0
        assert "without effect" not in capsys.readouterr().err

    def test_members_that_all_name_their_own_have_no_use_for_a_model(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        words = ["--judge", "panel", "--members", "heuristic,simplified:gpt-4o,aer-c:gpt-4o-mini"]
        own = ["--limit", "2", "--dry-run", *words]
        assert run(*own, "--temperature", "1") == 0
        assert "without effect" not in capsys.readouterr().err
        assert run(*own, "--model", "gpt-4.1") == 0
        told = "each judge or member that asks a model names its own: without effect: --model"
        assert f"warning: {told} " in on_one_line(capsys.readouterr().err)
        assert run(*own, "--model", "gpt-4.1", "--judge", "simplified") == 0
        assert "without effect" not in capsys.readouterr().err

    def test_limits_on_calls_hold_for_a_judge_that_makes_none(self) -> None:
        limits = ["--max-cost", "1", "--concurrency", "4", "--cache", "c.sqlite", "--seed", "1"]
        assert run("--judge", "heuristic", "--limit", "2", *limits) == 0

    def test_a_wrong_key_stops_at_once_and_is_not_shown(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-value")
        with LlmServer(script=always("401")) as server:
            assert model(server, "--concurrency", "4") == 2
            assert server.stats.requests <= 4
        shown = capsys.readouterr()
        assert "OPENAI_API_KEY" in shown.err
        everything = shown.err + shown.out + Path("run/judgments.jsonl").read_text()
        assert "sk-secret-value" not in everything


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """The sample, its third line corrupt and the picture of its first trajectory gone."""
    folder = tmp_path / "damaged"
    shutil.copytree(sample_path(), folder)
    from trajudge.trajectories import store
    from trajudge.trajectories.model import Trajectory

    read = [t for t in store.read(sample_path()) if isinstance(t, Trajectory)]
    for file in folder.glob("trajectories.jsonl*"):
        file.unlink()
    file = store.write(folder, read)
    lines = file.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2][:100] + b"\n"
    file.write_bytes(b"".join(lines))
    last = json.loads(lines[0])["steps"][-1]["observation"]["screenshot"]
    for image in (folder / "images").glob(f"{last}*"):
        image.unlink()
    return folder


def test_a_corrupt_file_among_good_ones_is_named_and_the_run_goes_on(
    damaged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--judge", "heuristic", data=f"trajudge:{damaged}") == 0
    assert len(statuses()) == SAMPLE - 1
    assert "trajectories.jsonl:3" in capsys.readouterr().err
    assert main(["--judge", "heuristic", "--data", str(damaged), "--out", "x", "--strict"]) == 2
    assert "trajectories.jsonl:3" in capsys.readouterr().err


def test_a_trajectory_without_its_screenshot_is_skipped_not_guessed(damaged: Path) -> None:
    with LlmServer() as server:
        words = ["--model", "gpt-4o", "--base-url", server.url, "--representation", "screenshot"]
        assert run(*words, data=f"trajudge:{damaged}") == 1
    first, *_ = read_judgments(Path("run"))
    assert first.status is Status.SKIPPED
    assert "screenshot" in first.detail
    assert first.success is None


@pytest.mark.skipif(find_spec("litellm") is None, reason="the extra litellm is not installed")
@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "nope",
            "error: litellm knows no provider of nope: name it before the model, as --model "
            "openai/nope where the server speaks OpenAI's protocol",
        ),
        ("openai/nope", "does not serve openai/nope (404: The model does not exist): check"),
    ],
)
def test_a_model_that_is_not_served_ends_the_run_in_one_sentence(
    name: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with LlmServer(script=always("404")) as server:
        assert model(server, "--adapter", "litellm", "--limit", "3", name=name) == 2
    shown = on_one_line(capsys.readouterr().err)
    assert sentence in shown and shown.count("error: ") == 1
    assert "provider_error" not in shown
