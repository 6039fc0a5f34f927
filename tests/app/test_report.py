"""``trajudge report``: one file that opens anywhere, holds what it must and nothing that runs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.app.browsing import complaints, launched
from tests.app.made_runs import Task, png, write_run
from tests.app.payloads import payloads
from tests.eval.cases import key
from trajudge.app.report import Album, FilledPage
from trajudge.app.report_content import Content, report_content
from trajudge.app.settings import ReportConfig
from trajudge.eval.cli import main as trajudge
from trajudge.eval.judge import main as judge
from trajudge.eval.settings import ScoreConfig
from trajudge.eval.store.run_folder import JUDGMENTS, judgment_line, read_judgments, write_rewards
from trajudge.trajectories import store
from trajudge.trajectories.model import ImageRef, Trajectory
from trajudge.util.errors import UserError
from trajudge.util.files import without_surrogates

GOAL, ANSWER, ADDRESS = "Order the blue kettle", "It costs 31 crowns", "http://shop.test/kettle"
SECRET = Task(
    "secret", False, True, GOAL, ANSWER, f"The goal was: {GOAL}", f"goto('{ADDRESS}')", ADDRESS
)
# Four more that are wrongly accepted, two that are rightly, three that are wrongly rejected.
MIXED = [SECRET, *(Task(str(place), place > 3, place < 6) for place in range(9))]


@pytest.fixture(scope="module")
def browser(chromium: Path, sample_report: Path) -> Iterator[Browser]:
    """Started when the judges are done: each wants an event loop of its own."""
    with launched(chromium) as browser:
        yield browser


@pytest.fixture(scope="module")
def sample_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on two judges of the bundled sample."""
    folder = tmp_path_factory.mktemp("report")
    words = ["--judge", "heuristic", "--judge", "rule-based", "--data", "sample"]
    assert judge([*words, "--out", str(folder / "runs")]) == 0
    report_again(folder / "report.html", folder / "runs")
    return folder / "report.html"


def report_again(out: Path, runs: Path, *words: str) -> int:
    """Write the report of all runs in a folder; without the baselines, which fit regressions."""
    folders = map(str, sorted(runs.iterdir()))
    words = ("--baselines", "off", "--show", "20", *words)
    return trajudge(["report", *folders, "--out", str(out), *words])


def written(tmp_path: Path, tasks: list[Task], *words: str) -> str:
    run, out = write_run(tmp_path, tasks), tmp_path / "report.html"
    words = ("--baselines", "off", *words)
    assert trajudge(["report", str(run), "--out", str(out), *words]) == 0
    return out.read_text(encoding="utf-8")


def watched(browser: Browser, file: Path, **context: object) -> tuple[Page, list[str]]:
    """The page, and what it asked for or complained of."""
    page = browser.new_context(**context).new_page()  # type: ignore[arg-type]
    events = complaints(page, "data:")
    page.goto(file.as_uri())
    return page, events


@pytest.mark.browser
@pytest.mark.parametrize("scripts", [True, False])
def test_it_opens_from_the_disk_without_a_request(
    browser: Browser, sample_report: Path, scripts: bool
) -> None:
    page, events = watched(browser, sample_report, java_script_enabled=scripts)
    assert events == [sample_report.as_uri()]
    assert page.locator(".case").count() == 20
    assert page.locator(".case >> nth=0").is_visible()
    assert page.locator(".filter").is_visible() is scripts


@pytest.mark.browser
def test_its_script_sorts(browser: Browser, sample_report: Path) -> None:
    page, events = watched(browser, sample_report)
    column = page.locator("section:has(#judges) tbody tr td:nth-child(4)")
    page.get_by_role("button", name="recall %").first.click()
    recalls = [float(text.split()[0]) for text in column.all_inner_texts()]
    assert recalls == sorted(recalls, reverse=True)
    assert events == [sample_report.as_uri()]


@pytest.mark.browser
def test_its_script_filters(browser: Browser, tmp_path: Path) -> None:
    written(tmp_path, MIXED)
    page, _ = watched(browser, tmp_path / "report.html")
    shown = page.locator(".case:visible h3")
    page.get_by_label("and a").select_option("false negative")
    assert shown.all_inner_texts() == [
        f"{number} Buy a mug agent, webarena.{task} false negative"
        for number, task in ((6, 6), (7, 7), (8, 8))
    ]
    page.get_by_label("Show the cases with").fill("kettle")
    assert page.locator("#count").inner_text() == "0 of 8"
    page.get_by_label("and a").select_option("wrong verdict")
    assert page.locator("#count").inner_text() == "1 of 8"


@pytest.mark.browser
@pytest.mark.parametrize("scripts", [True, False])
def test_cases_are_folded_but_the_first(
    browser: Browser, sample_report: Path, scripts: bool
) -> None:
    telephone = {"width": 390, "height": 800}
    page, _ = watched(browser, sample_report, viewport=telephone, java_script_enabled=scripts)
    bodies = page.locator(".case .two")
    visible = "bodies => bodies.map(body => body.checkVisibility())"
    assert bodies.evaluate_all(visible) == [True] + [False] * 19
    page.goto(f"{sample_report.as_uri()}#case-7")  # an address that was sent unfolds its case
    expect(bodies.nth(6)).to_be_visible()
    assert bodies.evaluate_all(visible).count(True) == 2
    if scripts:
        for name, shown in (("Unfold all", 20), ("Fold all", 0)):
            page.get_by_role("button", name=name).press("Enter")
            assert bodies.evaluate_all(visible).count(True) == shown
    page.emulate_media(media="print")
    assert bodies.evaluate_all(visible) == [True] * 20


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Browser, tmp_path: Path, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    written(tmp_path, MIXED)
    # A policy that allows this page's own script alone would keep the checker out.
    page, _ = watched(browser, tmp_path / "report.html", color_scheme=scheme, bypass_csp=True)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.browser
@pytest.mark.parametrize("width", [320, 1280])
def test_no_width_makes_the_page_scroll_sideways(
    browser: Browser, sample_report: Path, width: int
) -> None:
    page, _ = watched(browser, sample_report, viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.browser
def test_no_column_is_cut_off_on_paper(browser: Browser, sample_report: Path) -> None:
    paper = {"width": 688, "height": 1000}  # A4 without its margins, at 96 points an inch
    page, _ = watched(browser, sample_report, viewport=paper)
    page.emulate_media(media="print")
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    edges = "cells => cells.map(cell => cell.getBoundingClientRect().right)"
    assert max(page.locator("th, td").evaluate_all(edges)) <= 688


@pytest.mark.browser
def test_hostile_text_stays_text(browser: Browser, tmp_path: Path) -> None:
    texts = [*payloads()]
    assert len(texts) >= 200
    tasks = [
        Task(f"{at}{without_surrogates(text)[:60]}", False, True, text, text, text, text, text)
        for at, text in enumerate(texts)
    ]
    written(tmp_path, tasks, "--show", "1000", "--no-images")
    page, events = watched(browser, tmp_path / "report.html")
    page.keyboard.press("Tab")
    page.wait_for_timeout(200)
    assert events == [(tmp_path / "report.html").as_uri()]
    assert page.evaluate("window.pwned") is None
    assert page.locator(".case").count() == len(texts)
    assert page.locator(".case iframe, .case script, .case [onload], .case form").count() == 0


@pytest.mark.slow
def test_the_same_runs_give_the_same_bytes(tmp_path: Path, sample_report: Path) -> None:
    report_again(tmp_path / "again.html", sample_report.parent / "runs")
    assert (tmp_path / "again.html").read_bytes() == sample_report.read_bytes()


@pytest.mark.slow
def test_it_is_no_larger_than_allowed(
    tmp_path: Path, sample_report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, out = sample_report.parent / "runs", tmp_path / "small.html"
    assert report_again(out, runs, "--max-size", "0.4") == 0
    assert 200_000 < out.stat().st_size <= 400_000
    assert "did not fit into 0.4 MB" in " ".join(capsys.readouterr().out.split())
    assert report_again(out, runs, "--max-size", "0.02") == 2
    assert "allow more, or show fewer cases with --show" in capsys.readouterr().err
    assert out.stat().st_size > 200_000


def test_the_figures_are_those_of_score(
    sample_report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = sample_report.read_text(encoding="utf-8")
    runs = [str(run) for run in sorted((sample_report.parent / "runs").iterdir())]
    capsys.readouterr()
    assert trajudge(["score", *runs, "--json", "--baselines", "off"]) == 0
    (text,) = re.findall(r'<script type="application/json" id="results">(.*?)</script>', page)
    assert json.loads(text)["results"] == json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("redact", "gone"),
    [
        ("goals", (GOAL,)),
        ("answers", (ANSWER,)),
        ("urls", (ADDRESS,)),
        ("goals,urls,answers", (GOAL, ANSWER, ADDRESS)),
    ],
)
def test_what_is_redacted_stands_nowhere(
    redact: str, gone: tuple[str, ...], tmp_path: Path
) -> None:
    whole = written(tmp_path / "whole", [SECRET])
    assert all(text in whole for text in gone)
    page = written(tmp_path / "redacted", [SECRET], "--redact", redact)
    assert not any(text in page for text in gone)
    assert "data:image" not in page
    assert f"Left out: {redact.replace(',', ', ')}." in page


def test_no_path_of_the_machine_stands_in_it(tmp_path: Path) -> None:
    assert str(tmp_path) not in written(tmp_path, [SECRET])


def test_images_can_be_left_out(tmp_path: Path) -> None:
    assert "data:image/jpeg" in written(tmp_path / "with", [SECRET])
    assert "data:image" not in written(tmp_path / "without", [SECRET], "--no-images")


@pytest.mark.browser
def test_a_folder_holds_every_screenshot(
    browser: Browser, tmp_path: Path, sample_report: Path
) -> None:
    runs, folder = sorted((sample_report.parent / "runs").iterdir()), tmp_path / "folder"
    words = [
        "report",
        *map(str, runs),
        "--baselines",
        "off",
        "--show",
        "20",
        "--folder",
        str(folder),
    ]
    assert trajudge([*words, "--max-size", "0.1"]) == 0
    first = {file: file.read_bytes() for file in folder.rglob("*.*")}
    page, events = watched(browser, folder / "index.html", java_script_enabled=False)
    sources = "all => all.map(image => image.complete && image.naturalWidth && image.src)"
    page.locator(".case img").last.scroll_into_view_if_needed()
    page.wait_for_load_state("networkidle")
    shown = page.locator(".case img").evaluate_all(sources)
    assert all(shown)
    assert {*shown, (folder / "index.html").as_uri()} == {file.as_uri() for file in first}
    assert {*events} <= {file.as_uri() for file in first}
    assert trajudge(words) == 0
    assert {file: file.read_bytes() for file in folder.rglob("*.*")} == first
    # What is left out now does not stay from before.
    assert trajudge([*words, "--redact", "urls"]) == 0
    assert [*folder.rglob("*.*")] == [folder / "index.html"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "nothing to report: give the folder of a run"),
        (["absent"], "is not the folder of a run"),
        (["RUN", "--redact", "names"], "--redact"),
        (["RUN", "--data", "trajudge:absent"], "there is no file or folder 'absent'"),
        (["RUN", "--out", "/proc/no/report.html"], "cannot be written"),
        (["RUN", "--out", "a.html", "--folder", "b"], "give one of them"),
    ],
)
def test_bad_input_is_one_sentence(
    words: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    run = str(write_run(tmp_path, [SECRET]))
    words = [run if word == "RUN" else word for word in words]
    assert trajudge(["report", "--baselines", "off", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert sentence in line


def test_its_first_screen_fits(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    width: int,
    screen_lines: Callable[[], list[str]],
) -> None:
    monkeypatch.chdir(tmp_path)
    written(Path(), [SECRET])
    assert any(line.startswith("report.html: ") for line in screen_lines())


def test_a_device_is_written_to_and_stays_one(tmp_path: Path) -> None:
    """As root, a file took the place of ``/dev/stdout``."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as other:
        content = other.submit(pipe.read_bytes)
        words = ["--baselines", "off", "--out", str(pipe)]
        assert trajudge(["report", *words, str(write_run(tmp_path, [SECRET]))]) == 0
        assert pipe.is_fifo()
        assert content.result(timeout=60).startswith(b"<!doctype html>")


def tasks(accepted: set[int]) -> list[Task]:
    return [Task(str(n), truth=n % 2 == 0, verdict=n in accepted) for n in range(6)]


def test_no_sentence_of_many_judges_is_cut_in_the_middle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, screen_lines: Callable[[], list[str]]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [f"a-judge-whose-name-is-long-{number}" for number in range(9)]
    runs = [write_run(Path(name), tasks({n % 6}), judge=name) for n, name in enumerate(names)]
    runs.append(write_run(Path("all"), tasks({*range(6)}), judge="all"))
    assert trajudge(["report", "--baselines", "off", *map(str, runs)]) == 0
    shown = screen_lines()
    assert "10 judges on" in shown[0]
    assert " more" in "\n".join(shown)
    assert "…" not in "\n".join(shown)


WRONGLY_ACCEPTED = Task("accepted", False, True)
TASKS = [
    Task("rejected", True, False),
    WRONGLY_ACCEPTED,
    Task("right", True, True),
    Task("unsure", None, True),
    Task("silent", False, None),
]


def content(*runs: Path, show: int = 10) -> Content:
    score = ScoreConfig(runs=runs, baselines="off")
    return report_content(ReportConfig(score=score, show=show))


def names(shown: Content) -> list[str]:
    return [one.case.key.task_id.removeprefix("webarena.") for one in shown.cases]


def test_wrongly_accepted_ones_come_first_and_right_ones_not_at_all(tmp_path: Path) -> None:
    shown = content(write_run(tmp_path, TASKS))
    assert names(shown) == ["accepted", "rejected"]
    assert shown.wrong == 2
    assert [one.case.kinds for one in shown.cases] == ["false positive", "false negative"]


def test_what_more_judges_accept_comes_before(tmp_path: Path) -> None:
    first = write_run(tmp_path / "a", [*TASKS, Task("both", False, True)], judge="first")
    second = write_run(tmp_path / "b", [Task("both", False, True)], judge="second")
    shown = content(first, second)
    assert names(shown)[0] == "both"
    assert [v.outcome for v in shown.cases[0].case.verdicts] == ["false positive"] * 2


def test_the_rest_is_counted(tmp_path: Path) -> None:
    shown = content(write_run(tmp_path, TASKS), show=1)
    assert (names(shown), shown.wrong) == (["accepted"], 2)


def test_a_trajectory_that_is_gone_is_said(tmp_path: Path) -> None:
    run = write_run(tmp_path, TASKS)
    (tmp_path / "data" / "trajectories.jsonl").unlink()
    shown = content(run)
    assert [one.evidence for one in shown.cases] == [None, None]
    assert any("2 of 2 cases are shown without goal" in line for line in shown.warnings())


def test_of_as_many_judges_the_rule_and_then_the_score_decide(tmp_path: Path) -> None:
    scores = {"low": 0.6, "ruled": 0.5, "high": 0.9, "half": 0.55}
    tasks = [Task(name, False, True) for name in scores] + [Task("right", True, True)]
    scores |= {"right": 0.9, "unsure": 0.4, "sure": 0.1}
    run = write_run(tmp_path, [*tasks, Task("unsure", True, False), Task("sure", True, False)])
    lines = [
        judgment_line(one.model_copy(update={"score": scores[one.key.task_id[9:]]}))
        for one in read_judgments(run)
    ]
    (run / JUDGMENTS).write_bytes(b"".join(lines))
    rewards = {"ruled": 1.0, "right": 1.0, "sure": 1.0, "half": 0.5}  # half of one is no success
    write_rewards(run, {key(name): rewards.get(name, 0.0) for name in scores})
    assert names(content(run)) == ["ruled", "high", "low", "half", "sure", "unsure"]


def test_pictures_stand_in_a_page_up_to_its_last_byte() -> None:
    album = Album()
    one = album.mark(ImageRef(data=png()), "One")
    two = album.mark(ImageRef(data=png(shade=9)), "Two", "Another")
    page = f"{'x' * 2_000_000}{one}y{two}z"

    def filled(size: int) -> FilledPage:
        return album.fill(page, ReportConfig(score=ScoreConfig(), max_size=size / 1e6))

    whole = filled(10_000_000)
    assert whole[1:] == (2, 0)
    assert whole.content.count(b'alt="One"') == whole.content.count(b'alt="Another"') == 1
    assert filled(len(whole.content)) == whole
    part = filled(len(whole.content) - 1)
    assert part[1:] == (1, 1)
    assert part.content.partition(b"y<span")[0] == whole.content.partition(b"y<img")[0]
    bare = 2_000_002 + 2 * len(part.content[part.content.index(b"<span") : -1])
    assert len(filled(bare).content) == bare
    assert filled(bare)[1:] == (0, 2)
    with pytest.raises(UserError, match=r"the report takes 2\.0 MB without pictures"):
        filled(bare - 1)
    with pytest.raises(UserError, match=r"the report takes 2\.0 MB without pictures"):
        filled(1_000_000)


ALT = 'alt="Picture 1 of the goal"'


def report(folder: Path, *words: str) -> Path:
    """Write the report of one wrong verdict on a goal with two pictures, the second unreadable."""
    run, data = write_run(folder, [Task("like-this", False, True)]), folder / "data"
    [made] = [one for one in store.read(data) if isinstance(one, Trajectory)]
    pictures = (ImageRef(data=png(1_200, 600, shade=200)), ImageRef(problem="gone"))
    (data / "trajectories.jsonl").unlink()
    store.write(data, [made.model_copy(update={"goal_images": pictures})])
    out = () if "--folder" in words else ("--out", str(folder / "report.html"))
    assert trajudge(["report", "--baselines", "off", str(run), *words, *out]) == 0
    return folder / "report.html"


def test_each_is_shown_or_why_it_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = report(tmp_path).read_text()
    assert page.count(ALT) == 1
    assert "Picture 2 of the goal cannot be shown: <bdi>it was lost before</bdi>" in page
    assert page.count("data:image/jpeg") == 2, "and the screenshot"
    assert "2 pictures" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--no-images"], ["--redact", "goals"], ["--redact", "urls"]])
def test_none_is_where_pictures_or_goals_are_left_out(tmp_path: Path, words: list[str]) -> None:
    page = report(tmp_path, *words).read_text()
    assert "of the goal" not in page
    assert "data:image/jpeg" not in page


def test_in_a_folder_they_are_files(tmp_path: Path) -> None:
    report(tmp_path, "--folder", str(tmp_path / "page"))
    assert len(list((tmp_path / "page" / "img").iterdir())) == 2
    assert ALT in (tmp_path / "page" / "index.html").read_text()


def test_what_does_not_fit_is_left_out_from_the_first_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = report(tmp_path).stat().st_size
    bare = report(tmp_path / "bare", "--no-images").stat().st_size
    capsys.readouterr()
    page = report(tmp_path / "small", "--max-size", f"{(bare + 450) / 1e6:.6f}")
    assert page.stat().st_size <= bare + 450 < whole
    assert "Picture 1 of the goal left out: the file would be too large." in page.read_text()
    assert "3 pictures did not fit" in capsys.readouterr().out


@pytest.mark.browser
def test_they_fit_a_telephone(browser: Browser, tmp_path: Path) -> None:
    file = report(tmp_path)
    page = browser.new_context(viewport={"width": 390, "height": 800}).new_page()
    page.goto(file.as_uri())
    picture = page.locator(".asked img")
    picture.scroll_into_view_if_needed()
    assert picture.evaluate("i => i.decode().then(() => i.naturalWidth)") == 900
    box = picture.bounding_box()
    assert box and 0 < box["width"] <= 320
    assert box["width"] == pytest.approx(2 * box["height"], rel=0.02)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
