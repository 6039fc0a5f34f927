"""CUAVerifierBench from the hub: whole files by their hash, text without the screenshots' bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.hub_server import Hub, serve
from tests.trajectories.loaders.cua_made import RUNS, WEB, release, run, write
from tests.trajectories.loaders.made import split
from trajudge.annotations import open_annotations
from trajudge.eval.cli import main
from trajudge.trajectories.hub import Listed
from trajudge.trajectories.loaders import cuaverifierbench, open_source
from trajudge.trajectories.needs import NO_NEEDS

Published = Callable[[Path], Hub]


@pytest.fixture
def publish(monkeypatch: pytest.MonkeyPatch) -> Iterator[Published]:
    """Serve the files of a folder as the pinned revision."""
    running = []

    def start(folder: Path) -> Hub:
        files = {
            str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.parquet")
        }
        hub = Hub(files, commit=cuaverifierbench.REVISION, repo=cuaverifierbench.REPO)
        listed = {name: Listed(len(x), sha256(x).hexdigest()) for name, x in files.items()}
        monkeypatch.setattr(cuaverifierbench, "FILES", listed)
        running.append(serve(hub))
        running[-1].__enter__()
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        return hub

    yield start
    for server in running:
        server.__exit__(None, None, None)


def fetch(out: Path, *words: str) -> int:
    return main(["data", "fetch", "cuaverifierbench", "--out", str(out), *words])


def test_a_copy_is_what_was_published_and_works_offline(
    publish: Published, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = release(tmp_path / "made")
    hub = publish(made)
    out = tmp_path / "copy"
    assert fetch(out) == 0
    assert capsys.readouterr().err.startswith("microsoft/CUAVerifierBench (MIT), revision c19eb32:")
    for path in made.rglob("*.parquet"):
        assert (out / path.relative_to(made)).read_bytes() == path.read_bytes()
    assert split(open_source(str(out)))[0] == split(open_source(str(made)))[0]
    asked = len(hub.requests)
    assert fetch(out) == 0
    assert len(hub.requests) == asked
    assert "0 files fetched (0.0 MB), 5 were here already" in capsys.readouterr().err


@pytest.mark.slow
def test_text_alone_is_read_by_its_columns(publish: Published, tmp_path: Path) -> None:
    """As large as the published text: 2 MB of logs of 260 runs, beside 20 MB of pictures."""
    rng = np.random.default_rng(0)

    def picture(number: int) -> bytes:
        return rng.bytes(40_000)

    made = release(tmp_path / "made")
    rows = [
        run(f"Site--{n}", pictures=2, picture=picture, web_surfer_log=rng.bytes(3_700).hex())
        for n in range(260)
    ]
    large = write(made / "trajectories" / f"{WEB}-00002-of-00003.parquet", rows, RUNS, group=26)
    assert large.stat().st_size > 20e6
    hub = publish(made)
    out = tmp_path / "copy"
    assert fetch(out, "--no-images") == 0
    assert hub.sent <= 3e6
    text = out / "trajectories" / f"{WEB}-00002-of-00003.text.parquet"
    assert pq.read_table(text).equals(pq.read_table(large).drop(["screenshots"]))
    runs, [] = split(open_source(str(out), needs=NO_NEEDS))
    assert len(runs) == 266
    shown = runs[0].steps[0].observation.screenshot
    assert shown is not None
    assert "was left out when the data set was fetched" in str(shown.problem)
    assert open_annotations(str(out)) == open_annotations(str(made))
    asked = len(hub.requests)
    assert fetch(out, "--no-images") == 0
    assert len(hub.requests) == asked
    text.write_bytes(text.read_bytes()[:-1])
    assert fetch(out, "--no-images") == 0
    assert len(hub.requests) > asked
    assert pq.read_table(text).num_rows == 260


def test_the_screenshots_may_come_later(publish: Published, tmp_path: Path) -> None:
    made = release(tmp_path / "made")
    publish(made)
    out = tmp_path / "copy"
    assert fetch(out, "--no-images") == 0
    assert fetch(out) == 0
    assert not [*out.rglob("*.text.parquet")]
    assert split(open_source(str(out)))[0] == split(open_source(str(made)))[0]


def test_other_content_than_was_published_is_refused(
    publish: Published, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub = publish(release(tmp_path / "made"))
    name = f"trajectories/{WEB}-00000-of-00002.parquet"
    hub.files[name] = hub.files[name][:-1] + b"x"
    assert fetch(tmp_path / "copy") == 2
    assert f"lists {name} as" in capsys.readouterr().err
    assert not [*(tmp_path / "copy").rglob("*.parquet")]


def test_another_revision_needs_another_folder(
    publish: Published, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(release(tmp_path / "made"))
    assert fetch(tmp_path / "copy", "--no-images") == 0
    assert fetch(tmp_path / "copy", "--revision", "main") == 2
    assert "give another folder with --out" in capsys.readouterr().err


def test_options_of_another_data_set_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "fetch", "cuaverifierbench", "--screenshots", "all"]) == 2
    assert "--screenshots goes with agentrewardbench" in capsys.readouterr().err
    assert main(["data", "fetch", "agentrewardbench", "--no-images"]) == 2
    assert "--no-images goes with cuaverifierbench" in capsys.readouterr().err


def test_the_pinned_files() -> None:
    assert len(cuaverifierbench.FILES) == 6
    assert sum(entry.size for entry in cuaverifierbench.FILES.values()) == 1_502_610_192
    assert {len(entry.hash) for entry in cuaverifierbench.FILES.values()} == {64}
