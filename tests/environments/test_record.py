"""The command: what it records loads, is judged, goes on where it was, and refuses what is not its
own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.commands import command as command_of
from tests.environments.agents.solver import solving
from tests.environments.cases import agent, sound
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer, always
from tests.screens import on_one_line
from tests.tables import mistakes
from trajudge.annotations import store as annotation_store
from trajudge.environments.agents.protocol import Job
from trajudge.environments.agents.script import AGENTS, LADDER, RESILIENT, Behaviour
from trajudge.environments.model.case import read_cases, write_cases
from trajudge.environments.model.config import Config
from trajudge.environments.model.variant import MARK, RunVariant
from trajudge.environments.recording.campaign import (
    ArmResult,
    CampaignResult,
    RecordingPlan,
    arms_screen,
    chosen,
    jobs_for,
    record,
    recording_screen,
)
from trajudge.environments.recording.journal import COUNTED, Journal
from trajudge.environments.recording.recorder import run_name
from trajudge.eval.judge import main as judge
from trajudge.rules.verified.network import load_trace
from trajudge.rules.verified.tasks import load_tasks
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory
from trajudge.util.commands import FAILURES, INTERRUPTED, OK, USAGE_ERROR
from trajudge.util.errors import UserError

main = command_of("env record")

ROOT = Path(__file__).parents[2]
BUSY = 1200.0  # seconds that a recording may take on a machine that is busy with much else
QUICK = ("oracle", "does-nothing", "instructs-the-judge")
# The command, which ends itself as a user ends it: Ctrl-C in a terminal reaches the whole group.
ENDED = """
import os, signal, sys
from trajudge.environments.recording.journal import COUNTED, Journal
from trajudge.eval.cli import main

keep, how = Journal.add, signal.Signals[sys.argv[1]]

def keep_and_end(journal, name, recorded):
    keep(journal, name, recorded)
    os.killpg(0, how) if how == signal.SIGINT else os.kill(os.getpid(), how)

Journal.add = keep_and_end
sys.exit(main(sys.argv[2:]))
"""


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cases") / "cases.jsonl"
    write_cases(path, [sound("unwish"), sound("spent", profile=2, theme=3, ui=2)])
    return path


@pytest.fixture(scope="module")
def recorded(chromium: Path, cases: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording that was never interrupted."""
    out = tmp_path_factory.mktemp("recorded") / "out"
    record(RecordingPlan(cases, chosen(QUICK), seed=1), out)
    return out


def runs_of(folder: Path) -> list[Trajectory]:
    """The trajectories, all of them readable."""
    runs = list(store.read(folder))
    assert all(isinstance(run, Trajectory) for run in runs)
    return [run for run in runs if isinstance(run, Trajectory)]


def text_of(folder: Path) -> tuple[bytes, ...]:
    """What the same seed makes the same. Unpacked: a compressed file may hold its time."""
    facts = [json.loads(line) for line in (folder / "facts.jsonl").read_text().splitlines()]
    keys = {fact["code_key"] for fact in facts}
    assert len(keys) == len(facts)  # every run has a key of its own
    runs = b"".join(
        run.model_dump_json(
            exclude={"steps": {"__all__": {"observation": {"screenshot"}}}}
        ).encode()
        for run in runs_of(folder)
    )
    return (runs, (folder / "labels.jsonl").read_bytes(), json.dumps(facts).encode())


def command(cases: Path, out: Path, *more: str) -> list[str]:
    agents = ["--agent", *QUICK, "--seed", "1"]
    return [
        sys.executable, "-m", "trajudge.eval.cli", "env", "record",
        "--cases", str(cases), "--out", str(out), *agents, *more,
    ]  # fmt: skip


def start(words: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True, env={**os.environ, "PYTHONHASHSEED": "7"},
    )  # fmt: skip


def runs_in(out: Path) -> int:
    return len((out / "runs.jsonl").read_bytes().splitlines()) - 1


def ended_at_work(words: Sequence[str], how: signal.Signals) -> str:
    """Carry out a command that gets the signal when its first run is kept; what it said."""
    process = start([sys.executable, "-c", ENDED, how.name, *words[3:]])
    _, errors = process.communicate(timeout=BUSY)
    assert process.returncode == (INTERRUPTED if how == signal.SIGINT else -how), errors
    return errors


@pytest.mark.browser
def test_a_recording_loads_with_its_labels_pictures_and_traces(recorded: Path) -> None:
    runs = {run.key: run for run in runs_of(recorded)}
    labels = {label.key: label for label in annotation_store.load(recorded / "labels.jsonl")}
    assert set(runs) == set(labels)
    assert len(runs) == 6
    for key, run in runs.items():
        assert all(step.observation.axtree for step in run.steps)
        picture = run.steps[0].observation.screenshot
        assert picture and picture.path and picture.path.read_bytes().startswith(b"\x89PNG")
        assert labels[key].success is (AGENTS[key.agent] is Behaviour.ORACLE)
        job = Job(config=_config(run.raw_task_id), agent=key.agent, shortest=1)
        trace = load_trace(recorded / "traces" / f"{run_name(job)}.har")
        assert len(list(trace.events)) >= 1


@pytest.mark.browser
def test_a_recording_is_judged(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--judge", "heuristic", "--data", f"trajudge:{recorded}"]
    code = judge([*words, "--out", str(tmp_path / "run")])
    assert code == OK
    assert "heuristic" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.timeout(BUSY)
def test_the_same_seed_gives_the_same_text_in_another_process_with_two_workers(
    recorded: Path, cases: Path, tmp_path: Path
) -> None:
    process = start(command(cases, tmp_path / "out", "--workers", "2"))
    _, errors = process.communicate(timeout=BUSY)
    assert process.returncode == OK, errors
    assert text_of(tmp_path / "out") == text_of(recorded)


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.timeout(BUSY)
@pytest.mark.parametrize(("workers", "how"), [("1", signal.SIGKILL), ("2", signal.SIGINT)])
def test_a_recording_that_was_ended_goes_on(
    recorded: Path, cases: Path, tmp_path: Path, workers: str, how: signal.Signals
) -> None:
    out = tmp_path / "out"
    errors = ended_at_work(command(cases, out, "--workers", workers), how)
    assert "Traceback" not in errors
    if how == signal.SIGKILL:
        with (out / "runs.jsonl").open("ab") as file:
            file.write(b'{"run": "cut off')
    left = runs_in(out)
    record(RecordingPlan(cases, chosen(QUICK), seed=1), out)
    assert 1 <= left < 7
    assert text_of(out) == text_of(recorded)
    assert not (out / "runs.jsonl").exists()


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_a_text_recording_is_the_same_files_again(cases: Path, tmp_path: Path) -> None:
    """In another process, with two workers, another seed of hashes and no browser."""
    agents = ["--agent", "all", "ladder", "resilient", "oracle"]
    words = ["--cases", str(cases), "--engine", "text", *agents]
    code = main([*words, "--out", str(tmp_path / "a")])
    again = [sys.executable, "-m", "trajudge.eval.cli", "env", "record", *words]
    process = start([*again, "--out", str(tmp_path / "b"), "--workers", "2"])
    _, errors = process.communicate(timeout=BUSY)
    assert process.returncode == code == OK, errors
    runs = runs_of(tmp_path / "a")
    assert {run.key.agent for run in runs} > {*AGENTS, *LADDER, *RESILIENT}
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


def test_a_recording_is_handed_on_with_card_cases_and_specifications(
    cases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the documented command for a reference set writes, at a small size."""
    out = tmp_path / "reference"
    words = ["--engine", "text", "--agent", "ladder", "all"]
    assert main(["--cases", str(cases), "--out", str(out), *words]) == OK
    card = (out / "README.md").read_text()
    labels = annotation_store.load(out / "labels.jsonl")
    assert len(labels) == len(runs_of(out)) and f"# {len(labels)} runs" in card
    assert f"{sum(one.success is True for one in labels)} succeeded" in card
    assert f"| shop | {len(labels)} |" in card
    listed = set(re.findall(r"^\| `([\w.]+)/?` \|", card, flags=re.M))
    assert listed == {path.name for path in out.iterdir()} - {"README.md"}
    assert read_cases(out / "cases.jsonl") == read_cases(cases)
    assert [task.intent for task in load_tasks(out / "tasks.json")] == [
        case.goal for case in read_cases(cases)
    ]
    words = ["--judge", "heuristic", "--data", f"trajudge:{out}"]
    assert judge([*words, "--out", str(tmp_path / "run")]) == OK
    assert f"Coverage: {len(labels)} of {len(labels)} judged" in capsys.readouterr().out


@pytest.mark.browser
def test_without_a_browser_labels_and_codes_are_those_of_chromium(
    recorded: Path, cases: Path, tmp_path: Path
) -> None:
    record(RecordingPlan(cases, chosen(QUICK), seed=1, engine="text"), tmp_path)
    assert (tmp_path / "labels.jsonl").read_bytes() == (recorded / "labels.jsonl").read_bytes()
    facts = [(folder / "facts.jsonl").read_bytes() for folder in (tmp_path, recorded)]
    assert facts[0] == facts[1]
    assert not any((tmp_path / "images").iterdir())


@pytest.mark.browser
def test_a_complete_recording_is_not_made_again(recorded: Path, cases: Path) -> None:
    before = text_of(recorded)
    counts, failed, _ = record(RecordingPlan(cases, chosen(QUICK), seed=1), recorded)
    assert not failed
    assert {name: row["runs"] for name, row in counts.items()} == dict.fromkeys(chosen(QUICK), 2)
    assert text_of(recorded) == before


def test_a_folder_with_another_recording_is_refused(cases: Path, tmp_path: Path) -> None:
    Journal(tmp_path / "out", {"seed": 1})
    with pytest.raises(UserError, match="another recording"):
        record(RecordingPlan(cases, chosen(QUICK), seed=2), tmp_path / "out")


def test_jobs_are_those_that_make_sense() -> None:
    case = sound("buy-best")
    by_behaviour: dict[Behaviour, list[Job]] = {}
    for job in jobs_for([case], list(AGENTS)):
        by_behaviour.setdefault(AGENTS[job.agent], []).append(job)
    assert set(by_behaviour) == set(Behaviour)
    assert len(by_behaviour[Behaviour.NEAR_MISS]) == 3
    assert by_behaviour[Behaviour.BLOCKED][0].config.noise > 0
    assert [job.attempt for job in jobs_for([case], ["some/model"], attempts=4)] == [0, 1, 2, 3]
    assert [job.attempt for job in jobs_for([case], ["some/model"])] == [0]


def test_why_an_agent_has_fewer_runs_is_said(tmp_path: Path) -> None:
    row = dict.fromkeys(COUNTED, 0)
    misses, reads = agent(Behaviour.NEAR_MISS), agent(Behaviour.MISREADS)
    runs = {agent(Behaviour.ORACLE): 4, misses: 4, f"{misses}2": 1, reads: 3}
    counts = {name: row | {"runs": number} for name, number in runs.items()}
    shown = on_one_line(recording_screen(CampaignResult(counts, []), tmp_path))
    assert (
        "near-miss has one for each value of the task that can be mistaken for another; " in shown
    )
    assert "misreads needs a task that asks for an answer" in shown
    assert "side-effect needs" not in shown
    varying = f"scripted-b{MARK}{RunVariant.UNDO}"
    varied = {name: row | {"runs": number} for name, number in (("scripted-b", 2), (varying, 1))}
    shown = recording_screen(CampaignResult(varied, []), tmp_path)
    assert "fewer runs: a variant needs a run that can end so\n" in shown
    del varied[varying]
    assert "fewer runs" not in recording_screen(CampaignResult(varied, []), tmp_path)


@mistakes(
    """
    --agent oracel => oracel
    --workers 0 => --workers
    --workers 1001 => must be at most 1000
    --attempts 1001 => must be at most 1000
    --seed -1 => --seed
    --max-cost 1 => --model
    --engine text --faults plan.json => --faults: needs --engine chromium
    --engine text --representation both => --representation both: needs --engine chromium
    --model scripted-b => scripted
    --model no-provider => --base-url
    --model m --base-url http://127.0.0.1:9 --max-tokens x => max-tokens
    """
)
def test_mistakes_are_one_sentence(
    words: list[str], sentence: str, cases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["--cases", str(cases), "--out", str(tmp_path), *words])
    errors = capsys.readouterr().err
    assert code == USAGE_ERROR
    assert sentence in errors
    assert errors.count("\n") == 1


# --- models ---------------------------------------------------------------------------------------


def model_words(server: LlmServer, cases: Path, tmp_path: Path, *more: str) -> list[str]:
    return [
        "--cases", str(cases), "--out", str(tmp_path / "out"), "--model", "lab/tiny",
        "--adapter", "http", "--base-url", f"{server.url}/v1",
        "--cache", str(tmp_path / "replies.sqlite"), *more,
    ]  # fmt: skip


@pytest.fixture
def one_case(tmp_path: Path) -> Path:
    path = tmp_path / "one.jsonl"
    write_cases(path, [sound("unwish")])
    return path


@pytest.mark.browser
def test_a_model_is_recorded_under_its_name(
    chromium: Path, one_case: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with LlmServer(text=solving(sound("unwish"), "Done.")) as server:
        words = model_words(server, one_case, tmp_path, "--attempts", "2", "--workers", "2")
        assert main(words) == OK, capsys.readouterr().err
    runs = runs_of(tmp_path / "out")
    assert [run.key.agent for run in runs] == ["lab/tiny", "lab/tiny"]
    assert {run.key.attempt for run in runs} == {0, 1}
    labels = annotation_store.load(tmp_path / "out" / "labels.jsonl")
    assert [label.success for label in labels] == [True, True]
    assert "model" in capsys.readouterr().out


@pytest.mark.browser
def test_a_provider_that_fails_is_reported_and_the_run_made_later(
    chromium: Path, one_case: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with LlmServer(script=always("image-refused")) as server:
        words = model_words(server, one_case, tmp_path)
        assert main(words) == FAILURES
        said = capsys.readouterr().err
        assert "failed: shop.unwish" in said
        assert "lab/tiny" in said
        server.script, server.text = None, solving(sound("unwish"), "Done.")
        assert main(words) == OK
    assert len(runs_of(tmp_path / "out")) == 1


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.timeout(BUSY)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_model_that_was_interrupted_is_not_asked_again(
    chromium: Path, one_case: Path, tmp_path: Path, how: signal.Signals
) -> None:
    started: list[subprocess.Popen[str]] = []
    solution = solving(sound("unwish"), "Done.")

    def interrupting(incoming: Incoming) -> str:
        """Send the signal while a later question waits for its answer."""
        if server.stats.answered >= 2 and started:
            os.killpg(started.pop().pid, how)
        return solution(incoming)

    with LlmServer(text=interrupting, latency=0.2) as server:
        words = model_words(server, one_case, tmp_path, "--attempts", "3", "--workers", "2")
        process = start([sys.executable, "-m", "trajudge.eval.cli", "env", "record", *words])
        started.append(process)
        _, errors = process.communicate(timeout=BUSY)
        assert "Traceback" not in errors
        assert process.returncode == (INTERRUPTED if how == signal.SIGINT else -how)
        assert main(words) == OK
        # Only what was on its way when the process was killed is asked once more.
        assert server.stats.answered_again <= 2 * (how == signal.SIGKILL)
    assert len(runs_of(tmp_path / "out")) == 3


@pytest.mark.browser
def test_a_key_that_is_refused_stops_the_recording(
    chromium: Path, one_case: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with LlmServer(script=always("401")) as server:
        assert main(model_words(server, one_case, tmp_path)) == FAILURES
        assert server.stats.requests == 1
    assert "refused the key (401)" in capsys.readouterr().err


def _config(task_id: str) -> Config:
    app, scenario, *axes = task_id.split(".")
    names = dict(
        zip("iptuns", ("instance", "profile", "theme", "ui", "noise", "seed"), strict=True)
    )
    numbers = {names[axis[0]]: int(axis[1:]) for axis in axes}
    return Config.model_validate({"app": app, "scenario": scenario, **numbers})


@pytest.mark.parametrize(
    ("successes", "span"), [((4, 1, 3), "1 to 3"), ((4, 2, 2), "2"), ((4,), "")]
)
def test_a_screen_of_arms_says_how_many_succeed_with_a_fault(
    successes: Sequence[int], span: str
) -> None:
    row = dict.fromkeys(COUNTED, 0)
    arms = [
        ArmResult(f"arm{n}", CampaignResult({"a": row | {"runs": 5, "success": success}}, []))
        for n, success in enumerate(successes)
    ]
    shown = on_one_line(arms_screen(arms, Path("out")))
    assert "4 of 5 runs of the arm without faults succeeded" in shown
    assert (f"With a fault {span} succeeded, against 4 without." in shown) is bool(span)
    assert ("With a fault" in shown) is bool(span)
