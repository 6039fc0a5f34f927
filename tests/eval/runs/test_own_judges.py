"""Users' own judges, from a file or an installed package."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.eval.runs.limited import OWN, judgments, run
from tests.installed import write_metadata
from tests.llm_server import LlmServer

pytestmark = pytest.mark.usefixtures("own_folder")


def test_a_judge_from_a_file() -> None:
    Path("my_judge.py").write_text(OWN)
    assert run(None, "--judge", "my_judge.py") == 0
    assert judgments()[0].judge == "my_judge"
    Path("my_judge.py").write_text(OWN.replace("bool(", "not bool("))
    assert run(None, "--judge", "my_judge.py") == 2  # another judge is another run


def test_judges_of_one_name_are_rows_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    """They were taken for two samples of one judge, of which the last counted."""
    for folder, rule in (("v1", "True"), ("v2", "False")):
        Path(folder).mkdir()
        Path(folder, "my_judge.py").write_text(OWN.replace("bool(trajectory.answer)", rule))
    both = ("--judge", "v1/my_judge.py", "--judge", "v2/my_judge.py")
    assert run(None, *both) == 0
    shown = capsys.readouterr().out
    recall = dict(re.findall(r"(my_judge \(\S+/my_judge-\w+\)).* ([\d.]+) +\S+ +4$", shown, re.M))
    assert sorted(recall.values()) == ["0.0", "100.0"]
    assert "flip rate" not in shown


def test_a_judge_from_a_file_asks_a_model_and_takes_options() -> None:
    Path("asking.py").write_text(
        "from trajudge.judges.model import Message, Text, Verdict\n"
        "from trajudge.trajectories.model import Record\n\n\n"
        "class Options(Record):\n    word: str = 'yes'\n\n\n"
        "def judge(options):\n"
        "    async def judged(trajectory, ask):\n"
        "        parts = (Text(text=f'Done: {trajectory.goal}?'),)\n"
        "        reply = await ask([Message(role='user', parts=parts)])\n"
        "        return Verdict(success=options.word in reply.text)\n"
        "    return judged\n"
    )
    with LlmServer(text="ja") as server:
        words = ["--judge", "asking.py", "--model", "m-a", "--judge-option", "word=ja"]
        assert run(server, *words) == 0
        assert server.stats.requests > 0
    assert [j.success for j in judgments()] == [True] * 4


def test_a_judge_from_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    write_metadata(site, "theirs", "[trajudge.judges]\ntalkative = their_judge\n")
    (site / "their_judge.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(site))
    assert run(None, "--judge", "talkative") == 0
    assert judgments()[0].judge == "talkative"
    sys.modules.pop("their_judge", None)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        ("x = 1\n", "must define"),
        ("def (\n", "cannot be loaded"),
        ("1 / 0\n", "division by zero"),
    ],
)
def test_a_file_that_is_no_judge_is_said(
    content: str | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        Path("wrong.py").write_text(content)
    assert run(None, "--judge", "wrong.py") == 2
    assert said in capsys.readouterr().err
