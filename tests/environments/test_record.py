"""Recording in a real Chromium: the text of the sample again, labels as intended, pages that hold
their tongue and take any text."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from annotations import store as annotation_store
from environments import record as recorder
from environments.agents import AGENTS
from environments.browser import ORIGIN, Session, launch, open_session
from environments.run import Recorded, record
from environments.tasks import TASKS
from trajectories import store
from trajectories.errors import UserError
from trajectories.model import Trajectory
from trajectories.sample import sample_path

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[2]
SUBSET = ["best-backpack", "change-address"]


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Browser]:
    pytest.importorskip("playwright")
    with launch() as running:
        yield running


@pytest.fixture
def session(browser: Browser) -> Iterator[Session]:
    with open_session(browser) as opened:
        yield opened


@pytest.fixture(scope="module")
def runs(browser: Browser) -> list[Recorded]:
    return [record(browser, TASKS[task], agent, 0) for task in SUBSET for agent in AGENTS]


def text_of(trajectory: Trajectory) -> dict[str, Any]:
    """Everything but the pictures and what is in view: they depend on Chromium and its fonts."""
    without = {"steps": {"__all__": {"observation": {"screenshot"}}}}
    record = trajectory.model_dump(exclude=without)
    for step in record["steps"]:
        for form in ("axtree", "axtree_pruned"):
            step["observation"][form] = step["observation"][form].replace(", visible", "")
    return record


def bundled() -> dict[str, Trajectory]:
    return {str(t.key): t for t in store.read(sample_path()) if isinstance(t, Trajectory)}


def act_on(session: Session, name: str, *arguments: str, do: str = "click") -> str | None:
    """Act on the element with this accessible name."""
    bid = next(element.bid for element in session.observe().elements if element.name == name)
    return session.act(f"{do}{(bid, *arguments)!r}".replace(",)", ")"))


@pytest.mark.browser
def test_a_recording_repeats_the_text_of_the_sample(runs: list[Recorded]) -> None:
    known = bundled()
    for run in runs:
        assert text_of(run.trajectory) == text_of(known[str(run.trajectory.key)])


@pytest.mark.browser
def test_labels_of_a_recording_repeat_those_of_the_sample(runs: list[Recorded]) -> None:
    lines = (sample_path() / "labels.jsonl").read_text().splitlines()
    known = [json.loads(line) for line in lines]
    assert all(recorder.annotation(run) in known for run in runs)


@pytest.mark.browser
def test_pages_ask_for_nothing_outside_of_their_origin(runs: list[Recorded]) -> None:
    asked = [url for run in runs for url in run.requests]
    assert asked
    assert {url for url in asked if not url.startswith((ORIGIN + "/", "data:"))} == set()


@pytest.mark.browser
def test_no_other_host_can_be_reached(session: Session) -> None:
    reached = session.page.evaluate(
        "() => fetch('http://127.0.0.2:9/', {mode: 'no-cors'}).then(() => true, () => false)"
    )
    assert reached is False


@pytest.mark.browser
def test_what_a_recording_wrote_is_read_back(runs: list[Recorded], tmp_path: Path) -> None:
    file = recorder.write(tmp_path, runs)
    back = list(store.read(file))
    assert [text_of(t) for t in back if isinstance(t, Trajectory)] == [
        text_of(run.trajectory) for run in runs
    ]
    assert len(annotation_store.load(tmp_path / "labels.jsonl")) == len(runs)
    again = recorder.write(tmp_path / "again", runs)
    assert again.read_bytes() == file.read_bytes()


MARKUP = '<img src=x onerror="window.ran = true"><script>window.ran = true</script>\'"'


@pytest.mark.browser
def test_text_that_looks_like_markup_stays_text(session: Session) -> None:
    assert act_on(session, "Search", MARKUP, do="fill") is None
    act_on(session, "Apply")
    assert MARKUP in session.page.inner_text("h1")
    act_on(session, "Account")
    act_on(session, "Name", MARKUP, do="fill")
    act_on(session, "Save address")
    assert MARKUP in session.page.inner_text("#saved")
    act_on(session, "Contact us")
    for field, text in (("Your name", MARKUP), ("Your email", "a@b.example"), ("Message", MARKUP)):
        act_on(session, field, text, do="fill")
    act_on(session, "Send message")
    assert session.state()["messages"][0]["message"] == MARKUP
    assert session.page.inner_text("#sent").count(MARKUP) == 2
    assert session.page.evaluate("() => window.ran") is None
    assert session.page.locator("main img, main script").count() == 0


@pytest.mark.browser
@pytest.mark.parametrize(
    ("action", "error"),
    [
        ("click('9999')", "no element with bid '9999'"),
        ("click('\"] *')", "no element with bid"),
        ("fill('0', 'x')", "takes no text"),
        ("fill('25', 'many')", "Error: "),
        ("select_option('16', 'Boats')", "no option 'Boats'"),
        ("goto('javascript:alert(1)')", "is outside of"),
        ("goto('http://shop.localhost.evil.example/')", "is outside of"),
        ("goto('file:///etc/passwd')", "is outside of"),
        ("import os", "BadAction"),
    ],
)
def test_an_action_that_cannot_be_done_is_an_error_and_changes_nothing(
    session: Session, action: str, error: str
) -> None:
    before = session.observe().observation
    assert error in (session.act(action) or "")
    assert session.observe().observation == before


@pytest.mark.browser
def test_a_disabled_button_refuses_the_click(session: Session) -> None:
    session.act(f"goto('{ORIGIN}/product.html?id=clip-lamp')")
    assert "is disabled" in (act_on(session, "Add to cart") or "")


@pytest.mark.browser
def test_moving_about(session: Session) -> None:
    act_on(session, "Orders")
    assert session.page.url == f"{ORIGIN}/orders.html"
    assert session.act("go_back()") is None
    assert session.page.url == f"{ORIGIN}/"
    assert session.act("scroll(0, 300)") is None
    session.page.wait_for_function("() => scrollY > 0")
    assert session.act("noop()") is None


@pytest.mark.browser
def test_the_command_says_what_it_wrote(chromium: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "environments.record", "--out", str(tmp_path)]
    chosen = ["--tasks", "change-address", "--agents", "scripted-d"]
    done = subprocess.run([*command, *chosen], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("1 trajectories in ")
    assert len(list(store.read(tmp_path))) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--tasks", "fly"], "no task is called 'fly'"),
        (["--agents", "bond"], "no agent is called 'bond'"),
        (["--seed", "-1"], "--seed is -1"),
    ],
)
def test_a_mistake_is_one_sentence(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert recorder.main(["--out", str(tmp_path), *options]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_a_folder_that_cannot_be_made_is_said_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert recorder.main(["--out", str(tmp_path / "file" / "deep")]) == 2
    assert "cannot be made" in capsys.readouterr().err


def test_without_a_browser_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="apt-get install chromium"), launch():
        pass


def test_without_playwright_the_command_says_which_extra_to_install(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['playwright'] = None\n"
        "from environments.record import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'trajudge[browser]'" in done.stderr
    assert "Traceback" not in done.stderr
