"""``trajudge run reparse``: recorded replies are parsed again, without a call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import command
from tests.eval.judge_command import SAMPLE, model
from tests.llm_server import LlmServer
from trajudge.eval.store.run_folder import read_judgments
from trajudge.judges.model import Judgment

pytestmark = pytest.mark.usefixtures("own_folder")
reparse = command("run reparse")


def verdict(judgment: Judgment) -> dict[str, object]:
    return judgment.model_dump(exclude={"calls"})


@pytest.fixture
def run() -> Path:
    with LlmServer() as server:
        assert model(server) == 0
    return Path("run")


def test_the_replies_give_the_recorded_verdicts(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reparse(["run", "--out", "again"]) == 0
    assert f"{SAMPLE} of {SAMPLE} judgments read again, 0 with another" in capsys.readouterr().out
    before, after = read_judgments(run), read_judgments(Path("again"))
    assert [*map(verdict, after)] == [*map(verdict, before)]
    assert reparse(["run", "--out", "again"]) == 2
    assert "holds judgments already" in capsys.readouterr().err


def test_a_reply_that_was_changed_is_read_as_it_stands(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdicts come from the replies, not from the recorded verdicts; of a judgment that comes
    more than once the last counts. The cache has the reply as it was, and is not there any more."""
    monkeypatch.setenv("TRAJUDGE_CACHE", "other.sqlite")
    lines = (run / "judgments.jsonl").read_bytes().splitlines(keepends=True)
    changed = json.loads(lines[0])
    text, was = changed["calls"][0]["text"], changed["success"]
    old, new = ("Successful", "Unsuccessful") if was else ("Unsuccessful", "Successful")
    assert f"<success>{old}<" in text
    changed["calls"][0]["text"] = text.replace(f"<success>{old}<", f"<success>{new}<")
    lines.append(json.dumps(changed).encode() + b"\n")
    (run / "judgments.jsonl").write_bytes(b"".join(lines))
    assert reparse(["run", "--out", "again"]) == 0
    shown = capsys.readouterr().out
    assert f"{SAMPLE} of {SAMPLE} judgments read again, 1 with another verdict" in shown
    assert "holds 1 judgment more than once" in shown
    after = {judgment.key: judgment for judgment in read_judgments(Path("again"))}
    assert len(after) == SAMPLE
    (key,) = {j.key for j in read_judgments(run) if vars(j.key) == changed["key"]}
    assert after[key].success is (not was)
