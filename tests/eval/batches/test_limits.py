"""Azure's paths, a cancelled batch, the limit of enqueued tokens and --max-cost, through the real
SDKs against a server on loopback."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests.batch_server import PRICES, BatchServer
from tests.eval.batches.batch_runs import JUDGMENTS, OPTIONS, judge, live
from trajudge.eval.cli import main
from trajudge.eval.judge import main as judge_main

pytestmark = pytest.mark.usefixtures("own_folder")


def test_azure_has_paths_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "a-key")
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
    words = ["--data", "sample", "--limit", str(JUDGMENTS), "--model", "azure/gpt-4o", "--yes"]
    with BatchServer() as server:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.url)
        assert judge_main([*words, "--out", "live", "--cache", "live.sqlite"]) == 0
        calls = server.live
        batch = ["--out", "batch", "--cache", "batch.sqlite", "--batch", "--batch-options", OPTIONS]
        assert judge_main([*words, *batch]) == 0
        assert (server.live, server.submissions, server.double) == (calls, 1, 0)
        (taken,) = server.batches.values()
        lines = [orjson.loads(line) for line in taken.lines.values()]
    assert {line["url"] for line in lines} == {"/chat/completions"}
    assert {line["body"]["model"] for line in lines} == {"gpt-4o"}, "the deployment's name"
    asked = {path for path in server.paths if "batches" in path or "files" in path}
    assert asked
    assert all(path.startswith("/openai/") for path in asked)
    assert all("api-version=2024-10-21" in path for path in asked)
    assert Path("batch/judgments.jsonl").read_bytes() == Path("live/judgments.jsonl").read_bytes()


@pytest.mark.parametrize("name", ["gpt-4o", "claude-sonnet-4-5"])
def test_a_cancelled_batch_keeps_what_was_answered(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command then asks for the rest alone."""
    for provider in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{provider}_API_KEY", "a-key")
    with BatchServer(seconds=2.0) as server:
        judgments = live(server, name=name)
        assert judge(server, "batch", "--batch", "--batch-submit-only", name=name) == 130
        (first,) = server.batches
        assert main(["run", "batch", "cancel", first, "--cache", "batch.sqlite"]) == 0
        server.seconds = 0.1
        assert judge(server, "batch", "--batch", name=name) == 0
        (_, second) = server.batches.values()
        assert len(second.lines) == JUDGMENTS // 2
        assert server.double == 0
        capsys.readouterr()
        assert main(["run", "batch", "status", "--cache", "batch.sqlite"]) == 0
    assert "4 done, 4 failed" in capsys.readouterr().out
    assert Path("batch/judgments.jsonl").read_bytes() == judgments


def test_a_batch_whose_server_is_away_is_not_cancelled_and_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with BatchServer(seconds=9.0) as server:
        assert judge(server, "batch", "--batch", "--batch-submit-only") == 130
    capsys.readouterr()
    assert main(["run", "batch", "cancel", "--cache", "batch.sqlite"]) == 2
    assert (
        "error: batch batch_0 is not cancelled: cannot reach 127.0.0.1" in capsys.readouterr().err
    )


def test_a_batch_that_is_not_there_cannot_be_cancelled(capsys: pytest.CaptureFixture[str]) -> None:
    with BatchServer() as server:
        assert judge(server, "batch", "--batch") == 0
    assert main(["run", "batch", "cancel", "batch_77", "--cache", "batch.sqlite"]) == 2
    assert "no batch 'batch_77'" in capsys.readouterr().err


@pytest.mark.parametrize("told", [True, False])
def test_no_more_tokens_are_enqueued_than_the_account_may(told: bool) -> None:
    """Told of the limit, nothing is refused; else the provider refuses, and there is another try
    once a batch has ended."""
    with BatchServer(seconds=0.1, enqueued=9_000) as server:
        judgments = live(server)
        options = f"{OPTIONS},tokens=6000" + (",enqueued=8000" if told else "")
        assert judge(server, "batch", "--batch", "--batch-options", options) == 0
        refused = [one for one in server.batches.values() if one.failed]
        assert server.double == 0
        assert server.submissions > 2
        assert bool(refused) is not told
    assert Path("batch/judgments.jsonl").read_bytes() == judgments


def test_a_batch_is_never_dearer_than_its_limit(capsys: pytest.CaptureFixture[str]) -> None:
    """What does not fit is left; with more money the same command goes on to the same bytes."""
    Path("prices.toml").write_text(PRICES.format(model="gpt-4o"))
    prices = ("--prices", "prices.toml")
    with BatchServer(seconds=0.05) as server:
        judgments = live(server, *prices)
        before = server.billed
        assert judge(server, "batch", "--batch", *prices, "--max-cost", "0.02") == 1
        assert "--max-cost 0.02" in capsys.readouterr().err
        assert 0 < server.billed - before <= 0.02
        done = Path("batch/judgments.jsonl").read_bytes().count(b"\n")
        assert 0 < done < JUDGMENTS
        assert judge(server, "batch", "--batch", *prices, "--max-cost", "5") == 0
        assert server.double == 0
    assert Path("batch/judgments.jsonl").read_bytes() == judgments
