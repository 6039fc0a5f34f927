"""The last gate lets pass what the oracle solves in the browser, and says why it does not."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.commands import command
from tests.environments.cases import agent, job, sound
from trajudge.environments.agents.policy import RETRIES, Policy
from trajudge.environments.agents.script import Behaviour, Intent, Say
from trajudge.environments.checks.guessing import GuessingFloor
from trajudge.environments.chromium import AgentObservation
from trajudge.environments.chromium.axtree import Element
from trajudge.environments.model.case import Case, read_cases, write_cases
from trajudge.environments.model.plan import enter, press
from trajudge.environments.recording import validation
from trajudge.environments.recording.recorder import Recorder
from trajudge.environments.recording.validation import (
    CHECKED,
    CHECKS,
    Check,
    floors_table,
    validate,
    validate_cases,
)
from trajudge.trajectories.model import Observation
from trajudge.util.commands import FAILURES, OK
from trajudge.util.errors import UserError

main = command("env validate")

ORACLE = agent(Behaviour.ORACLE)


def broken_case() -> Case:
    """Far from what was planned: its shortest way is said to be one action."""
    return sound("spent", profile=1).model_copy(update={"shortest": -3})


@pytest.mark.browser
def test_a_sound_case_passes_at_both_viewports(recorder: Recorder) -> None:
    assert len({check.viewport for check in CHECKS}) == 2
    assert {bool(check.noise) for check in CHECKS} == {True, False}
    assert validate(recorder, job(sound("unwish"), ORACLE)) is None


@pytest.mark.browser
def test_a_reject_comes_with_its_step_tree_and_screenshot(recorder: Recorder) -> None:
    broken = validate(recorder, job(broken_case(), ORACLE), (Check((1024, 768), 0),))
    assert broken is not None
    assert broken.reason == "too long"
    assert broken.screenshot.startswith(b"\x89PNG")
    assert "RootWebArea" in broken.axtree


@pytest.mark.parametrize(
    ("shortest", "steps", "reason"),
    [(4, 15, None), (4, 16, "too long"), (30, 50, None), (30, 51, "too long")],
)
def test_an_oracle_takes_three_times_what_was_planned_at_most(
    shortest: int, steps: int, reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And three actions more, and never more than fifty in all; the last message is no action."""
    page = SimpleNamespace(page_error="", axtree="", screenshot=None)
    taken = [SimpleNamespace(observation=page, index=at) for at in range(steps + 1)]
    labels = SimpleNamespace(success=True, side_effect=False)
    run = SimpleNamespace(
        finding=SimpleNamespace(labels=labels),
        trajectory=SimpleNamespace(steps=taken),
        facts={"faults": []},
    )
    monkeypatch.setattr(validation, "Scripted", lambda *_: SimpleNamespace(stuck=""))
    monkeypatch.setattr(validation, "play", lambda *words, **_: [words[-1](None), run][1])
    planned = job(sound("unwish").model_copy(update={"shortest": shortest}), ORACLE)
    recorder: Any = SimpleNamespace(server=None, browser=None, seed=0)
    found = validate(recorder, planned)
    assert (found and found.reason) == reason


@pytest.mark.browser
def test_the_command_keeps_what_passed_and_goes_on_where_it_was(
    chromium: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = sound("unwish"), broken_case()
    configs, out = tmp_path / "cases.jsonl", tmp_path / "out"
    write_cases(configs, [good, bad])
    words = ["--cases", str(configs), "--out", str(out)]
    assert main(words) == FAILURES
    assert read_cases(out / "cases.jsonl") == [good]
    (reject,) = map(json.loads, (out / "rejects.jsonl").read_text().splitlines())
    assert (reject["case"], reject["reason"]) == (bad.id, "too long")
    assert (out / "rejects" / f"{bad.id}.png").exists()
    assert json.loads((out / "summary.json").read_text())["shop"]["passed"] == 1
    checked = (out / CHECKED).read_bytes()
    with (out / CHECKED).open("ab") as file:
        file.write(b'["cut o')
    assert main(words) == FAILURES
    assert (out / CHECKED).read_bytes() == checked
    write_cases(configs, [good])
    assert main(words) == OK
    assert "shop" in capsys.readouterr().out


# --- a step has three tries -----------------------------------------------------------------------


class _Words(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return key


def view(error: str | None = None, tree: str = "") -> AgentObservation:
    elements = [
        Element(bid="1", role="textbox", name="Street"),
        Element(bid="2", role="button", name="Save"),
    ]
    return AgentObservation(Observation(url="u", axtree=tree, page_error=error), elements, "")


PLAN: list[Intent] = [enter("Street", "Elm", "x"), press("Save", "y"), Say(Behaviour.ORACLE)]


def acts(policy: Policy, *views: AgentObservation) -> list[str]:
    found = (policy.next(seen) for seen in views)
    return ["say" if isinstance(act, Say) else act.text for act in found]


def test_a_step_that_fails_is_tried_three_times() -> None:
    views = [view(), *[view("Error: covered")] * RETRIES]
    done = acts(Policy(PLAN, _Words()), *views)
    assert done == ["fill('1', 'Elm')"] * RETRIES + ["click('2')"]


def test_a_form_that_was_refused_is_filled_in_again() -> None:
    alert = "\t[9] alert 'Please try again.'"
    done = acts(Policy(PLAN, _Words()), view(), view(), view(tree=alert), view(), view())
    assert done == ["fill('1', 'Elm')", "click('2')"] * 2 + ["say"]


def test_a_form_whose_button_failed_first_is_filled_in_again_too() -> None:
    alert = "\t[9] alert 'Please try again.'"
    failed = view("Error: covered")
    done = acts(Policy(PLAN, _Words()), view(), view(), failed, view(tree=alert), view(), view())
    filled, sent = "fill('1', 'Elm')", "click('2')"
    assert done == [filled, sent, sent, filled, sent, "say"]


def validated(case: Case, out: Path, *, thorough: bool = False, seed: int = 0) -> object:
    return validate_cases([case], out, thorough=thorough, seed=seed, workers=1)[case.id]


def test_what_other_checks_found_says_nothing_of_these(tmp_path: Path) -> None:
    """A folder of quick checks passed for one of thorough ones."""
    case = sound("unwish")
    line = json.dumps([case.id, None]) + "\n"
    (tmp_path / CHECKED).write_text(json.dumps({"thorough": False, "seed": 3}) + "\n" + line)
    assert validated(case, tmp_path, seed=3) is None
    for thorough, seed in ((True, 3), (False, 4)):
        with pytest.raises(UserError, match=r"checks that were not thorough and seed 3: choose"):
            validated(case, tmp_path, thorough=thorough, seed=seed)
    (tmp_path / CHECKED).write_text(line)
    with pytest.raises(UserError, match=r"checked\.jsonl, line 1: is damaged"):
        validated(case, tmp_path)


@pytest.mark.parametrize("line", ["{", "3", "[1, null]", '["a", 7]', '["a"]', "HEADER"])
def test_a_damaged_line_of_what_was_checked_is_named(line: str, tmp_path: Path) -> None:
    case = sound("unwish")
    header = json.dumps({"thorough": False, "seed": 0})
    (tmp_path / CHECKED).write_text(f"{header}\n{line.replace('HEADER', header)}\n")
    with pytest.raises(UserError, match=r"checked\.jsonl, line 2: is damaged: remove the line"):
        validated(case, tmp_path)


def test_a_scenario_in_which_more_than_15_of_100_guesses_hit_is_marked() -> None:
    floors = {
        "a": GuessingFloor(0.16, 0.1),
        "b": GuessingFloor(0.1, 0.15),
        "c": GuessingFloor(0, 0),
    }
    shown = floors_table(floors)
    assert shown.head[-1] == "above 15"
    assert shown.rows == [("a", "16.0", "10.0", "yes"), ("b", "10.0", "15.0", "")]
