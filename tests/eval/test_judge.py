"""The main command as a user runs it, against real servers on loopback."""

from __future__ import annotations

import csv
import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from eval.judge import main
from eval.ledger import paid
from eval.published import read_published
from eval.run_folder import read_judgments
from eval.score import main as score_main
from judges.model import Status
from tests.llm_server import LlmServer, always, at
from trajectories.sample import sample_path


@pytest.fixture(autouse=True)
def no_keys_no_copy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRAJUDGE_CACHE", str(tmp_path / "cache" / "replies.sqlite"))
    monkeypatch.setenv("TRAJUDGE_DATA", str(tmp_path / "no-copy"))
    monkeypatch.chdir(tmp_path)


def run(*words: str, data: str = "sample") -> int:
    return main(["--data", data, "--out", "run", *words])


def model(server: LlmServer, *words: str, name: str = "gpt-4o") -> int:
    return run("--model", name, "--base-url", server.url + "/v1", *words)


def statuses(folder: str = "run") -> list[str]:
    return [judgment.status for judgment in read_judgments(Path(folder))]


def test_a_baseline_scores_the_sample(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--judge", "heuristic") == 0
    shown = capsys.readouterr().out
    assert "heuristic" in shown
    assert "rule-based" in shown
    names = {path.name for path in Path("run").iterdir()}
    assert {"manifest.json", "judgments.jsonl", "results.json", "results.csv"} <= names
    with Path("run/results.csv").open() as file:
        rows = list(csv.DictReader(file))
    overall = next(r for r in rows if r["benchmark"] == "overall" and r["label"] == "success")
    assert int(overall["n"]) == 36
    assert 0 < float(overall["precision_low"]) < float(overall["precision"])


def test_without_data_the_sample_is_judged_and_the_user_told_how_to_get_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--judge", "heuristic"]) == 0
    assert "python -m trajectories.fetch agentrewardbench" in capsys.readouterr().err
    assert len(list(Path("runs").iterdir())) == 1


@pytest.mark.parametrize(
    ("name", "path", "words"),
    [
        ("gpt-4o", "/v1/chat/completions", ["--representation", "both"]),
        ("claude-3-7-sonnet-latest", "/v1/messages", ["--representation", "screenshot"]),
        ("some-local-model", "/v1/chat/completions", ["--representation", "axtree"]),
    ],
)
def test_a_model_judges_over_its_own_protocol_once(name: str, path: str, words: list[str]) -> None:
    with LlmServer() as server:
        assert model(server, *words, name=name) == 0
        assert statuses() == ["ok"] * 36
        assert {seen.path for seen in server.seen} == {path}
        assert server.stats.answered_again == 0
        asked, first = server.stats.requests, Path("run/judgments.jsonl").read_bytes()
        assert model(server, *words, name=name) == 0
        assert server.stats.requests == asked
    assert Path("run/judgments.jsonl").read_bytes() == first


def test_a_model_through_litellm() -> None:
    if find_spec("litellm") is None:
        pytest.skip("the extra litellm is not installed")
    with LlmServer() as server:
        words = ["--base-url", server.url + "/v1", "--adapter", "litellm", "--limit", "5"]
        assert run("--model", "openai/anything", *words) == 0
        assert statuses() == ["ok"] * 5


def test_another_folder_is_filled_from_the_cache_without_a_call() -> None:
    with LlmServer() as server:
        assert model(server) == 0
        asked = server.stats.requests
        assert model(server, "--out", "other") == 0
        assert server.stats.requests == asked
    assert Path("run/judgments.jsonl").read_bytes() == Path("other/judgments.jsonl").read_bytes()


def test_samples_are_asked_apart() -> None:
    with LlmServer() as server:
        assert model(server, "--limit", "3", "--samples", "4") == 0
        assert server.stats.requests == 12
    assert [(j.key.order, j.sample) for j in read_judgments(Path("run"))] == sorted(
        (j.key.order, j.sample) for j in read_judgments(Path("run"))
    )


def test_score_prints_the_same_tables_without_a_call(capsys: pytest.CaptureFixture[str]) -> None:
    with LlmServer() as server:
        model(server)
    shown = capsys.readouterr().out
    assert score_main(["run"]) == 0
    again = capsys.readouterr().out
    assert shown.split("wall time")[0].strip() == again.strip()


def test_failed_judgments_have_a_status_and_can_be_asked_for_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with LlmServer(text="I would rather not say") as server:
        assert model(server, "--limit", "4") == 1
        assert statuses() == ["unparsable"] * 4
        assert "4 of 4 judgments failed" in capsys.readouterr().err
        assert model(server, "--limit", "4", "--max-failures", "100%") == 0
        assert server.stats.requests == 4
        server.text = None
        assert model(server, "--limit", "4", "--retry-failed") == 0
        assert server.stats.requests == 8
        assert statuses() == ["ok"] * 4
        model(server, "--limit", "4")
        assert server.stats.requests == 8


def test_a_refusal_is_no_negative_verdict() -> None:
    with LlmServer(script=at({0: "refusal"})) as server:
        assert model(server, "--limit", "3", "--concurrency", "1") == 1
    judgments = read_judgments(Path("run"))
    assert sorted(j.status for j in judgments) == ["ok", "ok", "refused"]
    assert all(j.success is None for j in judgments if j.status is Status.REFUSED)


def test_a_prompt_that_the_server_finds_too_long_goes_down_the_ladder() -> None:
    with LlmServer(script=at({0: "overflow"})) as server:
        assert model(server, "--limit", "1") == 0
        assert server.stats.requests == 2
    (judgment,) = read_judgments(Path("run"))
    assert [call.rung for call in judgment.calls] == ["full", "pruned"]


def test_the_budget_ends_the_run_and_the_same_command_goes_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    prices = Path("prices.toml")
    prices.write_text('[models."gpt-4o"]\ninput = 2.5\noutput = 10.0\n')
    words = ["--prices", str(prices), "--concurrency", "2"]
    with LlmServer() as server:
        assert model(server, *words, "--max-cost", "0.05") == 1
        assert "--max-cost" in capsys.readouterr().err
        some = len(statuses())
        assert 0 < some < 36
        assert model(server, *words, "--max-cost", "5") == 0
        assert len(statuses()) == server.stats.requests == 36
    spent = sum(call.cost or 0 for j in read_judgments(Path("run"))[:some] for call in j.calls)
    assert 0 < spent <= 0.05


def test_what_the_cache_answers_takes_nothing_of_the_budget_of_a_grid() -> None:
    Path("prices.toml").write_text('[models."gpt-4o"]\ninput = 250.0\noutput = 10.0\n')
    words = ["--prices", "prices.toml", "--limit", "6", "--max-failures", "6"]
    with LlmServer() as server:
        assert model(server, *words, "--yes") == 0
        dollars = sum(paid(read_judgments(Path("run"))).values())
        assert dollars > 1
        grid = ["--judge", "simplified", "--judge", "insta", "--out", "grid"]
        assert model(server, *words, *grid, "--max-cost", f"{2 * dollars}") == 0
        assert server.stats.requests == 12


def test_an_unpriced_model_cannot_have_a_budget(capsys: pytest.CaptureFixture[str]) -> None:
    with LlmServer() as server:
        assert model(server, "--max-cost", "1") == 2
        assert server.stats.requests == 0
    assert "price" in capsys.readouterr().err


def test_a_dear_run_that_nobody_can_confirm_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("prices.toml").write_text('[models."gpt-4o"]\ninput = 250.0\noutput = 10.0\n')
    with LlmServer() as server:
        assert model(server, "--prices", "prices.toml") == 2
        assert "predicted to cost $" in capsys.readouterr().err
        assert server.stats.requests == 0
        assert model(server, "--prices", "prices.toml", "--yes") == 0


def test_a_dry_run_needs_no_key_and_makes_no_call(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--model", "gpt-4o", "--dry-run") == 0
    shown = capsys.readouterr().out
    assert "calls         36, 0 of them" in shown
    assert "cost          $0." in shown
    assert not Path("run").exists()


def test_a_window_that_is_named_cuts_the_prompt_before_the_call() -> None:
    with LlmServer() as server:
        assert model(server, "--limit", "2", "--context", "2900") == 0
        assert server.stats.requests == 2
    rungs = {call.rung for j in read_judgments(Path("run")) for call in j.calls}
    assert rungs <= {"pruned", "cut", "elided"}


def test_the_price_predicted_is_the_price_of_the_tokens_that_openai_counts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run's replies are as long as the prediction assumes, so the prompts decide."""
    package = find_spec("litellm")
    if package is None or find_spec("tiktoken") is None:
        pytest.skip("the extra litellm, which brings OpenAI's token table, is not installed")
    tables = Path(str(package.origin)).parent / "litellm_core_utils" / "tokenizers"
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tables))
    import tiktoken

    encoding = tiktoken.get_encoding("cl100k_base")
    assert run("--model", "gpt-4o", "--dry-run") == 0
    shown = capsys.readouterr().out
    predicted = int(shown.split("input tokens")[1].split()[0].replace(",", ""))
    with LlmServer(record=100) as server:
        assert model(server) == 0
        used = sum(len(encoding.encode(seen.prompt)) for seen in server.seen)
    assert predicted == pytest.approx(used, rel=0.1)


def test_export_writes_what_the_reader_of_published_judgments_reads() -> None:
    with LlmServer() as server:
        assert model(server, "--export", "agentrewardbench", "published") == 0
    mine = {j.key: (j.success, j.side_effect, j.repetition) for j in read_judgments(Path("run"))}
    theirs = {
        item.judgment.key: (
            item.judgment.success,
            item.judgment.side_effect,
            item.judgment.repetition,
        )
        for item in read_published(Path("published"))
    }
    assert theirs == mine


def test_a_config_file_serves_as_well() -> None:
    Path("run.yaml").write_text("judge: heuristic\ndata: sample\nlimit: 7\nout: run\n")
    assert main(["--config", "run.yaml"]) == 0
    assert len(statuses()) == 7


class TestMistakes:
    """One sentence, exit code 2, and no call."""

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            (["--model", "gpt-4o"], "OPENAI_API_KEY"),
            (["--model", "claude-3-7-sonnet-latest"], "ANTHROPIC_API_KEY"),
            (["--model", "mystery"], "mystery"),
            ([], "--model"),
            (["--judge", "oracle"], "oracle"),
            (["--judge", "heuristic", "--benchmark", "webarna"], "webarna"),
            (["--judge", "heuristic", "--split", "test"], "no splits"),
            (["--model", "m", "--base-url", "not a url"], "not a url"),
            (["--model", "m", "--adapter", "scripted", "--script", "absent"], "absent"),
            (["--judge", "heuristic", "--annotations", "absent"], "absent"),
        ],
    )
    def test_is_named(
        self, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(*words) == 2
        shown = capsys.readouterr().err
        assert sentence in shown
        assert "Traceback" not in shown
        assert shown.count("error:") == 1

    def test_data_that_is_not_there(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("--judge", "heuristic", data="webvoyager:absent") == 2
        assert "absent" in capsys.readouterr().err

    def test_a_server_that_is_not_there_is_said_where(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run("--model", "m", "--base-url", "http://127.0.0.1:9/v1") == 2
        assert "127.0.0.1:9" in capsys.readouterr().err

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

    def test_a_folder_of_another_run(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("--judge", "heuristic") == 0
        before = Path("run/judgments.jsonl").read_bytes()
        assert run("--judge", "rule-based") == 2
        assert "choose another --out" in capsys.readouterr().err
        assert Path("run/judgments.jsonl").read_bytes() == before


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """The sample, its third line corrupt and the picture of its first trajectory gone."""
    folder = tmp_path / "damaged"
    shutil.copytree(sample_path(), folder)
    from trajectories import store
    from trajectories.model import Trajectory

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
    assert len(statuses()) == 35
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


def test_a_grid_of_judges_and_models_is_one_table_and_shares_the_cache(
    capsys: pytest.CaptureFixture[str],
) -> None:
    grid = [
        "--judge",
        "heuristic",
        "--judge",
        "simplified",
        "--model",
        "gpt-4o",
        "--model",
        "other",
    ]
    with LlmServer() as server:
        words = [*grid, "--base-url", server.url + "/v1", "--limit", "6"]
        assert run(*words) == 0
        assert server.stats.requests == 12
        shown = capsys.readouterr().out
        assert run(*words) == 0
        assert server.stats.requests == 12
    table = shown.split("\n\n")[0].splitlines()
    assert table[0] == "Judges"
    assert table[1].split()[:2] == ["judge", "precision"]
    judges = [line.split("  ")[0] for line in table[2:]]
    assert judges == [
        "heuristic",
        "simplified-axtree:gpt-4o",
        "simplified-axtree:other",
        "rule-based baseline",
    ]
    assert len(list(Path("run").iterdir())) == 3


def test_a_grid_is_priced_as_a_whole(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--judge", "heuristic", "--judge", "simplified", "--model", "gpt-4o"]
    assert run(*words, "--model", "gpt-4o-mini", "--dry-run") == 0
    shown = capsys.readouterr().out
    prices = [float(line.split("$")[1]) for line in shown.splitlines() if "$" in line]
    assert len(prices) == 4
    assert prices[0] == 0 < prices[2] < prices[1]
    assert prices[-1] == pytest.approx(sum(prices[:-1]), abs=2e-4)


def test_an_option_goes_to_the_judges_of_a_grid_that_take_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    grid = ["--judge", "heuristic", "--judge", "webvoyager", "--judge", "simplified", "--dry-run"]
    words = ["--model", "gpt-4o", "--judge-option", "screenshots=3", "--success-last"]
    assert run(*grid, *words, "--representation", "screenshot") == 0
    assert "simplified-screenshot-success-last:gpt-4o" in capsys.readouterr().out
    assert run(*grid, *words, "--judge-option", "nobody=1") == 2
    assert "nobody" in capsys.readouterr().err


def test_the_same_run_twice_in_a_grid(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--judge", "heuristic", "--judge", "heuristic") == 2
    assert "name each judge once" in capsys.readouterr().err
