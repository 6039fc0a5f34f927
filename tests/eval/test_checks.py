"""``trajudge score --checks``: one finding for each thing that speaks against comparing a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.eval.cases import call, failed, key, label, said
from tests.eval.folders import write_run
from tests.eval.judge_command import model
from tests.eval.judge_command import run as judge_sample
from tests.llm_server import LlmServer
from trajudge.eval.checks import RunCheck, check_run, checks_screen
from trajudge.eval.cli import main as trajudge
from trajudge.eval.runs.plan import shown_options
from trajudge.eval.store.run_folder import (
    JUDGMENTS,
    read_manifest,
    write_manifest,
    write_rewards,
    write_unreadable,
)
from trajudge.judges.model import Status
from trajudge.judges.registry import JUDGES, find_judge, make_judge, versions_of
from trajudge.judges.training import key_hash
from trajudge.trajectories.model import Unreadable
from trajudge.util.errors import UserError
from trajudge.util.terminal import LINES

TASKS = range(40)
LABELS = [label(task, task % 2 == 0) for task in TASKS]
SAID = [said(task, task % 2 == 0) for task in TASKS]


def found(check: RunCheck) -> set[tuple[str, str]]:
    return {(finding.severity, finding.name) for finding in check.findings}


def changed(folder: Path, **fields: Any) -> Path:
    write_manifest(folder, read_manifest(folder) | fields)
    return folder


def test_a_whole_run_may_be_compared(tmp_path: Path) -> None:
    check = check_run(write_run(tmp_path / "run", SAID, LABELS))
    assert check.comparable
    assert found(check) == {
        ("note", "own_judge"),
        ("note", "no_revision"),
        ("note", "labels_not_checked"),
    }


@pytest.mark.parametrize(
    ("judgments", "manifest", "severity", "name"),
    [
        (SAID[:39], {"selection": {"trajectories": 40}}, "error", "unfinished"),
        (SAID, {"samples": 2}, "error", "unfinished"),
        ([*SAID, SAID[0]], {}, "error", "repeated"),
        ([*SAID[:38], *(failed(t, Status.REFUSED) for t in (38, 39))], {}, "warning", "failed"),
        ([*SAID[:37], *(failed(t, Status.REFUSED) for t in TASKS[37:])], {}, "error", "failed"),
        ([*SAID[:10], *(failed(t, Status.SKIPPED) for t in TASKS[10:])], {}, "warning", "skipped"),
        ([failed(t, Status.SKIPPED) for t in TASKS], {}, "error", "skipped"),
        ([said(t, True) for t in TASKS], {}, "note", "constant"),
        ([said(t, True) for t in range(60)], {}, "note", "unlabelled"),
        ([said(t, True) for t in range(50, 60)], {}, "error", "unlabelled"),
        (
            [*SAID, said(50, True, judge="other")],
            {},
            "error",
            "mixed_judges",
        ),
        ([*SAID, said(0, True, sample=1)], {"samples": 1}, "error", "mixed_samples"),
        (SAID, {"training_keys": [key_hash(key(t)) for t in TASKS[:5]]}, "warning", "contaminated"),
        (SAID, {"training_keys": [key_hash(key(t)) for t in TASKS]}, "error", "contaminated"),
        (SAID, {"published": True}, "note", "published"),
        (SAID, {"data": "memory:0123456789abcdef"}, "warning", "data_in_memory"),
        (SAID, {"loader_digest": "0" * 64}, "warning", "own_loader"),
        (SAID, {"data": "agentrewardbench"}, "warning", "no_revision"),
        (SAID, {"data": "agentrewardbench"}, "note", "source"),
        (SAID, {"data": "cuaverifierbench:x", "revision": "0" * 40}, "error", "other_revision"),
        (SAID, {"selection": {"limit": 40}}, "warning", "selection"),
        (SAID, {"windows": {"m": {"tokens": 9, "source": "guess"}}}, "warning", "guessed_window"),
    ],
)
def test_each_finding(
    judgments: list[Any], manifest: dict[str, Any], severity: str, name: str, tmp_path: Path
) -> None:
    check = check_run(write_run(tmp_path / "run", judgments, LABELS, **manifest))
    assert (severity, name) in found(check)
    assert check.comparable == (severity != "error" or ("error", name) not in found(check))


def test_a_run_in_which_every_judgment_failed_has_its_labels(tmp_path: Path) -> None:
    judgments = [failed(task, Status.REFUSED) for task in TASKS]
    check = check_run(write_run(tmp_path / "run", judgments, LABELS))
    assert ("error", "failed") in found(check)
    assert "unlabelled" not in {finding.name for finding in check.findings}


def test_a_line_that_was_cut_off_is_an_error(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", SAID, LABELS)
    content = (run / JUDGMENTS).read_bytes()
    (run / JUDGMENTS).write_bytes(content[:-20])
    assert {("error", "torn"), ("error", "unfinished")} <= found(check_run(run))


def test_a_judgment_of_nothing_that_was_read_is_an_error(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", SAID, LABELS)
    more = said(77, True).model_dump_json(exclude={"record"})
    with (run / JUDGMENTS).open("a") as file:
        file.write(more + "\n")
    assert ("error", "strangers") in found(check_run(run))


def texts(check: RunCheck, name: str) -> str:
    return " ".join(finding.text for finding in check.findings if finding.name == name)


def test_a_trajectory_that_could_not_be_read_is_no_stranger(tmp_path: Path) -> None:
    """Its judgment is a skipped one and it has no reward; what a judge skipped was read."""
    skipped = [failed(t, Status.SKIPPED) for t in (38, 39)]
    run = write_run(tmp_path / "run", [*SAID[:38], *skipped], LABELS)
    write_rewards(run, {judgment.key: None for judgment in [*SAID[:38], skipped[1]]})
    check = check_run(run)
    assert check.comparable
    assert texts(check, "unread") == (
        "1 of 40 judgments skipped, because the trajectory cannot be read, which counts as not "
        "accepted; the first is because: mend it, then start the command that made the "
        "run again, with trajudge judge … --retry-failed"
    )
    assert texts(check, "skipped").startswith("1 of 40 judgments skipped, because the trajectory l")


def test_records_of_the_data_that_could_not_be_read_are_counted(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", SAID, LABELS)
    write_unreadable(run, [Unreadable(source="data:3", reason="no JSON")])
    assert texts(check_run(run), "unread").startswith(
        "judged without 1 record that cannot be read; the first is data:3: no JSON"
    )


def test_two_endpoints_or_settings_of_one_model_are_an_error(tmp_path: Path) -> None:
    calls = [said(t, True, calls=(call(),)) for t in TASKS]
    entry = {"model": "m", "endpoint": "a", "parameters": {"temperature": 0}}
    run = write_run(tmp_path / "run", calls, LABELS, sent=[entry, entry | {"endpoint": "b"}])
    assert ("error", "mixed_endpoints") in found(check_run(run))
    changed(run, sent=[entry, entry | {"parameters": {"temperature": 1}}])
    assert ("error", "mixed_parameters") in found(check_run(run))
    changed(run, sent=[entry, entry | {"model": "captioner", "parameters": {}}])
    assert not found(check_run(run)) & {("error", "mixed_parameters"), ("error", "mixed_endpoints")}


def test_stages_of_one_judge_may_have_settings_of_their_own(tmp_path: Path) -> None:
    calls = [said(t, True, calls=(call(stage="caption"), call())) for t in TASKS]
    entry = {"model": "m", "endpoint": "a", "parameters": {"max_tokens": 10}}
    sent = [entry, entry | {"parameters": {"max_tokens": 99}}]
    assert check_run(write_run(tmp_path / "run", calls, LABELS, sent=sent)).comparable


def described(name: str, **options: Any) -> dict[str, Any]:
    """What a run's manifest says of a judge with these options."""
    judge = make_judge(name, options)[1]
    card = find_judge(name).card
    assert card
    return {
        "card": card.model_dump(mode="json"),
        "judge_versions": versions_of(name, options),
        "prompt_hash": getattr(judge, "prompt_hash", None),
        "options": shown_options(name, options),
    }


def makeable(name: str) -> bool:
    """Whether the judge can be made without naming members or a file."""
    if find_judge(name).composed:
        return False
    try:
        make_judge(name)
    except UserError:
        return False
    return True


@pytest.mark.parametrize("name", [name for name in JUDGES if makeable(name)])
def test_prompts_are_held_to_the_card_of_every_judge(name: str, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", SAID, LABELS, **described(name))
    about_prompts = {"other_prompts", "other_version", "not_made_again", "own_judge"}
    assert not {finding.name for finding in check_run(run).findings} & about_prompts
    changed(run, prompt_hash="0" * 64)
    assert ("error", "other_prompts") in found(check_run(run))
    versions = {card: version + 1 for card, version in versions_of(name, {}).items()}
    changed(run, judge_versions=versions)
    check = check_run(run)
    assert ("warning", "other_version") in found(check)
    assert "other_prompts" not in {finding.name for finding in check.findings}


def test_prompts_of_a_panels_members_are_held_to_their_cards(tmp_path: Path) -> None:
    members = [{"name": "aer-c", "model": "gpt-4o"}, {"name": "heuristic"}]
    settings = described("panel", of={"members": members})
    run = write_run(tmp_path / "run", SAID, LABELS, **settings)
    assert check_run(run).comparable
    changed(run, judge_versions=settings["judge_versions"] | {"aer-c": 1})
    assert ("warning", "other_version") in found(check_run(run))


def test_options_that_this_release_does_not_know_are_an_error(tmp_path: Path) -> None:
    settings = described("simplified") | {"options": {"nonsense": 1}}
    run = write_run(tmp_path / "run", SAID, LABELS, **settings)
    assert ("error", "not_made_again") in found(check_run(run))
    for name, told in (("cascade", {}), ("telemetry", {"model": "absent.json"})):
        changed(run, judge_versions={name: 1}, options=told)
        assert "not_made_again" in {finding.name for finding in check_run(run).findings}


def test_labels_are_held_to_the_annotations_and_the_run_to_what_they_label(
    tmp_path: Path,
) -> None:
    more = [*LABELS, label(90, True), label(91, None), label(1, True, benchmark="mine")]
    source = write_run(tmp_path / "source", SAID, more) / "labels.jsonl"
    run = write_run(tmp_path / "run", SAID, LABELS)
    check = check_run(run, annotations=f"trajudge:{source}")
    (dropped,) = (finding for finding in check.findings if finding.name == "dropped")
    assert dropped.severity == "warning"
    assert dropped.text.startswith("1 of 41 labelled trajectories")
    turned = write_run(tmp_path / "turned", SAID, [label(0, False), *LABELS[1:]])
    check = check_run(turned, annotations=f"trajudge:{source}")
    assert ("error", "other_labels") in found(check)


@pytest.mark.usefixtures("own_folder")
def test_a_run_of_the_command_may_be_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert judge_sample("--judge", "heuristic") == 0
    capsys.readouterr()
    assert trajudge(["score", "run", "--checks"]) == 0
    assert capsys.readouterr().out == "run: heuristic, 130 judgments: may be compared (ok)\n"
    lines = Path("run/labels.jsonl").read_text().splitlines()
    place = next(n for n, line in enumerate(lines) if '"success":true' in line)
    lines[place] = lines[place].replace('"success":true', '"success":false')
    Path("run/labels.jsonl").write_text("\n".join(lines) + "\n")
    assert trajudge(["score", "run", "--checks"]) == 1
    assert "error: other_labels: 1 of 130 labels" in capsys.readouterr().out


@pytest.mark.usefixtures("own_folder")
def test_a_run_with_a_model_may_be_compared_and_says_what_weakens_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with LlmServer() as server:
        assert model(server, "--limit", "3") == 0
    capsys.readouterr()
    assert trajudge(["score", "run", "--checks", "--json"]) == 0
    (check,) = json.loads(capsys.readouterr().out)
    assert check["comparable"] is True
    assert {"selection", "dropped"} <= {finding["name"] for finding in check["findings"]}
    assert not any(finding["severity"] == "error" for finding in check["findings"])


def test_many_findings_fit_on_one_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, screen_lines: Callable[[], list[str]]
) -> None:
    monkeypatch.chdir(tmp_path)
    runs = [
        str(write_run(Path(f"run{n}"), [*SAID[:30], SAID[0]], LABELS, samples=2)) for n in range(20)
    ]
    assert trajudge(["score", *runs, "--checks"]) == 1
    lines = screen_lines()
    assert lines[0].startswith("run0: judge, 31 judgments: may not be compared (")
    assert lines[-1].endswith("more lines: --json")


def test_one_line_that_does_not_fit_is_one() -> None:
    check = RunCheck(run="run", judge="judge", judgments=1, findings=())
    assert checks_screen([check] * LINES).endswith("\nand 1 more line: --json\n")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "is not the folder of a run: it has no manifest.json"),
        ({"manifest.json": "["}, "is not JSON"),
        ({"manifest.json": "{}", "judgments.jsonl": ""}, "holds no judgment"),
        ({"manifest.json": "{}", "judgments.jsonl": "{}\n"}, "line 1"),
    ],
)
def test_what_is_no_run_is_bad_input(
    files: dict[str, str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    assert trajudge(["score", str(tmp_path), "--checks"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
