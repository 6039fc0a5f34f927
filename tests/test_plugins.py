"""Loaders, labels, adapters and judges of the users': files that they name, and packages."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

import trajudge as tj
from tests.commands import score
from tests.installed import write_metadata
from tests.plugin_files import FILES, LOADER
from tests.tables import table
from trajudge.annotations import open_annotations
from trajudge.eval.judge import main
from trajudge.eval.store.run_folder import read_judgments, read_labels, read_manifest
from trajudge.judges.adapters.routing import make_adapter
from trajudge.judges.registry import make_judge
from trajudge.trajectories.loaders import open_source
from trajudge.util.commands import OK, USAGE_ERROR
from trajudge.util.errors import UserError

ENTRY_POINTS = """\
[trajudge.loaders]
lines = tests_of_plugins.loader
[trajudge.annotations]
words = tests_of_plugins.labels
[trajudge.adapters]
echo = tests_of_plugins.adapter
[trajudge.judges]
asks = tests_of_plugins.judge
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the four as files, and data for the loader and the labels."""
    for name, content in FILES.items():
        (tmp_path / f"{name}.py").write_text(content)
    (tmp_path / "tasks.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "said.txt").write_text("one yes\ntwo no\nthree yes\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRAJUDGE_CACHE", str(tmp_path / "replies.sqlite"))
    return tmp_path


@pytest.fixture
def installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The four as an installed distribution, its metadata on ``sys.path`` as pip leaves it."""
    site = folder / "site"
    package = site / "tests_of_plugins"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    for name in FILES:
        (folder / f"{name}.py").rename(package / f"{name}.py")
    write_metadata(site, "tests-of-plugins", ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(site))
    return site


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What a test imported is gone after it."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("tests_of_plugins"):
            del sys.modules[name]


@pytest.mark.parametrize("how", ["file", "package"])
def test_all_four_run_together(how: str, request: pytest.FixtureRequest) -> None:
    words = ["--data", "./loader.py:tasks.txt", "--adapter", "./adapter.py", "--judge", "judge.py"]
    words += ["--annotations", "./labels.py:said.txt"]
    if how == "package":
        request.getfixturevalue("installed")
        words = ["--data", "lines:tasks.txt", "--adapter", "echo", "--judge", "asks"]
        words += ["--annotations", "words:said.txt"]
    assert main([*words, "--model", "any", "--out", "run", "--yes"]) == OK
    found = read_judgments(Path("run"))
    assert [(j.key.task_id, j.success) for j in found] == [
        ("one", True), ("two", True), ("three", True)
    ]  # fmt: skip
    assert read_manifest(Path("run"))["data"] == words[1]
    labels = {key.task_id: label.success for key, label in read_labels(Path("run")).items()}
    assert labels == {"one": True, "two": False, "three": True}
    ours = tj.judge(words[1], words[5], "any", adapter=words[3], out="ours", yes=True)
    assert [j.success for j in ours] == [True] * 3


def test_an_installed_loader_is_offered_and_imported_only_when_named(installed: Path) -> None:
    with pytest.raises(UserError, match=r"trajudge, .*, lines$"):
        open_source("nowhere")
    with pytest.raises(UserError, match="scripted, echo, or name a Python file"):
        make_adapter("m", adapter="eccho")
    assert not any(name.startswith("tests_of_plugins") for name in sys.modules)
    assert len(list(open_source("lines:tasks.txt"))) == 3


def test_a_run_folder_runs_nobodys_code(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder from somewhere else may name a loader that lies beside it."""
    words = ["--data", "./loader.py:tasks.txt", "--judge", "heuristic", "--out", "run"]
    assert main(words) == OK
    (folder / "loader.py").write_text("raise SystemExit('was run')")
    labels = folder / "labels.jsonl"
    labels.write_text("")
    assert score(["run", "--mismatches", "wrong.jsonl"]) == USAGE_ERROR
    assert "name its loader yourself" in capsys.readouterr().err


@table(
    "content sentence",
    """
    x = 1                          | defines no loader
    def load(path, want): return 3 | load gave int, not trajectories
    def load(path, want): yield {} | load gave dict where Trajectory or Unreadable belongs
    def load(path): return []      | the loader failed: TypeError: .*: correct it
    def load(path, want): yield 1/0 | ZeroDivisionError: division by zero .*bad.py:1\\)
    async def load(path, want): return [] | load is async: write  def load\\(path, want\\)
    async def load(path, want): yield 1 | load is async
    import nothing_of_that_name    | cannot be loaded
    """,
)
def test_a_loader_that_cannot_work_is_one_sentence(
    folder: Path, content: str, sentence: str
) -> None:
    (folder / "bad.py").write_text(content)
    with pytest.raises(UserError, match=sentence):
        list(open_source("bad.py:tasks.txt"))
    with pytest.raises(UserError, match="no file or folder 'absent'"):
        open_source("bad.py:absent")


@table(
    "content sentence",
    """
    x = 1                       | defines no source
    def load(path): return 3    | load gave int, not annotations
    def load(path): return [{}] | load gave dict where Label belongs
    def load(path): return 1/0  | the source failed: ZeroDivisionError: .*bad.py:1\\): correct it
    async def load(path): return [] | load is async: write  def load\\(path\\)
    """,
)
def test_labels_that_cannot_work_are_one_sentence(
    folder: Path, content: str, sentence: str
) -> None:
    (folder / "bad.py").write_text(content)
    with pytest.raises(UserError, match=sentence):
        open_annotations("bad.py:said.txt")
    with pytest.raises(UserError, match="no file or folder 'absent'"):
        open_annotations("bad.py:absent")


_FACTORY = "from trajudge.trajectories.model import Record as Options\n"


@table(
    "content sentence",
    """
    x = 1                                         | must define  async def judge(
    def judge(run, ask): return 1                 | judge is no coroutine function: write  async
    def judge(options): return print              | judge(options) gave builtin_function_or_method
    async def judge(options): return 1            | judge(options) gave coroutine: let  def judge
    needs_model = "no"; judge = print             | needs_model = 'no': make it True or False
    """,
)
def test_a_judge_that_cannot_work_is_one_sentence_before_the_run(
    folder: Path, content: str, sentence: str
) -> None:
    factory = _FACTORY if "(options)" in content else ""
    (folder / "bad.py").write_text(f"{factory}{content}\n")
    with pytest.raises(UserError, match=rf"^--judge bad(\.py)?: {re.escape(sentence)}"):
        make_judge("bad.py")


def test_an_async_judge_behind_a_decorator_is_one(folder: Path) -> None:
    (folder / "fine.py").write_text(
        "from functools import wraps\n\ndef shown(judge):\n"
        "    return wraps(judge)(lambda *given: judge(*given))\n\n"
        "@shown\nasync def judge(run, ask): ...\n"
    )
    assert make_judge("fine.py")[0] == "fine"


@table(
    "verdict",
    """
    success="banana"
    score=7
    score=float("nan")
    """,
)
def test_a_verdict_that_is_none_is_one_sentence(
    folder: Path, verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "from trajudge import Verdict\nneeds_model = False\n\nasync def judge(run, ask):\n"
    (folder / "bad.py").write_text(f"{code}    return Verdict({verdict})\n")
    assert main(["--judge", "bad.py", "--data", "loader.py:tasks.txt"]) == USAGE_ERROR
    assert re.search(r"ValidationError: \w+ is .*bad.py:5\): correct", capsys.readouterr().err)


@table(
    "content sentence",
    """
    x = 1                                           | defines no adapter
    def adapter(model, **settings): return object() | no  async def send
    def adapter(model, **settings): return 1/0      | adapter() failed: ZeroDivisionError
    def adapter(model, **settings): return dict     | adapter() gave the class dict: end it with
    async def adapter(model, **settings): return 1  | adapter is async: write  def adapter(model
    """,
)
def test_an_adapter_that_cannot_work_is_one_sentence(
    folder: Path, content: str, sentence: str
) -> None:
    (folder / "bad.py").write_text(content)
    with pytest.raises(UserError, match=re.escape(sentence)):
        make_adapter("m", adapter="bad.py")


@table(
    "body sentence",
    """
    return "yes"       | send gave str where a response belongs: end it with  return Adapter
    return None        | send gave NoneType where a response belongs
    raise KeyError(1)  | send failed: KeyError: 1 (
    """,
)
def test_an_adapter_that_fails_is_one_sentence(
    folder: Path, body: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "bad.py").write_text(
        "class Bad:\n    name = endpoint = 'bad'\n"
        f"    async def send(self, request):\n        {body}\n"
        "    async def close(self): pass\n\n"
        "def adapter(model, **settings): return Bad()\n"
    )
    words = ["--adapter", "bad.py", "--model", "m", "--context", "20000", "--yes"]
    assert main(["--data", "sample", "--limit", "1", *words]) == USAGE_ERROR
    assert f"error: --adapter bad.py: {sentence}" in capsys.readouterr().err


def test_what_a_loader_was_not_asked_for_is_left_out(folder: Path) -> None:
    (folder / "all.py").write_text(LOADER.replace("if want(key)", "if True"))
    found = list(open_source("all.py:tasks.txt", lambda key: key.task_id == "two"))
    assert [item.key.task_id for item in found if isinstance(item, tj.Trajectory)] == ["two"]


def test_a_changed_loader_is_another_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same words of a command must not add what another loader read to a run."""
    words = ["--data", "./loader.py:tasks.txt", "--judge", "heuristic", "--out", "run"]
    assert main(words) == OK
    assert read_manifest(Path("run"))["loader_digest"] == sha256(LOADER.encode()).hexdigest()
    (folder / "loader.py").write_text(LOADER.replace('"done"', '"given up"'))
    capsys.readouterr()
    assert main(words) == USAGE_ERROR
    said = capsys.readouterr().err
    assert "loader_digest" in said
    assert "the loader's file is not the one" in said
    assert (
        main(["--data", "sample", "--judge", "heuristic", "--limit", "1", "--out", "other"]) == OK
    )
    assert read_manifest(Path("other"))["loader_digest"] is None
