"""Which loader a ``--data`` value means."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.worlds import agentrewardbench_like as like
from trajudge.trajectories import store
from trajudge.trajectories.loaders import KINDS, detect_kind, loader, open_source, parse_source
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.util.errors import UserError


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    key = TrajectoryKey(benchmark="shop", agent="a", task_id="t")
    folder = tmp_path / "shop"
    store.write(folder, [Trajectory(key=key, raw_task_id="t", goal="g")])
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_every_loader_has_the_three_names(kind: str, tmp_path: Path) -> None:
    module = loader(kind)
    assert kind == module.KIND
    assert not module.detect(tmp_path)
    with pytest.raises(UserError):
        list(module.load(tmp_path, lambda key: True))


def test_a_kind_and_a_path(shop: Path) -> None:
    assert parse_source(f"trajudge:{shop}") == ("trajudge", shop)
    (found,) = open_source(f"trajudge:{shop}")
    assert isinstance(found, Trajectory)
    assert list(open_source(f"trajudge:{shop}", lambda key: False)) == []


def test_a_bare_path_is_detected(shop: Path, tmp_path: Path) -> None:
    assert parse_source(str(shop)) == ("trajudge", shop)
    like.write(tmp_path / "arb", like.trajectory(np.random.default_rng(0), size=2_000))
    assert detect_kind(tmp_path / "arb") == "agentrewardbench"


FORMATS = {
    "browser_use_0_1": "browser-use",
    "browser_use_0_13": "browser-use",
    "inspect_eval": "inspect",
    "message_logs": "messages",
    "osworld_style": "osworld",
    "webarena_html": "webarena-html",
}


@pytest.mark.real_data
def test_every_sample_is_of_its_kind_alone(real_data: Path) -> None:
    """As a folder and file by file; what is of no format that is read is of none."""
    formats = real_data / "formats"
    known = {name: kind for name, kind in FORMATS.items() if kind in KINDS}
    for name in [*known, "playwright_trace"]:
        files = [file for file in (formats / name).rglob("*") if file.is_file()]
        for path in [formats / name, *files]:
            found = {kind for kind in KINDS if loader(kind).detect(path)}
            assert found <= {known.get(name)}, path
            assert found or path.is_file() or name not in known, path
    with pytest.raises(
        UserError, match=r"name one in it, such as browser-use:.*inspect:.*messages:"
    ):
        detect_kind(formats)


@pytest.mark.parametrize("name", ["C:data", "agentrewardbench:copy", "2025-01-01T10:00:00"])
def test_a_path_with_a_colon_is_a_path(
    name: str, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shop.rename(tmp_path / name)
    assert parse_source(f"./{name}") == ("trajudge", Path(name))
    assert parse_source(str(tmp_path / name)) == ("trajudge", tmp_path / name)


def test_a_windows_path_that_is_not_there_is_said_as_a_path() -> None:
    with pytest.raises(UserError, match=r"no such file or folder"):
        parse_source(r"C:\data\runs")


def test_a_kind_alone_needs_a_path_unless_it_can_be_fetched() -> None:
    assert parse_source("agentrewardbench") == ("agentrewardbench", None)
    with pytest.raises(UserError, match="write webvoyager:PATH"):
        open_source("webvoyager")


@pytest.mark.parametrize("spec", ["agentrewardbnch", "webvoyger:runs", "browser-gym"])
def test_a_misspelt_kind_gets_the_closest_name(spec: str) -> None:
    with pytest.raises(UserError, match="did you mean") as caught:
        parse_source(spec)
    assert spec in str(caught.value)


@pytest.mark.parametrize("spec", ["trajudge:", "trajudge:/no/such/folder"])
def test_a_kind_with_a_path_that_is_not_there(spec: str) -> None:
    with pytest.raises(UserError, match="no file or folder"):
        parse_source(spec)


def test_a_path_of_no_kind_names_the_kinds(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no known format.*online-mind2web"):
        parse_source(str(tmp_path))


def test_a_loader_without_its_data_is_told_how_to_be_called(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.touch()
    with pytest.raises(UserError, match=r"mine\.py: a loader needs its data: write .*\.py:PATH"):
        parse_source(str(file))


# What lies in TRAJUDGE_REAL_DATA, and the kind that each is detected as.
SAMPLES = {
    "formats/browser_use_0_1": "browser-use",
    "formats/browser_use_0_1/AgentHistoryList.json": "browser-use",
    "formats/browser_use_0_13": "browser-use",
    "formats/browser_use_0_13/run1": "browser-use",
    "formats/inspect_eval": "inspect",
    "formats/message_logs": "messages",
    "formats/osworld_style": "osworld",
    "formats/osworld_style/results": "osworld",
    "formats/playwright_trace": "playwright-trace",
    "formats/webarena_html": "webarena-html",
    "formats/webarena_html/render_4242.html": "webarena-html",
    "fara_trajectory": "fara",
    "webvoyager": "webvoyager",
    "online-mind2web": "online-mind2web",
}


@pytest.mark.real_data
@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_is_taken_by_the_loader_of_its_kind_alone(sample: str, real_data: Path) -> None:
    path = real_data / sample
    if not path.exists():
        pytest.skip(f"{sample} is not in TRAJUDGE_REAL_DATA")
    taken = [kind for kind in KINDS if loader(kind).detect(path)]
    assert taken == [SAMPLES[sample]] if SAMPLES[sample] in KINDS else taken == []


def test_the_registry_imports_no_loader() -> None:
    code = (
        "import sys; from trajudge.trajectories.loaders import KINDS;"
        "sys.exit(any(module in sys.modules for module in KINDS.values()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
