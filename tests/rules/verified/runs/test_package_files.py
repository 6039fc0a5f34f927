"""The released package's files: its submissions are read, and what is written it reads."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.commands import rules_evaluate as main
from tests.conftest import missing
from tests.rules.against_package.environment import PACKAGE
from tests.rules.verified.tasks import answer, page, request, task
from trajudge.rules.verified import runs as submission
from trajudge.rules.verified.tasks import checksum_of, subset_ids, task_record
from trajudge.util.commands import FAILURES, OK, USAGE_ERROR
from trajudge.util.errors import UserError
from trajudge.util.machine import NoEnvironment

IDS = (108, 107, 44, 21)
# The package's command line, twice in one process: its import takes longer than either.
COMMANDS = """
import sys
from webarena_verified.__main__ import main
_, runs, packs = sys.argv
packing = ["create-submission-pkg", "--run-output-dir", runs, "--output", packs, "--name", "mine"]
for words in (["eval-tasks", "--output-dir", runs], packing):
    sys.argv = ["webarena-verified", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code, words
"""
# The package's own models read every file and make the summary of them anew.
READ_BACK = """
import json, sys
from pathlib import Path
from webarena_verified.types.eval import TaskEvalResult, TasksEvalResults
folder = Path(sys.argv[1])
files = sorted(folder.glob("*/eval_result.json"))
results = [TaskEvalResult.model_validate_json(file.read_text()) for file in files]
made = TasksEvalResults.create(task_results=results, data_checksum="x").summary
statuses = {result.task_id: result.status for result in results}
print(json.dumps({"summary": made.model_dump(mode="json"), "statuses": statuses}))
"""


@pytest.fixture
def runs(real_data: Path, tmp_path: Path) -> Path:
    """The published run, and the same files as runs of three other tasks."""
    for number in IDS:
        own = tmp_path / "runs" / str(number)
        own.mkdir(parents=True)
        for name in ("agent_response.json", "network.har"):
            shutil.copyfile(real_data / "webarena/demo/108" / name, own / name)
    return tmp_path / "runs"


def _evaluate(runs: Path, real_data: Path, *more: str) -> dict[int, dict[str, Any]]:
    tasks, out = real_data / "webarena/webarena-verified.json", runs.parent / "out"
    words = ["--tasks", str(tasks), "--runs", str(runs), "--out", str(out), *more]
    assert main(words) == OK
    files = (out / "package").glob("*/eval_result.json")
    results = [json.loads(file.read_bytes()) for file in files]
    return {result["task_id"]: result for result in results}


@pytest.mark.real_data
def test_a_result_has_the_published_result_s_form(runs: Path, real_data: Path) -> None:
    """The demo's ``eval_result.json`` was written by a release of the package."""
    published = json.loads((real_data / "webarena/demo/108/eval_result.json").read_bytes())
    ours = _evaluate(runs, real_data)[108]
    assert ours.keys() == published.keys()
    (own,), (theirs,) = ours["evaluators_results"], published["evaluators_results"]
    assert own.keys() == theirs.keys()
    same = ("task_id", "intent_template_id", "sites", "task_revision", "status", "score")
    for name in (*same, "webarena_verified_data_checksum"):
        assert ours[name] == published[name]
    for name in ("evaluator_name", "status", "score", "assertions", "error_msg"):
        assert own[name] == theirs[name]


@pytest.fixture
def package() -> str:
    """An interpreter that has the package: a given one, or an environment made for it."""
    try:
        return str(PACKAGE.python())
    except NoEnvironment as error:
        missing("package", str(error))
        raise AssertionError("unreachable") from error


def _run(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


@pytest.mark.real_data
@pytest.mark.slow
def test_the_package_packs_reads_and_evaluates_the_same(
    runs: Path, real_data: Path, package: str
) -> None:
    packs = runs.parent / "packs"
    packs.mkdir()
    _run(package, "-c", COMMANDS, str(runs), str(packs))
    theirs = {n: json.loads((runs / f"{n}/eval_result.json").read_bytes()) for n in IDS}
    for submitted in (runs, packs / "mine.tar.gz"):
        found = _evaluate(submitted, real_data, "--mode", "release-1.2.3")
        assert {n: result["status"] for n, result in found.items()} == {
            n: result["status"] for n, result in theirs.items()
        }
    folder = packs / "out" / "package"
    read = json.loads(_run(package, "-c", READ_BACK, str(folder)))
    assert read["summary"] == json.loads((folder / "eval_results.json").read_bytes())["summary"]
    assert read["statuses"] == {str(n): result["status"] for n, result in theirs.items()}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Three tasks: one whose run passes, one that asks for what was not recorded, and one whose
    site only the run's own configuration places."""
    form = {"url": "__SHOPPING__/p", "response_content": {"$.a": 1}}
    tasks = [
        task(["a"], task_id=1),
        task(["a"], None, {"expected": form}, task_id=2),
        task(["a"], None, {"expected": {"url": "__SHOPPING__/p"}}, task_id=3),
    ]
    (tmp_path / "tasks.json").write_text(json.dumps([task_record(one) for one in tasks]))
    for one in tasks:
        base = "http://elsewhere.test" if one.task_id == 3 else "http://shop.example:7770"
        own = tmp_path / "runs" / str(one.task_id)
        own.mkdir(parents=True)
        entries = [page("/", base=base), request("/p", base=base), page("/p", base=base)]
        (own / "agent_response.json").write_text(json.dumps(answer(["a"])))
        (own / "network.har").write_text(json.dumps({"log": {"entries": entries}}))
    places = {"__SHOPPING__": {"urls": ["http://elsewhere.test"]}}
    (tmp_path / "runs/3/run_config.json").write_text(json.dumps({"environments": places}))
    return tmp_path


def _judge(folder: Path, runs: Path, *more: str) -> int:
    words = ["--tasks", str(folder / "tasks.json"), "--runs", str(runs)]
    return main([*words, "--out", str(folder / "out"), *more])


def _outcomes(folder: Path) -> dict[str, str]:
    files = (folder / "out/package").glob("*/eval_result.json")
    return {file.parent.name: json.loads(file.read_bytes())["status"] for file in files}


def test_unknown_is_an_error_and_a_run_says_where_its_sites_were(small: Path) -> None:
    assert _judge(small, small / "runs") == OK
    assert _outcomes(small) == {"1": "success", "2": "error", "3": "success"}
    unknown = json.loads((small / "out/package/2/eval_result.json").read_bytes())
    assert "recorded no body of the response" in unknown["error_msg"]
    assert unknown["score"] == 0.0
    (small / "runs/3/run_config.json").write_text("{")
    assert _judge(small, small / "runs") == FAILURES


def _tar(path: Path, files: dict[str, bytes], *links: tuple[str, str]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for name, target in links:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    return path


def _files(folder: Path) -> dict[str, bytes]:
    files = (path for path in (folder / "runs").rglob("*") if path.is_file())
    return {str(path.relative_to(folder / "runs")): path.read_bytes() for path in files}


@pytest.mark.parametrize("inside", ["", "./", "submission-1/"])
def test_an_archive_is_read_as_its_folder_and_nothing_else_of_it(
    small: Path, inside: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    files = {f"{inside}{name}": data for name, data in _files(small).items()}
    hostile = {"../escaped/1.txt": b"x", "/tmp/escaped": b"x", f"{inside}summary.json": b"{}"}
    link = (f"{inside}4/agent_response.json", str(small / "tasks.json"))
    packed = _tar(small / "runs.tar.gz", {**files, **hostile}, link)
    assert _judge(small, packed) == OK
    assert _outcomes(small) == {"1": "success", "2": "error", "3": "success"}
    assert not list(tmp_path_factory.getbasetemp().rglob("escaped*"))


@pytest.mark.parametrize("kind", ["cut", "text", "twice", "bomb"])
def test_a_bad_archive_is_one_sentence(
    small: Path, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = _files(small)
    if kind == "twice":
        files |= {f"again/{name}": data for name, data in files.items()}
    packed = _tar(small / "runs.tar.gz", files)
    if kind == "cut":
        packed.write_bytes(packed.read_bytes()[:300])
    if kind == "text":
        packed.write_text("runs")
    if kind == "bomb":
        monkeypatch.setattr(submission, "MAX_UNPACKED", 100)
    assert _judge(small, packed) == USAGE_ERROR
    said = {"twice": "twice: keep one run", "bomb": "unpacks to more than"}
    shown = capsys.readouterr().err
    assert said.get(kind, "no whole .tar.gz") in shown
    assert shown.count("\n") == 1


@pytest.mark.real_data
def test_a_subset_is_found_by_its_name_and_held_to_its_checksum(
    real_data: Path, tmp_path: Path
) -> None:
    file = real_data / "webarena/webarena-verified-hard.json"
    published = json.loads(file.read_bytes())
    assert checksum_of(published["task_ids"]) == published["checksum"]
    tasks = tmp_path / "tasks.json"
    (tmp_path / "subsets").mkdir()
    shutil.copy(file, tmp_path / "subsets/hard.json")
    assert len(subset_ids("hard", tasks)) == 258
    published["task_ids"].append(0)
    (tmp_path / "changed.json").write_text(json.dumps(published))
    with pytest.raises(UserError, match=r"its checksum is not that of its 259 task_ids"):
        subset_ids("changed", tasks)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"task_ids": [1, 2, 1]}, "names task 1 twice"),
        ({"task_ids": []}, "names no task"),
        ({"tasks": [1]}, "task_ids"),
        (None, "neither .* nor .*subsets"),
    ],
)
def test_a_subset_that_is_none_is_one_sentence(
    tmp_path: Path, content: object, sentence: str
) -> None:
    if content is not None:
        (tmp_path / "some.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match=sentence):
        subset_ids("some", tmp_path / "tasks.json")


def test_only_the_tasks_of_a_subset_are_judged(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subset = {"description": None, "task_ids": [3, 1], "checksum": checksum_of([1, 3])}
    (small / "some.json").write_text(json.dumps(subset))
    assert _judge(small, small / "runs", "--subset", "some") == OK
    assert set(_outcomes(small)) == {"1", "3"}
    assert _judge(small, small / "runs", "--subset", str(small / "none.json")) == USAGE_ERROR
    assert "none.json" in capsys.readouterr().err
