"""Text in another encoding: every reader of a user's file names UTF-16 as that, and the mark that
Windows' tools put before UTF-8 changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tests.trajectories.loaders import conversations, inspect_made, made, made_logs
from tests.trajectories.loaders.released.answer_lines import answer_line
from tests.trajectories.loaders.released.toolcall_runs import RUN, written
from tests.worlds import agentrewardbench_like as like
from trajudge.annotations import open_annotations
from trajudge.app.audit_pages import read_rule_texts
from trajudge.app.keys import read_keys
from trajudge.environments.model.case import read_cases
from trajudge.environments.model.payload import read_payloads
from trajudge.eval.accept.accept import read_held_out
from trajudge.eval.analysis.calibration import read_calibration
from trajudge.eval.audit import read_facets
from trajudge.eval.cli import main
from trajudge.eval.labelling.build import read_guidelines
from trajudge.eval.resilience.reading import OutcomeFile, read_events
from trajudge.eval.store.run_folder import read_judgments, read_labels, read_manifest
from trajudge.judges.adapters.scripted import read_script
from trajudge.judges.methods.browser_use import read_ground_truths
from trajudge.judges.models import OwnModels
from trajudge.judges.registry import make_judge
from trajudge.judges.telemetry import read_model
from trajudge.proxy.plan import read_plan
from trajudge.robustness.drift import read_canaries
from trajudge.robustness.perturb import read_variants
from trajudge.robustness.subjects import read_by_key
from trajudge.rules.audit.suites import open_tasks
from trajudge.rules.har import read_recording
from trajudge.rules.webarena.tasks import load_runs
from trajudge.trajectories import store
from trajudge.trajectories.goals import read_goals
from trajudge.trajectories.loaders import detect_kind, open_source
from trajudge.trajectories.model import Record, Trajectory, TrajectoryKey
from trajudge.util.errors import UserError
from trajudge.util.validation import read_record, read_token

NAMED = "is UTF-16: save it as UTF-8"
KEY = {"benchmark": "shop", "agent": "a", "task_id": "t"}


class Words(Record):
    words: str


class Reader(NamedTuple):
    """``good`` is a content that the reader takes; where it is long to write, "" (what comes before
    it is read is the same)."""

    name: str
    read: Callable[[Path], object]
    good: str = ""


def _goals(file: Path) -> object:
    return read_goals(file).by_task


def _models(file: Path) -> object:
    return vars(OwnModels(str(file), None))


TASKS = '[{"task_id": 1, "intent": "Über", "eval": {"eval_types": []}, "sites": ["shopping"]}]'
READERS = [
    Reader("goals.csv", _goals, "task_id,goal\nt,Käse\n"),
    Reader("goals.json", _goals, '{"t": "Käse"}'),
    Reader("goals.jsonl", _goals, '{"task_id": "t", "goal": "é"}'),
    Reader("labels.jsonl", lambda file: open_annotations(f"trajudge:{file}")),
    Reader(
        "annotations.csv",
        lambda file: open_annotations(f"agentrewardbench:{file}"),
        "annotator_name,benchmark,task_id,model_name,exp_name,trajectory_success,"
        "trajectory_side_effect,trajectory_optimality,trajectory_looping\n",
    ),
    Reader("human_label.json", lambda file: open_annotations(f"online-mind2web:{file}"), "[]"),
    Reader("calibration.json", lambda file: read_calibration(file, "judge")),
    Reader("telemetry.json", read_model),
    Reader("record.json", lambda file: read_record(file, Words), '{"words": "Käse"}'),
    Reader("truths.json", read_ground_truths, '{"t": "Käse"}'),
    Reader("rubrics.json", lambda file: make_judge("universal-verifier", {"rubrics": str(file)})),
    Reader("models.toml", _models, "[models.m]\ncontext = 9\n"),
    Reader("prices.toml", lambda file: OwnModels(None, str(file))),
    Reader("script.jsonl", read_script, '{"text": "é"}'),
    Reader("token", read_token, "0123456789abcdef"),
    Reader("outcomes.csv", OutcomeFile.read, "task,arm,success\nt,a,1\n"),
    Reader("outcomes.jsonl", OutcomeFile.read),
    Reader("held-out.txt", read_held_out, "shop/t\n"),
    Reader("guidelines.md", read_guidelines, "Über\n"),
    Reader("tasks.json", read_rule_texts, TASKS),
    Reader("templates.json", lambda file: read_facets(None, file)),
    Reader("webarena.csv", lambda file: read_facets(file.parent, None), "task_name\nwebarena.1\n"),
    Reader("payloads.yaml", read_payloads, "goals: {grab: [é]}"),
    Reader("cases.jsonl", read_cases),
    Reader("faults.json", read_plan, '{"version": 1}'),
    Reader("drift.jsonl", read_canaries),
    Reader("variants.jsonl", lambda file: read_variants(file.parent)),
    Reader("facts.jsonl", read_by_key, json.dumps({"key": {**KEY, "attempt": 0}, "a": "é"})),
    Reader("run-events.jsonl", read_events),
    Reader("keys.toml", read_keys, "[keys]\n"),
    Reader("rules.json", lambda file: open_tasks(file).tasks, TASKS),
    Reader("answers.json", load_runs, '{"1": "Käse"}'),
    Reader("network.har", lambda file: read_recording(file).entries, '{"log": {"entries": []}}'),
    Reader("judge.py", lambda file: make_judge(str(file))),
    Reader("manifest.json", lambda file: read_manifest(file.parent), '{"judge": "é"}'),
    Reader("judgments.jsonl", lambda file: list(read_judgments(file.parent)), ""),
]


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_file_in_another_encoding_is_named_or_read(reader: Reader, tmp_path: Path) -> None:
    file = tmp_path / reader.name
    for encoding in ("utf-16", "utf-16-be"):
        mark = "" if encoding == "utf-16" else "\ufeff"
        file.write_text(mark + (reader.good or '{"a": 1}\n'), encoding=encoding)
        with pytest.raises(UserError, match=f"{reader.name} {NAMED}"):
            reader.read(file)
    if reader.good:
        file.write_text(reader.good, encoding="utf-8")
        plain = reader.read(file)
        file.write_text(reader.good, encoding="utf-8-sig")
        assert repr(reader.read(file)) == repr(plain)


def _trajudge(folder: Path) -> Path:
    key = TrajectoryKey.model_validate(KEY)
    store.write(folder, [Trajectory(key=key, raw_task_id="t", goal="Käse")])
    return folder


def _agentrewardbench(folder: Path) -> Path:
    like.write(folder, like.trajectory(np.random.default_rng(0), size=2_000))
    return folder


def _answers(folder: Path) -> Path:
    folder.mkdir()
    (folder / "results.jsonl").write_text(answer_line("a"))
    return folder


def _toolcalls(folder: Path) -> Path:
    folder.mkdir()
    return written(folder, [RUN])


def _judgments(folder: Path) -> Path:
    made.judgment(folder)
    return folder


FORMATS: dict[str, Callable[[Path], Path]] = {
    "trajudge": _trajudge,
    "agentrewardbench": _agentrewardbench,
    "agentrewardbench-text": _judgments,
    "browser-use-answers": _answers,
    "toolcalls": _toolcalls,
    "browser-use": made_logs.browser_use,
    "osworld": made_logs.osworld,
    "webarena-html": made_logs.webarena_html,
    "webvoyager": made.webvoyager,
    "online-mind2web": made.mind2web,
    "fara": made.fara,
    "inspect": lambda folder: inspect_made.write(folder / "log.json", inspect_made.sample()),
    "messages": lambda folder: conversations.write(
        folder / "run.json", {"messages": conversations.anthropic()}
    ),
}


def _texts(path: Path) -> Iterator[Path]:
    files = [path] if path.is_file() else path.rglob("*")
    return (file for file in files if file.suffix in (".json", ".jsonl", ".html", ".log", ".txt"))


@pytest.mark.parametrize("kind", FORMATS)
def test_runs_in_another_encoding_are_named_or_read(kind: str, tmp_path: Path) -> None:
    path = FORMATS[kind](tmp_path / "data")
    plain = list(open_source(f"{kind}:{path}"))
    assert all(isinstance(run, Trajectory) for run in plain)
    texts = {file: file.read_text() for file in _texts(path)}
    for file, text in texts.items():
        file.write_text(text, encoding="utf-8-sig")
    assert list(open_source(f"{kind}:{path}")) == plain
    for file, text in texts.items():
        file.write_text(text, encoding="utf-16")
    try:
        said = [str(unreadable) for unreadable in open_source(f"{kind}:{path}")]
    except UserError as error:
        said = [str(error)]
    assert said
    assert all(NAMED in one for one in said)
    with pytest.raises(UserError, match=NAMED):  # where the kind is to be told by the data
        list(open_source(str(next(iter(texts)))))


def test_a_folder_of_unknown_runs_in_utf_16_is_told(tmp_path: Path) -> None:
    conversations.write(tmp_path / "a" / "run.json", {"messages": conversations.anthropic()})
    file = tmp_path / "a" / "run.json"
    file.write_text(file.read_text(), encoding="utf-16")
    with pytest.raises(UserError, match=f"run.json {NAMED}"):
        detect_kind(tmp_path)


def test_the_log_of_a_run_in_utf_16_is_a_warning(tmp_path: Path) -> None:
    page = made_logs.webarena_html(tmp_path / "data")
    log = page.parent / "log_1.log"
    log.write_text("[Result] (PASS) /tmp/7.json\n", encoding="utf-16")
    results = page.parent / "results.json"
    results.write_text('{"7": 1.0}', encoding="utf-16")
    (run,) = open_source(f"webarena-html:{page}")
    assert isinstance(run, Trajectory)
    assert str(run.metadata["warnings"]).count(NAMED) == 2


def test_a_run_whose_files_have_a_mark_is_read(tmp_path: Path) -> None:
    words = ["judge", "--judge", "heuristic", "--data", "sample", "--out", str(tmp_path / "run")]
    assert main(words) == 0
    run = tmp_path / "run"
    before = [*read_judgments(run)], dict(read_labels(run))
    for name in ("manifest.json", "judgments.jsonl", "labels.jsonl", "rewards.jsonl"):
        file = run / name
        file.write_text(file.read_text(encoding="utf-8"), encoding="utf-8-sig")
    assert ([*read_judgments(run)], dict(read_labels(run))) == before
    assert main(["score", str(run)]) == 0


def test_a_config_in_another_encoding_is_named_or_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "run.yaml"
    config.write_text("judge: heuristic\ndata: sample\ndry-run: true\n", encoding="utf-8-sig")
    assert main(["judge", "--config", str(config)]) == 0
    config.write_text(config.read_text(encoding="utf-8-sig"), encoding="utf-16")
    assert main(["judge", "--config", str(config)]) == 2
    assert capsys.readouterr().err.count(f"run.yaml {NAMED}") == 1
