"""What agents reach, from recorded folders: counted by hand."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import orjson
import pytest

from tests.commands import command
from tests.screens import on_one_line, one_screen
from trajudge.annotations import store as annotation_store
from trajudge.annotations.model import Label
from trajudge.environments.analysis.agent_results import results
from trajudge.environments.analysis.agent_tables import agent_notes, screen
from trajudge.environments.analysis.outcomes import RunOutcome, outcomes, read_outcomes
from trajudge.environments.model.case import Case, read_cases, write_cases
from trajudge.environments.model.config import Config
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.util.commands import OK, USAGE_ERROR
from trajudge.util.errors import UserError

main = command("env results")

# scenario, theme, noise, success
RUNS = (
    ("price", 0, 0, True),
    ("price", 1, 0, False),
    ("buy", 0, 0, True),
    ("buy", 1, 0, None),
    ("wish", 0, 3, True),
)


def case(scenario: str, theme: int, app: str = "shop") -> Case:
    return Case(
        config=Config(app=app, scenario=scenario, theme=theme),
        goal="",
        domain="consumer-transactions",
        vector=(1, 1, 1, 1, 1, 1, 2 if scenario == "buy" else 1),
        level=1,
        shortest=3,
    )


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Path, Path]:
    """A folder of made runs, and its cases."""
    cases, folder = tmp_path / "cases.jsonl", tmp_path / "runs"
    write_cases(cases, [case(scenario, theme) for scenario, theme, *_ in RUNS])
    trajectories, labels = [], []
    for scenario, theme, noise, success in RUNS:
        config = Config(app="shop", scenario=scenario, theme=theme, noise=noise)
        key = TrajectoryKey(benchmark="shop", agent="a", task_id=config.id)
        turns = {"n_steps": 4.0, "cost": 0.5}
        trajectories.append(Trajectory(key=key, raw_task_id=config.id, goal="g", telemetry=turns))
        labels.append(Label(key=key, raw_task_id=config.id, annotator="state", success=success))
    store.write(folder, trajectories)
    annotation_store.write(folder / "labels.jsonl", labels)
    return folder, cases


def test_success_is_counted_by_group_and_ambiguous_runs_are_left_out(
    recorded: tuple[Path, Path], tmp_path: Path
) -> None:
    folder, cases = recorded
    out = tmp_path / "results.json"
    assert main([str(folder), "--cases", str(cases), "--save", str(out)]) == OK
    content = orjson.loads(out.read_bytes())["a"]
    assert content["summary"]["runs"] == 5
    assert content["summary"]["ambiguous"] == 1
    # Scenarios weigh alike: price 1/2, buy 1/1, wish 1/1.
    assert content["summary"]["success"] == pytest.approx(2.5 / 3)
    assert (content["summary"]["turns"], content["summary"]["cost"]) == (4.0, 0.5)
    groups = {(row["by"], row["value"]): row for row in content["accuracy"]}
    assert (groups["risk", "2"]["runs"], groups["risk", "2"]["success"]) == (1, 1.0)
    assert (groups["risk", "1"]["runs"], groups["risk", "1"]["success"]) == (
        3,
        pytest.approx(2 / 3),
    )
    assert groups["level", "1"]["low"] < 0.75 < groups["level", "1"]["high"]


def test_the_success_of_all_agents_takes_one_screen(
    recorded: tuple[Path, Path],
    tmp_path: Path,
    width: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder, cases = recorded
    words = [str(folder), "--cases", str(cases), "--save", str(tmp_path / "results.json")]
    assert main(words) == OK
    shown = capsys.readouterr().out.replace(str(tmp_path), "DIR")
    lines = one_screen(shown, width)
    assert lines[0].startswith("1 agent, 5 runs; highest success: a, 83.3 [")
    assert "1 run is left out, for success is ambiguous" in lines
    assert any(line.startswith("a ") and line.endswith("$0.5000") for line in lines)
    sentence = on_one_line(shown)
    assert "success is the mean over applications of the mean over their scenarios" in sentence
    assert (
        "scenarios, levels of the axes and runs are resampled, applications stay fixed" in sentence
    )
    assert main([*words, "--full"]) == OK
    assert "How far each axis moves success" in capsys.readouterr().out
    row = {**orjson.loads((tmp_path / "results.json").read_bytes())["a"]["summary"], "turns": 1.0}
    many = {
        f"agent-{n}-of-many": {"summary": {**row, "agent": f"agent-{n}-of-many"}} for n in range(50)
    }
    told = [f"note {n}: " + "all runs ended alike " * 15 for n in range(50)]
    lines = one_screen(screen(many, told, rest="All: --full", width=width), width)
    assert any(line.endswith(" more: --full") for line in lines)


def test_an_agent_whose_runs_are_all_ambiguous_is_named(
    recorded: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, cases = recorded
    labels = annotation_store.load(folder / "labels.jsonl")
    unsure = [one.model_copy(update={"success": None}) for one in labels]
    annotation_store.write(folder / "labels.jsonl", unsure)
    assert main([str(folder), "--cases", str(cases), "--save", str(tmp_path / "r.json")]) == OK
    shown = on_one_line(capsys.readouterr().out)
    assert "note: a has no row: its runs, 5, are all ambiguous" in shown


def test_matched_pairs_tell_what_an_axis_moves(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    folder, cases = recorded
    out = tmp_path / "results.json"
    main([str(folder), "--cases", str(cases), "--save", str(out)])
    axes = {row["axis"]: row for row in orjson.loads(out.read_bytes())["a"]["axes"]}
    assert (axes["theme"]["pairs"], axes["theme"]["mad"]) == (1, 1.0)
    assert (axes["profile"]["pairs"], axes["profile"]["mad"]) == (0, None)


def test_two_agents_are_compared_on_the_configurations_of_both(
    recorded: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other agent always fails, on two of the configurations of ``a``: no half errs."""
    folder, cases = recorded
    other, keys = tmp_path / "other", []
    for scenario, theme in (("price", 0), ("buy", 0)):
        config = Config(app="shop", scenario=scenario, theme=theme)
        keys.append(TrajectoryKey(benchmark="shop", agent="b", task_id=config.id))
    store.write(other, [Trajectory(key=key, raw_task_id=key.task_id, goal="g") for key in keys])
    annotation_store.write(
        other / "labels.jsonl",
        [Label(key=k, raw_task_id=k.task_id, annotator="s", success=False) for k in keys],
    )
    out = tmp_path / "results.json"
    main([str(folder), str(other), "--cases", str(cases), "--save", str(out), "--full"])
    content = orjson.loads(out.read_bytes())
    assert content["b"]["regret"] == []
    assert [(row["other"], row["halves"]) for row in content["a"]["regret"]] == [
        ("b", "rollouts"),
        ("b", "scenarios"),
    ]
    for row in content["a"]["regret"]:
        assert (row["configurations"], row["gap"], row["wrong"], row["regret"]) == (2, 1, 0, 0)
    assert "Choosing an agent on half of the data" in capsys.readouterr().out


def test_an_interval_without_resampling_stands_beside(
    recorded: tuple[Path, Path], tmp_path: Path
) -> None:
    """Scenario rates 1/2, 1, 1: mean 5/6, standard error 1/6, t(0.975, 2) = 4.302653."""
    folder, cases = recorded
    out = tmp_path / "results.json"
    main([str(folder), "--cases", str(cases), "--save", str(out)])
    found = orjson.loads(out.read_bytes())["a"]["summary"]
    assert found["t_low"] == pytest.approx(5 / 6 - 4.302653 / 6)
    assert found["t_high"] == 1.0  # a share is at most that


def test_a_run_of_an_unknown_case_is_refused(recorded: tuple[Path, Path]) -> None:
    folder, _ = recorded
    with pytest.raises(UserError, match="no case is called shop"):
        outcomes(folder, {})


def test_a_run_with_other_noise_belongs_to_its_case(recorded: tuple[Path, Path]) -> None:
    """Cases that were generated with noise hold none without."""
    folder, cases = recorded
    quiet = {one.id: one for one in read_cases(cases)}
    noised = (one.config.model_copy(update={"noise": 17}) for one in quiet.values())
    noisy = [
        one.model_copy(update={"config": config})
        for one, config in zip(quiet.values(), noised, strict=True)
    ]
    found = outcomes(folder, {one.id: one for one in noisy})
    assert [run.case for run in found] == noisy
    assert [run.success for run in found] == [success for *_, success in RUNS]
    assert {run.case.id for run in outcomes(folder, quiet)} == set(quiet)


def made(agent: str, successes: dict[tuple[str, str], bool]) -> list[RunOutcome]:
    """One run of an agent for each application and scenario."""
    return [
        RunOutcome(
            TrajectoryKey(benchmark=app, agent=agent, task_id=f"{app}.{scenario}"),
            case(scenario, 0, app),
            success,
            4.0,
            None,
        )
        for (app, scenario), success in successes.items()
    ]


def test_a_run_without_a_label_is_not_taken_for_an_ambiguous_one(
    recorded: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, cases = recorded
    labels = folder / "labels.jsonl"
    labels.write_text("\n".join(labels.read_text().splitlines()[:-1]) + "\n")
    assert main([str(folder), "--cases", str(cases)]) == USAGE_ERROR
    assert "labels.jsonl: has no label of shop/a/shop.wish" in capsys.readouterr().err


def test_where_the_bootstrap_has_no_width_the_interval_is_wilsons() -> None:
    """Two applications of eight scenarios, one always and one never successful."""
    from scipy.stats import beta

    runs = made("a", {("shop", f"s{n}"): True for n in range(8)})
    runs += made("a", {("helpdesk", f"s{n}"): False for n in range(8)})
    found = results(runs, seed=0)["a"]["summary"]
    assert (found["success"], found["interval"]) == (0.5, "Wilson")
    # One run a scenario: the exact binomial interval of 8 of 16.
    low, high = beta.ppf([0.025, 0.975], [8, 9], [9, 8])
    assert (found["low"], found["high"]) == (pytest.approx(low), pytest.approx(high))
    assert (found["t_low"], found["t_high"]) == (None, None)
    assert found["notes"] == [
        "a: in every application all runs ended alike, so the bootstrap has no width; "
        "Wilson's over scenarios instead"
    ]


def test_below_eight_scenarios_an_application_the_interval_is_wilsons() -> None:
    outcomes = {("shop", f"s{n}"): n < 3 for n in range(8)}
    assert results(made("a", outcomes), seed=0)["a"]["summary"]["interval"] == (
        "hierarchical bootstrap"
    )
    del outcomes["shop", "s7"]
    assert results(made("a", outcomes), seed=0)["a"]["summary"]["interval"] == "Wilson"


def test_an_interval_covers_where_applications_have_one_scenario() -> None:
    """Scenarios succeed with probabilities that are uniform, three runs each: the truth is 1/2. The
    bootstrap, which sees no scenario vary there, held it in 58 of 100 suites."""
    rng = np.random.default_rng(0)
    suites = 60
    held = 0
    for _ in range(suites):
        runs = []
        for app in ("shop", "helpdesk", "press", "console", "toolbox"):
            for theme, success in enumerate(rng.random(3) < rng.random()):
                (run,) = made("a", {(app, "only"): bool(success)})
                runs.append(run._replace(case=case("only", theme, app)))
        found = results(runs, seed=0)["a"]["summary"]
        held += found["low"] <= 0.5 <= found["high"]
    assert held >= 0.9 * suites
    assert found["notes"] == [
        "a: an application has few scenarios, whose bootstrap is too narrow; "
        "Wilson's over scenarios instead"
    ]


def test_a_sentence_on_several_agents_is_said_once() -> None:
    runs = [
        run
        for agent in ("b", "a")
        for run in made(agent, {("shop", "price"): True, ("shop", "buy"): True})
    ]
    (note,) = agent_notes(results(runs, seed=0))
    assert note.startswith("a, b: an application has few scenarios")


def test_one_scenario_has_no_interval_and_the_reason_is_told() -> None:
    content = results(made("a", {("shop", "price"): True}), seed=0)
    found = content["a"]["summary"]
    assert (found["low"], found["high"], found["interval"]) == (None, None, None)
    assert found["notes"] == [
        "a: an application has few scenarios, whose bootstrap is too narrow; no interval, "
        "for there is one scenario"
    ]
    lines = screen(content, found["notes"], rest="", width=100).splitlines()
    assert lines[0] == "1 agent, 1 run; highest success: a, 100.0 %"


def test_agents_that_tie_are_all_named() -> None:
    runs = [
        run
        for agent, success in (("a", True), ("b", False), ("c", True))
        for run in made(agent, {("shop", "price"): success, ("shop", "buy"): success})
    ]
    lines = screen(results(runs, seed=0), [], rest="", width=100).splitlines()
    assert lines[0] == "3 agents, 6 runs; 2 agents tie at the highest success, 100.0 %: a, c"


def test_a_folder_that_is_given_twice_is_refused(
    recorded: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, cases = recorded
    again = folder.parent / "link"
    again.symlink_to(folder)
    words = [str(folder), str(again), "--cases", str(cases), "--save", str(tmp_path / "r.json")]
    assert main(words) == USAGE_ERROR
    told = f"{again}: is the folder {folder}, which is given twice: give each folder once"
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("name", ["file.txt", "nowhere", "empty"])
def test_what_is_no_recording_is_said_to_be_none(
    recorded: tuple[Path, Path], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file.txt").write_text("x")
    (tmp_path / "empty").mkdir()
    words = [str(tmp_path / name), "--cases", str(recorded[1]), "--save", str(tmp_path / "r.json")]
    assert main(words) == USAGE_ERROR
    told = f"{tmp_path / name}: has no labels.jsonl: name a folder that  trajudge env record  wrote"
    assert told in capsys.readouterr().err


def test_a_run_that_comes_twice_is_refused(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    folder, cases = recorded
    trajectories = [entry for entry in store.read(folder) if isinstance(entry, Trajectory)]
    other, double = tmp_path / "other", tmp_path / "double"
    store.write(other, trajectories[:1])
    shutil.copy(folder / "labels.jsonl", other)
    with pytest.raises(UserError, match=f"{other}: the run .* is in {folder} as well"):
        read_outcomes([folder, other], cases)
    store.write(double, trajectories[:1] * 2)
    shutil.copy(folder / "labels.jsonl", double)
    with pytest.raises(UserError, match=f"{double}: holds the run .* twice"):
        read_outcomes([double], cases)


def test_a_case_that_comes_twice_in_a_file_is_refused(tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    write_cases(cases, [case("price", 0), case("buy", 0), case("price", 0)])
    with pytest.raises(UserError, match=f"{cases}, line 3: the case .* is on line 1 already"):
        read_cases(cases)


def test_a_goal_may_hold_what_unicode_calls_the_end_of_a_line(tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    written = [
        case("price", 0).model_copy(update={"goal": "a\u2028b\u2029c\x85d"}),
        case("buy", 0),
    ]
    write_cases(cases, written)
    assert read_cases(cases) == written
