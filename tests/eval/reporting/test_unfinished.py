"""A run that was cut says so in its first sentence: its figures are of what was judged alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.eval.cases import key, label, said
from tests.eval.judge_command import model, run
from tests.eval.till import PRICES, Till
from tests.llm_server import LlmServer
from tests.screens import on_one_line
from trajudge.eval.cli import main
from trajudge.eval.reporting.sentences import finding, notes
from trajudge.eval.reporting.summary import summary
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.records import UnfinishedRun
from trajudge.eval.store.run_folder import JUDGMENTS, read_manifest, write_manifest

pytestmark = pytest.mark.usefixtures("own_folder")

WORDS = ("--limit", "20", "--prices", "prices.toml", "--max-tokens", "8000", "--concurrency", "4")


@pytest.fixture
def server() -> Iterator[LlmServer]:
    Path("prices.toml").write_text(PRICES)
    with LlmServer(text=Till()) as running:
        yield running


def first(shown: str) -> str:
    return re.split(r" (?:Of the runs|Of \d+ runs|First of \d) ", on_one_line(shown))[0]


def test_a_spent_budget_is_in_the_first_sentence_until_the_run_goes_on(
    server: LlmServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert model(server, *WORDS, "--max-cost", "0.6") == 1
    screen = capsys.readouterr()
    told = first(screen.out)
    made = len(Path("run", JUDGMENTS).read_bytes().splitlines())
    assert 0 < made < 20
    sentence = (
        f"simplified-axtree:gpt-4o on {made} trajectories of shop; the run is not finished: "
        f"{made} of 20 judgments"
    )
    assert told == sentence
    assert on_one_line(screen.out + screen.err).count(f"{made} of 20 judg") == 2
    assert main(["score", "run"]) == 0
    assert first(capsys.readouterr().out) == sentence
    assert main(["report", "run", "--out", "page.html"]) == 0
    assert first(capsys.readouterr().out) == sentence
    assert f"{made} of 20 judgments" in on_one_line(Path("page.html").read_text())
    assert main(["score", "run", "--full"]) == 0
    assert f"warning: not finished: simplified-axtree:gpt-4o ({made} of 20 judgments)" in (
        on_one_line(capsys.readouterr().out)
    )
    main(["select", "run", "--target-precision", "0.5"])
    cut_run = f"not finished: simplified-axtree:gpt-4o ({made} of 20 judgments)"
    assert f"note: {cut_run}: the decision is on these\n" in capsys.readouterr().err
    assert main(["audit", "run", "--out", "audit"]) == 0
    told = on_one_line(capsys.readouterr().out)
    assert told.startswith("The official reward passes ")
    assert f"%); {cut_run} It denies " in told
    assert main(["audit", "run", "--out", "audit", "--full"]) == 0
    assert f"warning: {cut_run}" in on_one_line(capsys.readouterr().out)
    accept = ["accept", "--run", "run", "--judge", "simplified-axtree:gpt-4o", "--threshold", "1"]
    main([*accept, "--out", "accepted"])
    accepted = capsys.readouterr()
    assert f" select was applied; {cut_run} rejected because " in on_one_line(accepted.out)
    assert "not finished" not in accepted.err
    cut = [{"judge": "simplified-axtree:gpt-4o", "judged": made, "due": 20}]
    assert json.loads(Path("run/results.json").read_text())["unfinished"] == cut
    assert model(server, *WORDS, "--max-cost", "100") == 0
    shown = on_one_line(capsys.readouterr().out)
    assert first(shown) == "simplified-axtree:gpt-4o on 20 trajectories of shop"
    # The cost beside it is that of both sessions.
    assert "20 calls" in shown and "; wall time of this session: " in shown
    assert "unfinished" not in json.loads(Path("run/results.json").read_text())


def test_samples_that_are_missing_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """Every trajectory has a verdict, so that coverage says nothing of it."""
    assert run("--judge", "heuristic", "--limit", "10", "--samples", "2") == 0
    whole = Path("run", JUDGMENTS)
    whole.write_bytes(b"".join(whole.read_bytes().splitlines(keepends=True)[:-3]))
    capsys.readouterr()
    assert main(["score", "run"]) == 0
    told = first(capsys.readouterr().out)
    assert told.endswith("; the run is not finished: 17 of 20 judgments")


@pytest.mark.parametrize("damaged", [{"samples": None}, {"selection": "all"}, {"selection": [1]}])
def test_settings_that_tell_no_number_are_no_reason_to_stop(
    damaged: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--judge", "heuristic", "--limit", "10") == 0
    write_manifest(Path("run"), read_manifest(Path("run")) | damaged)
    capsys.readouterr()
    assert main(["score", "run"]) == 0
    assert first(capsys.readouterr().out) == "heuristic on 10 trajectories of shop"
    assert main(["score", "run", "--checks"]) in (0, 1)


def test_of_several_judges_those_that_are_not_finished_are_named(
    server: LlmServer, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--judge", "simplified", "--judge", "insta", "--max-cost", "0.6")
    assert model(server, *WORDS, *words) == 1
    shown = capsys.readouterr().out
    told = first(shown)
    # The second run read ahead of what it judged; of what it did not, it knows no reward.
    table = shown.partition("Success  ")[2]
    judge, rule = (re.search(rf"^.*{name} .* (\d+)$", table, re.M) for name in ("gpt-4o", "based"))
    assert judge and rule and judge[1] == rule[1]
    assert "; not finished: simplified-axtree:gpt-4o (" in told
    assert told.endswith("insta:gpt-4o (0 of 20 judgments)")
    scored = score([said(1, True)], {key(1): label(1, True)}, rewards={})
    cut = [UnfinishedRun(judge=f"judge-{n}", judged=n, due=9) for n in range(9)]
    scored = scored.model_copy(update={"unfinished": tuple(cut)})
    assert "(0 of 9 judgments), judge-1" in on_one_line(summary(scored, width=60))
    assert notes(scored)[0].startswith("warning: not finished: judge-0 (0 of 9 judgments), ")


def test_a_whole_run_beside_one_that_was_not_begun_is_not_called_unfinished() -> None:
    scored = score([said(1, True)], {key(1): label(1, True)}, rewards={})
    cut = UnfinishedRun(judge="other", judged=0, due=9)
    told = finding(scored.model_copy(update={"unfinished": (cut,)}), "success")[0]
    assert told.endswith("; not finished: other (0 of 9 judgments)")
