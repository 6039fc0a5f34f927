"""The documentation builds without a warning and without a network; its examples run."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet as pq
import pytest

import trajudge
from tests.eval.conftest import cache_home, own_folder  # noqa: F401 - fixtures
from tests.installed import write_metadata
from tests.screens import same_screen
from tests.spelling import MISUNDERSTOOD
from trajudge.eval.cli import main as command
from trajudge.eval.cli import named
from trajudge.face.calls import keywords

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
POINT = re.compile(r'^\[project\.entry-points\."([\w.]+)"\]\n(.*)$', flags=re.M)
PYTHON = re.compile(r"^```python\n(.*?)^```$", flags=re.M | re.S)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.M | re.S)
TIMED = re.compile(r"[\d.]+(?= s$)|[\d.]+(?=/s$)", flags=re.M)
SHELLS = ("", "sh", "bash", "console")
COMMAND = re.compile(r"^(?:\$ )?(?:\w+=\S+ )?(?:trajudge |python -m eval\.)([a-z].+)$", flags=re.M)
# What the text names with its options; a command that is named alone needs more to run.
NAMED = re.compile(r"`trajudge ([^`…]+ --[^`…]+)`")
PAGES = [
    page
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if re.search(f"{COMMAND.pattern}|{NAMED.pattern}", page.read_text("utf-8"), flags=re.M)
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built documentation."""
    if not all(map(find_spec, ("mkdocs", "material", "mkdocstrings"))):
        pytest.skip("mkdocs-material and mkdocstrings are not installed")
    folder = tmp_path_factory.mktemp("docs") / "site"
    command = ["mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.slow
def test_every_public_name_is_in_the_reference(site: Path) -> None:
    page = (site / "reference" / "index.html").read_text(encoding="utf-8")
    for name in trajudge.__all__:
        module = isinstance(getattr(trajudge, name), ModuleType)
        heading = r"<h2 id=\"[^\"]*\">" if module else r"doc-heading\">"
        assert re.search(rf"{heading}\s*trajudge\.{name}\b", page), name


def test_the_reference_lists_the_keywords_of_every_function(site: Path) -> None:
    page = (site / "reference" / "index.html").read_text(encoding="utf-8")
    for call in ("judge", "score", "select", "accept", "audit"):
        _, _, after = page.rpartition(f"Keywords of {call}")
        for keyword in {one.name for one in keywords(call).values()}:
            assert f"<td><code>{keyword}</code></td>" in after.partition("<h3")[0], keyword


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    loaded = re.compile(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"(?:https?:)?//[^\"]+")
    for page in site.rglob("*.html"):
        assert not loaded.search(page.read_text(encoding="utf-8")), page


@pytest.mark.browser
def test_no_page_scrolls_sideways(site: Path, chromium: Path) -> None:
    from playwright.sync_api import sync_playwright

    pages = sorted(site.rglob("index.html"))
    assert len(pages) >= 15
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page()
        for page in pages:
            tab.goto(page.as_uri())
            for width in (390, 1280):
                tab.set_viewport_size({"width": width, "height": 900})
                assert tab.evaluate("document.documentElement.scrollWidth") <= width, page
        browser.close()


@pytest.mark.usefixtures("own_folder")
def test_the_judge_of_the_guide_runs_and_is_tested_as_it_says() -> None:
    blocks = PYTHON.findall((ROOT / "docs" / "guides" / "judge.md").read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "judge.md", "exec"), names)
    assert "judgments" in names


DOORS = ("loader", "labels", "adapter")


@pytest.fixture
def guides(own_folder: None) -> None:  # noqa: F811
    """The code of the guides as files, and what it reads."""
    for name in DOORS:
        text = (ROOT / "docs" / "guides" / f"{name}.md").read_text(encoding="utf-8")
        [code] = PYTHON.findall(text)
        assert len([line for line in code.splitlines() if line.strip()]) <= 30
        Path(f"my_{name}.py").write_text(code)
    Path("data").mkdir()
    Path("data/episodes.txt").write_text("t1\tBuy tea\tbought\n")
    Path("said.csv").write_text("task,annotator,success\nt1,Ada,yes\n")


@pytest.fixture
def installed(guides: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The same as an installed package, with the entry points that the guides name."""
    Path("site/my_package").mkdir(parents=True)
    points: list[str] = []
    for name in DOORS:
        Path(f"my_{name}.py").rename(f"site/my_package/my_{name}.py")
        text = (ROOT / "docs" / "guides" / f"{name}.md").read_text(encoding="utf-8")
        for group, line in POINT.findall(text):
            points += [f"[{group}]", line.replace('"', "")]
    write_metadata(Path("site"), "my-package", "\n".join(points))
    monkeypatch.syspath_prepend(str(Path("site").resolve()))
    yield
    for name in [name for name in sys.modules if name.startswith("my_package")]:
        del sys.modules[name]


@pytest.mark.parametrize("how", ["guides", "installed"])
def test_what_the_guides_bring_runs_together(how: str, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(how)
    loader, labels, adapter = (
        ("./my_loader.py", "./my_labels.py", "./my_adapter.py")
        if how == "guides"
        else ("episodes", "words", "echo")
    )
    [run] = trajudge.load(f"{loader}:data")
    assert (run.key.task_id, run.goal, run.answer) == ("t1", "Buy tea", "bought")
    assert trajudge.labels(f"{loader}:data", f"{labels}:said.csv")[run.key].success is True
    [judgment] = trajudge.judge(
        f"{loader}:data", model="m", adapter=adapter, max_failures=1, yes=True
    )
    assert judgment.status == "unparsable"
    assert judgment.calls[0].text.startswith("m was asked")


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_the_guides_are_spelled_as_the_parsers_have_them(
    page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once its words are understood a command ends here; one that looks at files while it reads
    them fails for what an empty folder lacks."""

    def settings_alone(name: str) -> Any:
        return found if isinstance(found := named(name), type) else lambda config: 0

    monkeypatch.setattr("trajudge.eval.cli.named", settings_alone)
    Path("queue").mkdir()  # of "trajudge label queue"
    text = page.read_text(encoding="utf-8")
    blocks = [block for language, block in BLOCK.findall(text) if language in SHELLS]
    lines = "\n".join(blocks).replace("\\\n", " ")
    for words in [*COMMAND.findall(lines), *NAMED.findall(text)]:
        with suppress(SystemExit):
            command(shlex.split(words.partition(" > ")[0], comments=True))
        told = capsys.readouterr().err
        assert not MISUNDERSTOOD.search(told), (words, told)
        assert "Traceback" not in told, words


@pytest.mark.slow
@pytest.mark.usefixtures("own_folder")
def test_the_tutorial_works_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its Python and its commands run in their order; each screen is what the command before it
    prints, except for how long that took."""
    monkeypatch.setenv("COLUMNS", "90")
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    shown, compared = "", 0
    for language, block in BLOCK.findall(text):
        if language == "python" and "await agent.run" not in block:
            exec(compile(block, "tutorial.md", "exec"), {})
        elif language == "text":
            same_screen(ROOT / "docs" / "tutorial.md", block, shown, TIMED)
            compared += 1
        elif block.startswith("trajudge ") and "inspect" not in block:
            line = block.replace("runs/*", " ".join(map(str, Path().glob("runs/*"))))
            shown = subprocess.run(
                [sys.executable, "-m", *shlex.split(line)],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            ).stdout
    assert compared == 7
    assert pq.read_metadata("training/trl-messages/train.parquet").num_rows == 128


def test_every_extra_is_on_the_page_of_the_installation() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`.*?) \|", page, flags=re.M)
    named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(named) == sorted(project["optional-dependencies"])


def test_the_notebooks_are_committed_without_outputs_and_the_first_is_short() -> None:
    assert len(NOTEBOOKS) == 3
    for notebook in NOTEBOOKS:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        assert not any(cell.get("outputs") for cell in cells), notebook
    cells = json.loads(NOTEBOOKS[0].read_text(encoding="utf-8"))["cells"]
    code = "".join("".join(c["source"]) + "\n" for c in cells if c["cell_type"] == "code")
    assert sum(bool(line.strip()) for line in code.splitlines()) <= 10


@pytest.mark.slow
@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_in_a_kernel(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel has a running event loop."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for file in (ROOT / "examples").iterdir():
        shutil.copy(file, tmp_path)
    content = nbformat.read(notebook, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    client = nbclient.NotebookClient(content, timeout=200, resources=resources)
    client.create_kernel_manager().transport = "ipc"  # nobody takes a socket of this folder first
    client.execute()
    shown = [output for cell in content.cells for output in cell.get("outputs", ())]
    assert any("text/html" in output.get("data", ()) for output in shown)
    if notebook.stem.startswith("1"):
        assert any("image/png" in output.get("data", ()) for output in shown)
