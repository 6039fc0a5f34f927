"""Panels, cascades, samples and judges of ones own, as a user runs them."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.command_words import instead
from tests.installed import write_metadata
from tests.judges.runs import GOOD, mug_run
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer
from tests.screens import on_one_line
from tests.tables import mistakes
from trajudge.eval.judge import main
from trajudge.eval.scoring.notes import flip_rate, stability_notes
from trajudge.eval.scoring.observations import Predictions, ReferenceLabels
from trajudge.eval.store.run_folder import read_judgments, read_manifest
from trajudge.eval.store.table import JudgmentTable
from trajudge.judges.model import Judgment, Status

pytestmark = pytest.mark.usefixtures("own_folder")


BAD = GOOD.replace("Successful", "Unsuccessful")
OWN = '''"""Success if the agent said anything."""
from trajudge.judges.model import Verdict

needs_model = False


async def judge(trajectory, ask):
    return Verdict(success=bool(trajectory.answer))
'''


def run(server: LlmServer | None, *words: str) -> int:
    where = ["--base-url", server.url + "/v1"] if server else []
    own = ["--data", "sample", "--out", "run", "--limit", "4", *where]
    return main(instead(own, words))


def judgments() -> list[Judgment]:
    return read_judgments(Path("run"))


def by_model(**texts: str) -> LlmServer:
    def text(incoming: Incoming) -> str:
        return texts[incoming.payload["model"].replace("-", "_")]

    return LlmServer(text=text)


@pytest.mark.parametrize(
    ("rule", "success"), [("majority", True), ("unanimous", False), ("mean", True)]
)
def test_a_panel_of_models_votes(rule: str, success: bool) -> None:
    with by_model(m_a=GOOD, m_b=GOOD, m_c=BAD) as server:
        members = "simplified:m-a,simplified:m-b,simplified:m-c"
        assert run(server, "--judge", "panel", "--members", members, "--rule", rule) == 0
        assert server.stats.requests == 12
        assert run(server, "--judge", "panel", "--members", members, "--rule", rule) == 0
        assert server.stats.requests == 12
    members_in_manifest = read_manifest(Path("run"))["options"]["of"]["members"]
    for member in members_in_manifest:  # so that the judge can be made again of the run alone
        assert member["options"]["structured"] is True
        assert member["options"]["max_prompt_tokens"] > 0
        assert member["options"]["images"]["max_side"] > 0
    assert [j.success for j in judgments()] == [success] * 4
    assert judgments()[0].score == pytest.approx(2 / 3)
    stages = {call.stage for call in judgments()[0].calls}
    assert stages == {f"simplified:m-{x} verdict" for x in "abc"}


@pytest.mark.parametrize(("tie", "success"), [("success", True), ("failure", False)])
def test_a_tie_is_what_the_option_says(tie: str, success: bool) -> None:
    with by_model(m_a=GOOD, m_b=BAD) as server:
        members = "simplified:m-a,simplified:m-b"
        assert run(server, "--judge", "panel", "--members", members, "--tie", tie) == 0
    assert [j.success for j in judgments()] == [success] * 4


def test_members_that_fail_are_absent_and_the_quorum_decides() -> None:
    with by_model(m_a=GOOD, m_b="I will not say.") as server:
        members = "simplified:m-a,simplified:m-b"
        assert run(server, "--judge", "panel", "--members", members, "--quorum", "1") == 0
        assert {j.status for j in judgments()} == {Status.OK}
        words = ["--judge", "panel", "--members", members, "--quorum", "2"]
        assert run(server, *words, "--out", "strict") == 1
    strict = read_judgments(Path("strict"))
    assert {j.status for j in strict} == {Status.UNPARSABLE}
    assert "1 of 2 members answered, quorum 2" in strict[0].detail


def test_a_member_that_never_votes_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with by_model(m_a=GOOD, m_b="I cannot say.", m_c=BAD) as server:
        members = "simplified:m-a,simplified:m-b,simplified:m-c"
        assert run(server, "--judge", "panel", "--members", members) == 0
    shown = capsys.readouterr().err
    said = "simplified:m-b cast no vote on 4 of the panel's 4 verdicts: run.log says why"
    assert said in on_one_line(shown)
    assert "m-a cast" not in shown
    log = Path("run/run.log").read_text().splitlines()
    assert (
        sum("no verdict of simplified:m-b: " in line and "no JSON object" in line for line in log)
        == 4
    )


@pytest.mark.parametrize("option", [[], ["--judge-option", "hide=reasoning"]])
def test_a_member_that_says_nothing_of_success_is_named_and_logged(
    option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """It did not fail; and what is put around a panel hides none of its members."""
    abstains = OWN.replace("success=bool(trajectory.answer)", "side_effect=False")
    Path("abstains.py").write_text(abstains)
    with by_model(m_a=GOOD, m_b=BAD) as server:
        members = "simplified:m-a,simplified:m-b,abstains.py"
        assert run(server, "--judge", "panel", "--members", members, *option) == 0
    said = "abstains.py cast no vote on 4 of the panel's 4 verdicts: run.log says why"
    assert said in on_one_line(capsys.readouterr().err)
    log = Path("run/run.log").read_text()
    assert log.count("no verdict of abstains.py: it says nothing of success") == 4


def test_a_quorum_of_more_than_the_members_costs_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with LlmServer(text=GOOD) as server:
        words = ["--judge", "panel", "--members", "simplified:m-a,simplified:m-b", "--quorum", "3"]
        assert run(server, *words) == 2
        assert server.stats.requests == 0
    assert "--quorum 3 is more than the 2 members: lower it" in capsys.readouterr().err


@pytest.mark.parametrize("judge", ["panel", "cascade"])
def test_a_member_that_is_anothers_double_under_model_is_refused(
    judge: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with LlmServer(text=GOOD) as server:
        words = ["--judge", judge, "--members", "simplified,simplified:m-a"]
        assert run(server, *words, "--model", "m-a") == 2
        assert server.stats.requests == 0
        assert run(server, *words, "--model", "m-b") == 0
    said = "with --model m-a two members are simplified:m-a: name each judge and model once"
    assert said in on_one_line(capsys.readouterr().err)


def test_no_more_workers_are_begun_than_there_are_judgments() -> None:
    with LlmServer(text=GOOD) as server:
        assert run(server, "--judge", "simplified", "--model", "m", "--concurrency", "999999") == 0
    assert len(judgments()) == 4


def test_a_panel_may_mix_models_and_rules() -> None:
    with LlmServer(text=GOOD) as server:
        words = ["--judge", "panel", "--members", "simplified,heuristic", "--model", "m-a"]
        assert run(server, *words) == 0
        assert server.stats.requests == 4
    assert judgments()[0].judge == "panel-of-simplified:m-a+heuristic"
    assert set(judgments()[0].scores) == {"simplified", "heuristic"}


@pytest.mark.parametrize(
    ("members", "model", "name"),
    [
        (
            "simplified:m-a,heuristic,simplified:m-b",
            None,
            "simplified:m-a+heuristic+simplified:m-b",
        ),
        ("simplified,simplified:m-b", "m-a", "simplified:m-a+simplified:m-b"),
        ("heuristic,rule-based", None, "heuristic+rule-based"),
    ],
)
def test_a_panel_names_each_member_once_with_the_model_that_it_asks(
    members: str, model: str | None, name: str
) -> None:
    with LlmServer(text=GOOD) as server:
        words = ["--judge", "panel", "--members", members, "--rule", "mean"]
        assert run(server, *words, *(["--model", model] if model else [])) == 0
    assert judgments()[0].judge == f"panel-rule-mean-of-{name}"


def test_a_panel_without_a_model_needs_none() -> None:
    assert run(None, "--judge", "panel", "--members", "heuristic,rule-based") == 0
    assert {j.status for j in judgments()} == {Status.OK}


def test_a_cascade_asks_the_second_only_where_the_first_is_positive(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def text(incoming: Incoming) -> str:
        if incoming.payload["model"] == "strong":
            return BAD
        return GOOD if incoming.ordinal % 2 else BAD

    with LlmServer(text=text) as server:
        members = "simplified:cheap,simplified:strong"
        words = ["--judge", "cascade", "--members", members, "--concurrency", "1", "--full"]
        assert run(server, *words) == 0
        strong = [i for i in server.seen if i.payload["model"] == "strong"]
    asked = [j for j in judgments() if j.scores["second_asked"]]
    assert len(strong) == len(asked)
    assert 0 < len(asked) < 4
    assert all(len(j.calls) == 1 + (j in asked) for j in judgments())
    shown = on_one_line(capsys.readouterr().out)
    assert f"the second member was asked on {len(asked)} of 4" in shown


def test_a_dry_run_prices_the_members() -> None:
    with LlmServer(text=GOOD) as server:
        members = "simplified:m-a,simplified:m-b"
        assert run(server, "--judge", "panel", "--members", members, "--dry-run") == 0
        assert server.stats.requests == 0


@mistakes(
    """
    --judge panel => --judge panel needs its members
    --judge panel --members heuristic => error: --members heuristic: name two judges or more
    --judge panel --members heuristic,heuristic => --members heuristic,heuristic: name two judges or
    --judge cascade --members heuristic => error: --members heuristic: a cascade has two members
    --judge panel --members heuristic,nobody => no such judge
    --judge panel --members heuristic,panel => cannot be a member
    --judge panel --members heuristic:gpt-4o,rule-based => asks no model
    --judge panel --members heuristic,simplified => a member asks a model
    --judge cascade --members heuristic,rule-based,telemetry => telemetry: a cascade has two
    --judge heuristic --members heuristic,rule-based => --members goes with
    """
)
def test_mistakes_are_said(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(None, *words) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert len(told.strip().splitlines()) == 1
    assert "{" not in told


def test_a_judge_from_a_file() -> None:
    Path("my_judge.py").write_text(OWN)
    assert run(None, "--judge", "my_judge.py") == 0
    assert judgments()[0].judge == "my_judge"
    Path("my_judge.py").write_text(OWN.replace("bool(", "not bool("))
    assert run(None, "--judge", "my_judge.py") == 2  # another judge is another run


def test_judges_of_one_name_are_rows_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
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


def predicted(made: list[Judgment]) -> tuple[Predictions, JudgmentTable]:
    """What one judge predicted, and the table that it is read from."""
    table = JudgmentTable.of(made)
    return Predictions.of(made[0].judge, table, ReferenceLabels.of(table.keys, {}, {})), table


def test_samples_report_their_flip_rate(capsys: pytest.CaptureFixture[str]) -> None:
    asked: Counter[str] = Counter()

    def second_differs(incoming: Incoming) -> str:
        asked[incoming.prompt] += 1
        return BAD if asked[incoming.prompt] == 2 else GOOD

    with LlmServer(text=second_differs) as server:
        assert run(server, "--model", "m-a", "--samples", "3", "--concurrency", "1") == 0
    flipped, repeated = flip_rate(*predicted(judgments()))
    assert (flipped, repeated) == (4, 4)
    shown = on_one_line(capsys.readouterr().out)
    assert "samples disagree on 4 of 4 trajectories (flip rate 100.0 %)" in shown


def test_failed_samples_are_no_flips() -> None:
    key = mug_run().key
    made = [
        Judgment(key=key, judge="j", sample=n, status=status, success=success)
        for n, (status, success) in enumerate(
            [(Status.OK, True), (Status.UNPARSABLE, None), (Status.OK, True)]
        )
    ]
    assert flip_rate(*predicted(made)) == (0, 1)
    assert stability_notes(*predicted(made[:2])) == [
        "j: 1 of 2 samples failed (unparsable 1); the others of their trajectories count"
    ]
    assert stability_notes(*predicted(made[1:2])) == []


def test_failed_samples_that_no_other_stands_for_are_those_of_the_coverage() -> None:
    made = [
        Judgment(key=mug_run().key, judge="j", sample=n, status=Status.REFUSED) for n in range(2)
    ]
    assert stability_notes(*predicted(made)) == []
