"""What a reader is told of the judges."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import judges as main
from tests.installed import write_metadata
from tests.judges.runs import png, seen_run
from tests.screens import one_screen
from tests.tables import mistakes
from trajudge.judges.registry import JUDGES
from trajudge.judges.show import described
from trajudge.util.errors import UserError


def test_every_judge_has_a_line_on_one_screen(
    width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list"]) == 0
    lines = one_screen(capsys.readouterr().out, width)
    asking = sum(entry.needs_model for entry in JUDGES.values())
    assert lines[0] == f"{len(JUDGES)} judges, of which {asking} ask a model"
    names = [line.split()[0] for line in lines[3:-3] if line[:1].strip()]
    assert names == list(JUDGES)
    calls = {line.split()[0]: line[29:35].strip() for line in lines[3:-3]}
    assert (calls["webjudge"], calls["aer-c"], calls["panel"]) == ("T + 2", "2", "…")


@pytest.mark.parametrize("name", JUDGES)
def test_a_judge_is_shown_on_one_screen(
    name: str, width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", name]) == 0
    lines = one_screen(capsys.readouterr().out, width)
    assert lines[0].startswith(f"# {name}")
    assert any(line.startswith("prompts ") for line in lines) == JUDGES[name].needs_model
    assert "--full" in lines[-1]


def test_every_judge_has_a_line_with_all_that_it_sees(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--full"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["judge", "sees", "calls", "answers", "paper"]
    assert [line[0] for line in lines[1:]] == list(JUDGES)
    assert all(len(line) == 5 for line in lines)


def test_judges_of_packages_are_listed_without_running_their_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_metadata(tmp_path, "theirs", "[trajudge.judges]\ntalkative = there_is_no_such\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["list"]) == 0
    assert "talkative" in capsys.readouterr().out
    assert main(["list", "--full"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.split("\t") == ["talkative", "", "", "a judge of the package theirs", ""]


def test_judges_that_share_their_prompts_have_cards_of_their_own() -> None:
    captions, vision = (described(name, {}, seen_run()) for name in ("aer-c", "aer-v"))
    assert "A caption that is empty" in captions
    assert "A caption that is empty" not in vision
    assert "The wording is our own" in captions
    assert "The wording is our own" in vision


@pytest.mark.parametrize("name", JUDGES)
def test_every_judge_is_described_with_its_options(name: str) -> None:
    text = described(name, {}, seen_run())
    assert text.startswith(f"# {name}")
    assert JUDGES[name].summary in text
    assert f"name: {name}\n" in text.partition("## Card")[2]
    assert ("## Prompts for shop/scripted/shop.1" in text) == JUDGES[name].needs_model


def test_defences_are_told_and_shown_in_the_prompts() -> None:
    text = described("simplified", {"datamark": "true", "hide": "answer"}, seen_run())
    assert text.startswith("# simplified-axtree-no-answer-datamark\n")
    assert "\nhide = ['answer']\ndatamark = True\nof every judge, against" in text
    assert "# Marked text" in text
    assert "canary" in described("heuristic", {}, seen_run())


def test_what_a_judge_needs_is_told() -> None:
    text = described("webvoyager", {"screenshots": "3"}, seen_run())
    assert "## Needs\n\nscreenshots: last 3\ntrees: none\n" in text
    assert "skipped without: screenshot\n" in text


@pytest.mark.parametrize("name", [name for name in JUDGES if JUDGES[name].needs_model])
def test_pictures_of_the_goal_are_shown_or_the_card_says_that_they_are_not(name: str) -> None:
    options = {"representation": "both"} if name == "simplified" else {}
    run = seen_run().model_copy(update={"goal_images": (png(4, 4),)})
    text = described(name, options, run)
    says_not = "Pictures that belong to the goal are not shown" in text
    assert says_not != ("[image/png, 4 x 4 pixels]" in text)


def test_the_first_prompt_of_every_stage_is_shown() -> None:
    text = described("webjudge", {"variant": "online-mind2web"}, seen_run(5))
    titles = [line for line in text.splitlines() if line.startswith("### ")]
    assert titles == ["### key_points", "### screenshot (and 4 more like it)", "### verdict"]
    assert "variant = online-mind2web" in text
    assert text.count("[image/png, 8 x 8 pixels]") == 2  # scored, and shown for the verdict


def test_the_command_shows_a_judge_on_the_bundled_sample(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["show", "aer-v", "--judge-option", "variant=original", "--full"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("# aer-v-original\n")
    assert "## Prompts for shop/" in shown
    assert "Agent Eval and Refine" in shown


def test_a_judge_of_the_users_without_words_is_shown_without_empty_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    file.write_text("needs_model = False\nasync def judge(trajectory, ask): ...\n")
    for full in ([], ["--full"]):
        assert main(["show", str(file), *full]) == 0
        shown = capsys.readouterr().out
        assert "first line of its docstring" in shown and "\n\n\n" not in shown
        assert "none" in shown and "card" not in shown and not shown.endswith("\n\n")


@mistakes(
    """
    nobody => no such judge
    aer-v --judge-option variant=mine => variant = 'mine'
    aer-v --judge-option variant => --judge-option variant: write it as NAME=VALUE
    aer-v --judge-option variant=a --judge-option variant=b => variant is given twice, as 'a' and
    aer-v --judge-option colour=red => no option 'colour'
    """
)
def test_mistakes_are_one_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_an_unknown_option_is_the_users_mistake() -> None:
    with pytest.raises(UserError, match="no option"):
        described("webjudge", {"colour": "red"}, seen_run())
