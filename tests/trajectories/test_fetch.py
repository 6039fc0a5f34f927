"""Data that is fetched: what is asked for, what is kept and what is said."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from time import monotonic, sleep

import numpy as np
import orjson
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.hub_server import COMMIT, REPO, Hub, serve
from tests.tables import mistakes
from tests.trajectories.loaders.cua_made import RUNS, WEB, release, run, write
from tests.trajectories.loaders.made import split
from tests.worlds import agentrewardbench_like as like
from trajudge.annotations import open_annotations
from trajudge.eval.cli import main
from trajudge.trajectories import hub as hub_client
from trajudge.trajectories.hub import HubCopy, Listed
from trajudge.trajectories.loaders import agentrewardbench, cuaverifierbench, open_source
from trajudge.trajectories.model import Trajectory, Unreadable
from trajudge.trajectories.needs import ALL, FINAL, NO_NEEDS, Needs, Shown, last
from trajudge.util.errors import UserError

HEADER = "annotator_name,benchmark,task_id,model_name,exp_name,trajectory_success\n"
LAST = Needs(screenshots=FINAL)
EXPERIMENT = f"{like.AGENT}_on_webarena"


def png() -> bytes:
    buffer = BytesIO()
    Image.new("L", (2, 2)).save(buffer, "PNG")
    return buffer.getvalue()


def published(tasks: int = 3) -> Hub:
    """A dataset of a few trajectories of three steps."""
    rng = np.random.default_rng(0)
    hub = Hub()
    lines = [HEADER]
    for number in range(tasks):
        task_id = f"webarena.{number}"
        record = like.trajectory(rng, task_id=task_id, size=3_000)
        hub.files[f"cleaned/webarena/{like.AGENT}/{EXPERIMENT}/{task_id}.json"] = orjson.dumps(
            record
        )
        for step in range(3):
            hub.files[shot(number, step)] = png()
        for judge in ("aer", "nnetnav"):
            hub.files[f"judgments/webarena/{like.AGENT}/{judge}/{task_id}.json"] = b"{}"
        lines += [f"A,webarena,{task_id},{like.AGENT},{EXPERIMENT},Successful\n"] * 2
    hub.files[f"judgments/webarena/{like.AGENT}/aer/webarena.0_error.json"] = b"{}"
    hub.files["annotations.csv"] = "".join(lines).encode()
    return hub


def shot(task: int, step: int) -> str:
    return f"screenshots/webarena/{like.AGENT}/webarena.{task}/screenshot_step_{step}.png"


def json_path(task: int) -> str:
    return f"cleaned/webarena/{like.AGENT}/{EXPERIMENT}/webarena.{task}.json"


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serve(published()) as running:
        yield running


def copy_of(hub: Hub, folder: Path, revision: str | None = None) -> HubCopy:
    return HubCopy(folder, REPO, revision, hub.endpoint)


def test_only_what_is_wanted_is_fetched(hub: Hub, tmp_path: Path) -> None:
    copy = copy_of(hub, tmp_path)
    (found,) = agentrewardbench.load_published(
        lambda key: key.task_id == "webarena.1", copy=copy, needs=LAST
    )
    assert isinstance(found, Trajectory)
    assert found.raw_task_id == "webarena.1"
    assert found.final.screenshot
    assert found.final.screenshot.path
    assert set(hub.fetched()) == {"annotations.csv", json_path(1), shot(1, 2)}


@pytest.mark.parametrize(
    ("screenshots", "steps"),
    [
        ((), []),
        (FINAL, [2]),
        (last(2), [1, 2]),
        ((Shown(which="spread", count=2),), [0, 2]),
        ((*FINAL, Shown(which="spread", count=2)), [0, 2]),
        (ALL, [0, 1, 2]),
    ],
)
def test_exactly_the_needed_screenshots_are_fetched(
    hub: Hub, tmp_path: Path, screenshots: tuple[Shown, ...], steps: list[int]
) -> None:
    needs = Needs(screenshots=screenshots)
    (found, *_) = agentrewardbench.load_published(copy=copy_of(hub, tmp_path), needs=needs)
    assert isinstance(found, Trajectory)
    shots = [step.observation.screenshot for step in found.steps]
    assert [index for index, shot in enumerate(shots) if shot and shot.path] == steps
    assert {path for path in hub.fetched() if path.endswith(".png")} == {
        shot(task, step) for task in range(3) for step in steps
    }


@pytest.mark.parametrize(
    "part", [rb'"\ud83d"', b"NaN", b'"\xff"', b"[" * 100_000], ids=["half", "NaN", "bytes", "deep"]
)
def test_what_pythons_json_writes_has_its_screenshots_and_damage_ends_no_run(
    part: bytes, tmp_path: Path
) -> None:
    hub = published(2)
    hub.files[json_path(0)] = b'{"extra": ' + part + b", " + hub.files[json_path(0)][1:]
    with serve(hub):
        first, second = agentrewardbench.load_published(copy=copy_of(hub, tmp_path), needs=LAST)
    assert isinstance(second, Trajectory)
    if b"[" in part:
        assert isinstance(first, Unreadable)
    else:
        assert isinstance(first, Trajectory)
        assert first.final.screenshot


def test_a_complete_copy_works_offline_without_a_request(tmp_path: Path) -> None:
    with serve(published()) as hub:
        online = list(agentrewardbench.load_published(copy=copy_of(hub, tmp_path)))
    asked = len(hub.requests)
    offline = list(agentrewardbench.load_published(copy=copy_of(hub, tmp_path)))
    assert offline == online
    assert len(hub.requests) == asked
    assert offline == list(agentrewardbench.load(tmp_path))


def test_the_revision_is_resolved_once_and_kept(tmp_path: Path) -> None:
    with serve(published()) as hub:
        copy = copy_of(hub, tmp_path)
        agentrewardbench.download(copy, agentrewardbench.labelled_runs(copy)[:1])
        assert copy.revision == COMMIT
        again = copy_of(hub, tmp_path)
        agentrewardbench.download(again, agentrewardbench.labelled_runs(again))
        assert again.revision == COMMIT
    assert [path for method, path in hub.requests if method == "REVISION"] == ["main"]
    with pytest.raises(UserError, match=f"holds revision {COMMIT}.*--out"):
        copy_of(hub, tmp_path, "v2")
    assert copy_of(hub, tmp_path, COMMIT).revision == COMMIT


def test_an_unknown_revision_is_named(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no revision 'nope'"):
        agentrewardbench.load_published(copy=copy_of(hub, tmp_path, "nope"))


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_hub_in_trouble_is_asked_again(hub: Hub, tmp_path: Path, status: int) -> None:
    hub.trouble["annotations.csv"] = [(status, {"Retry-After": "0"})] * 2
    hub.trouble[json_path(0)] = [(status, {"Retry-After": "0"})]
    hub.trouble[f"content/{json_path(1)}"] = [(status, {"Retry-After": "0"})]
    copy = copy_of(hub, tmp_path)
    assert len(list(agentrewardbench.load_published(copy=copy))) == 3
    assert not copy.missing


def test_the_hub_says_how_long_to_wait(hub: Hub, tmp_path: Path) -> None:
    hub.trouble["annotations.csv"] = [(429, {"Retry-After": "2"})]
    start = monotonic()
    agentrewardbench.labelled_runs(copy_of(hub, tmp_path))
    assert monotonic() - start >= 2


def test_a_hub_that_stays_in_trouble_is_given_up_with_its_answer(hub: Hub, tmp_path: Path) -> None:
    hub.trouble["annotations.csv"] = [(503, {"Retry-After": "0"})] * 99
    with pytest.raises(UserError, match="answered 503"):
        agentrewardbench.labelled_runs(copy_of(hub, tmp_path))


def test_nothing_is_asked_about_a_file_before_it_is_fetched(tmp_path: Path) -> None:
    with serve(published(tasks=20)) as hub:
        assert len(list(agentrewardbench.load_published(copy=copy_of(hub, tmp_path)))) == 20
    asked = [(method, path) for method, path in hub.requests if path != "annotations.csv"]
    methods = Counter(method for method, _ in asked)
    # What is resolved is then given by the "CDN", by the plain GET.
    assert methods == {"REVISION": 1, "GET resolve": 80, "GET": 80, "TREE": 3}


def test_a_file_that_keeps_failing_is_unreadable_and_asked_for_again(
    hub: Hub, tmp_path: Path
) -> None:
    hub.trouble[json_path(0)] = [(503, {"Retry-After": "0"})] * 5
    hub.trouble[f"content/{shot(1, 2)}"] = [(500, {"Retry-After": "0"})] * 5
    first, second, third = agentrewardbench.load_published(copy=copy_of(hub, tmp_path))
    assert isinstance(first, Unreadable)
    assert "answered 503; try again later" in first.reason
    assert first.key
    assert first.key.task_id == "webarena.0"
    assert isinstance(second, Unreadable)
    assert f"cannot fetch {shot(1, 2)}" in second.reason
    assert isinstance(third, Trajectory)
    again = list(agentrewardbench.load_published(copy=copy_of(hub, tmp_path)))
    assert [type(item) for item in again] == [Trajectory] * 3


@pytest.mark.parametrize("path", [json_path(1), shot(1, 0)])
def test_content_that_is_not_what_was_listed_is_not_kept(
    hub: Hub, tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_client, "_wait", lambda otherwise, state: 0.0)
    good = hub.files[path]
    hub.listed[path] = good
    hub.files[path] = good[:-1] + bytes([good[-1] ^ 255])
    _, found, _ = agentrewardbench.load_published(copy=copy_of(hub, tmp_path))
    assert isinstance(found, Unreadable)
    assert "broken" in found.reason
    assert not (tmp_path / path).exists()
    assert not [*tmp_path.rglob(".fetching-*")]
    hub.files[path] = good
    _, found, _ = agentrewardbench.load_published(copy=copy_of(hub, tmp_path))
    assert isinstance(found, Trajectory)


def test_a_hub_that_fails_for_every_file_ends_the_run(tmp_path: Path) -> None:
    with serve(published(tasks=20)) as hub:
        for number in range(20):
            hub.trouble[json_path(number)] = [(503, {"Retry-After": "0"})] * 99
        with pytest.raises(UserError, match=r"answered 503.*requests failed in a row"):
            list(agentrewardbench.load_published(copy=copy_of(hub, tmp_path)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "token", "sentence"),
    [
        (401, "", "terms on that page with your account, then set HF_TOKEN to a token of that"),
        (403, "hf_mine", "accept its terms on that page with the account whose token is set"),
    ],
)
def test_a_gated_dataset_says_which_token_and_where_its_terms_are(
    hub: Hub, tmp_path: Path, status: int, token: str, sentence: str
) -> None:
    hub.trouble["annotations.csv"] = [(status, {"X-Error-Code": "GatedRepo"})] * 9
    home = {"HF_HOME": str(tmp_path / "home"), "HF_TOKEN": token}
    done = command(hub, tmp_path / "copy", **home)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert f"{hub.endpoint}/datasets/{REPO} is gated" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_command_names_what_it_could_not_fetch(
    hub: Hub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    hub.trouble[json_path(0)] = [(503, {"Retry-After": "0"})] * 5
    words = ["data", "fetch", "agentrewardbench", "--out", str(tmp_path)]
    assert main(words) == 1
    assert f"not fetched: cannot fetch {json_path(0)}" in capsys.readouterr().err
    assert main(words) == 0


def test_a_body_that_breaks_off_is_resumed(hub: Hub, tmp_path: Path) -> None:
    hub.cut[json_path(0)] = 1
    found = list(agentrewardbench.load_published(copy=copy_of(hub, tmp_path)))
    assert [type(item) for item in found] == [Trajectory] * 3
    assert (tmp_path / json_path(0)).read_bytes() == hub.files[json_path(0)]


def test_a_file_that_the_hub_lacks_is_named_counted_and_not_asked_for_again(
    hub: Hub, tmp_path: Path
) -> None:
    del hub.files[json_path(1)]
    del hub.files[shot(2, 2)]
    copy = copy_of(hub, tmp_path)
    first, lacking, rest = agentrewardbench.load_published(copy=copy)
    assert isinstance(first, Trajectory)
    assert isinstance(lacking, Unreadable)
    assert lacking.source == json_path(1)
    assert COMMIT in lacking.reason
    assert isinstance(rest, Trajectory)
    assert rest.final.screenshot
    assert "missing" in (rest.final.screenshot.problem or "")
    assert sorted(copy.missing) == sorted([json_path(1), shot(2, 2)])
    asked = len(hub.requests)
    assert len(list(agentrewardbench.load_published(copy=copy_of(hub, tmp_path)))) == 3
    assert len(hub.requests) == asked


def test_only_a_few_are_fetched_ahead_of_the_reader(tmp_path: Path) -> None:
    with serve(published(tasks=20)) as hub:
        found = agentrewardbench.load_published(copy=copy_of(hub, tmp_path))
        next(found)
        sleep(0.7)  # what was begun may end; nothing else may begin
        assert len(set(hub.fetched()) & {json_path(n) for n in range(20)}) < 10
        assert len(list(found)) == 19


def test_a_reader_that_stops_early_stops_the_fetching(tmp_path: Path) -> None:
    hub = published(tasks=30)
    with serve(hub):
        found = agentrewardbench.load_published(copy=copy_of(hub, tmp_path))
        next(found)
        found.close()  # type: ignore[attr-defined]
    assert json_path(29) not in hub.fetched()


def test_a_hub_that_cannot_be_reached_is_said_with_the_mend(tmp_path: Path) -> None:
    with serve(Hub()) as hub:
        endpoint = hub.endpoint
    with pytest.raises(UserError, match=f"{endpoint}.*no connection.*HF_ENDPOINT.*:PATH"):
        agentrewardbench.load_published(copy=HubCopy(tmp_path, REPO, None, endpoint))


def test_a_dataset_that_is_not_there_is_said(hub: Hub, tmp_path: Path) -> None:
    copy = HubCopy(tmp_path, "somebody/else", None, hub.endpoint)
    with pytest.raises(UserError, match="no such dataset"):
        agentrewardbench.load_published(copy=copy)


def test_a_refusal_names_the_token(hub: Hub, tmp_path: Path) -> None:
    hub.trouble["annotations.csv"] = [(403, {})] * 9
    with pytest.raises(UserError, match="answered 403; set HF_TOKEN"):
        agentrewardbench.load_published(copy=copy_of(hub, tmp_path))


def test_paths_of_the_dataset_stay_inside_its_folder(hub: Hub, tmp_path: Path) -> None:
    line = f"A,webarena,../../../../../x,{like.AGENT},{EXPERIMENT},Successful\n"
    hub.files["annotations.csv"] = (HEADER + line).encode()
    with pytest.raises(UserError, match="leads outside"):
        list(agentrewardbench.load_published(copy=copy_of(hub, tmp_path)))


def test_judgments_are_those_of_the_rows_and_judges(hub: Hub, tmp_path: Path) -> None:
    copy = copy_of(hub, tmp_path)
    first = agentrewardbench.labelled_runs(copy)[:1]
    agentrewardbench.download(copy, first, ["judgments"], judges=["aer"])
    fetched = sorted(p.name for p in (tmp_path / "judgments").rglob("*.json"))
    assert fetched == ["webarena.0.json", "webarena.0_error.json"]
    asked = len(hub.requests)
    agentrewardbench.download(copy_of(hub, tmp_path), first, ["judgments"], judges=["aer"])
    assert len(hub.requests) == asked


FETCH = [sys.executable, "-m", "trajudge.eval.cli", "data", "fetch", "agentrewardbench"]


def command(
    hub: Hub, folder: Path, *arguments: str, **more: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*FETCH, *arguments],
        env={**os.environ, "HF_ENDPOINT": hub.endpoint, "TRAJUDGE_DATA": str(folder), **more},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_command_fetches_and_says_what_it_did(hub: Hub, tmp_path: Path) -> None:
    del hub.files[json_path(2)]
    done = command(hub, tmp_path, "--benchmark", "webarena", "--agent", like.AGENT)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{tmp_path}\n"
    assert f"not in the dataset: {json_path(2)}" in done.stderr
    assert "5 files fetched" in done.stderr
    assert COMMIT in done.stderr
    again = command(hub, tmp_path)
    assert "0 files fetched" in again.stderr


@pytest.mark.slow
@mistakes(
    """
    --benchmark webarna => --benchmark 'webarna' is not in AgentRewardBench: there are
    --what everything => --what 'everything' is none of trajectories
    --revision v9 => no revision 'v9'
    """
)
def test_the_users_mistake_is_one_sentence_and_exit_code_2(
    hub: Hub, tmp_path: Path, words: list[str], sentence: str
) -> None:
    done = command(hub, tmp_path, *words)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_copy_on_the_machine_is_found(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAJUDGE_DATA", str(tmp_path))
    assert agentrewardbench.local_copy() is None
    list(agentrewardbench.load_published(copy=copy_of(hub, tmp_path)))
    assert agentrewardbench.local_copy() == tmp_path


def test_importing_the_command_imports_no_hub_client() -> None:
    module = "trajudge.trajectories.loaders.agentrewardbench"
    code = f"import sys, {module}; sys.exit('huggingface_hub.file_download' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_folder_that_cannot_be_written_is_the_users_mistake(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write"):
        agentrewardbench.labelled_runs(copy_of(hub, tmp_path / "file" / "x"))


def test_the_kind_alone_is_the_benchmark_fetched_as_it_is_read(hub: Hub, tmp_path: Path) -> None:
    code = (
        "from trajudge.trajectories.loaders import open_source as o; "
        "print(len(list(o('agentrewardbench'))))"
    )
    env = {**os.environ, "HF_ENDPOINT": hub.endpoint, "TRAJUDGE_DATA": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout == "3\n"
    assert "fetching: 3/3, 13 files" in done.stderr


@pytest.mark.slow
def test_a_fetch_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    with serve(published(tasks=20)) as hub:
        env = {**os.environ, "HF_ENDPOINT": hub.endpoint, "TRAJUDGE_DATA": str(tmp_path)}
        process = subprocess.Popen(FETCH, env=env, stderr=subprocess.DEVNULL)
        while json_path(5) not in hub.fetched():
            assert process.poll() is None
            sleep(0.01)
        process.kill()
        process.wait()
        found = list(agentrewardbench.load_published(copy=copy_of(hub, tmp_path)))
        assert [type(item) for item in found] == [Trajectory] * 20
        assert hub.fetched().count(json_path(0)) == 1
        for path in [json_path(n) for n in range(20)]:
            assert (tmp_path / path).read_bytes() == hub.files[path]


@pytest.mark.real_data
def test_the_real_annotations_name_1302_trajectories(arb: Path, tmp_path: Path) -> None:
    (tmp_path / "annotations.csv").symlink_to(arb / "annotations.csv")
    found = agentrewardbench.labelled_runs(HubCopy(tmp_path, REPO))
    assert len(found) == len({row.key for row in found}) == len({row.path for row in found}) == 1302


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
