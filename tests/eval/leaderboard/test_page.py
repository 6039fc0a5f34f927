"""The page and the first screen: whole, safe, the same bytes every time."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.eval.cases import label, said
from tests.eval.leaderboard.folders import write_run
from tests.screens import one_screen
from tests.tables import mistakes
from trajudge.eval.cli import main as trajudge
from trajudge.eval.leaderboard.__main__ import main

HOSTILE = 'judge <script>alert(1)</script> "&'
TASKS = range(30)


class Texts(HTMLParser):
    """Every text and every tag of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    benchmarks = ("webarena", "visualwebarena", "assistantbench")
    labels = [label(t, t % 3 == 0, benchmark=b) for t in TASKS for b in benchmarks]
    return [
        str(
            write_run(
                tmp_path / f"run{number}",
                [
                    said(t, t % (2 + number) == 0, benchmark=b, judge=judge)
                    for t in TASKS
                    for b in benchmarks
                ],
                labels,
            )
        )
        for number, judge in enumerate((HOSTILE, "a-judge-with-a-rather-long-name" * 2, "plain"))
    ]


def test_the_page_needs_nothing_else_and_escapes_what_it_shows(
    runs: list[str], tmp_path: Path
) -> None:
    assert main([*runs, "--out", str(tmp_path / "board")]) == 0
    page = (tmp_path / "board" / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|//|@import|url\(|<script", page)
    read = Texts()
    read.feed(page)
    assert not {"script", "img", "link", "iframe", "object"} & set(read.tags)
    assert HOSTILE in read.texts
    assert str(tmp_path) not in page
    assert sum(text == "Judges × benchmarks" for text in read.texts) == 1


def test_the_same_runs_in_another_place_give_the_same_bytes(
    runs: list[str], tmp_path: Path
) -> None:
    names = ("index.html", "leaderboard.csv")
    assert main([*runs, "--out", str(tmp_path / "one")]) == 0
    moved = tmp_path / "moved"
    moved.mkdir()
    there = [str(Path(run).rename(moved / Path(run).name)) for run in runs]
    assert main([*there[::-1], "--out", str(tmp_path / "two")]) == 0
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_many_judges_fit_on_the_first_screen(
    runs: list[str], tmp_path: Path, own_folder: None, screen_lines: Callable[[], list[str]]
) -> None:
    many = [
        str(
            write_run(
                tmp_path / f"more{n}",
                [said(t, t > n, judge=f"judge-{n}") for t in TASKS],
                [label(t, t % 3 == 0) for t in TASKS],
            )
        )
        for n in range(25)
    ]
    assert main([*runs, *many]) == 0
    lines = screen_lines()
    assert lines[0].startswith("AgentRewardBench: ")
    assert any("more: " in line for line in lines)
    assert "board/index.html" in lines[-1]


@pytest.mark.slow
def test_the_bundled_sample_has_a_board_of_its_own(
    own_folder: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert trajudge(["leaderboard", "--data", "sample"]) == 0
    lines = one_screen(capsys.readouterr().out, 100)
    assert any(line.startswith("Bundled sample: success, 130 labelled") for line in lines)
    assert {line.split()[1] for line in lines if line[:1].isdigit()} >= {"heuristic", "rule-based"}
    assert Path("board/index.html").is_file()


def test_a_run_that_may_not_be_compared_is_left_out_with_its_reason(
    runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = write_run(
        tmp_path / "cut",
        [said(t, True, judge="cut") for t in TASKS],
        [label(t, True) for t in TASKS],
        selection={"trajectories": 31},
    )
    out = tmp_path / "board"
    assert main([*runs, str(cut), "--out", str(out)]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "warning: left out: cut: 1 of 31 judgments are missing" in told
    assert "κ with limits, 2 warnings: " in told  # this one was not counted
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "1 of 31 judgments are missing" in page
    assert ",cut," not in (out / "leaderboard.csv").read_text()
    assert main([str(cut), "--out", str(out)]) == 2
    assert "no run may be compared: cut: 1 of 31" in capsys.readouterr().err


@mistakes(
    """
    => nothing to compare
    absent => absent
    --published absent => cannot be read
    --published . => holds no published verdicts
    --data nonsense:x => nonsense
    """
)
def test_bad_input_is_one_sentence(
    words: list[str], sentence: str, own_folder: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert sentence in line


@pytest.mark.browser
def test_no_width_and_no_scheme_cuts_the_page_and_axe_finds_nothing(
    runs: list[str], tmp_path: Path, chromium: Path
) -> None:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright

    assert main([*runs, "--out", str(tmp_path / "board")]) == 0
    address = (tmp_path / "board" / "index.html").as_uri()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        colours = set()
        for width, scheme in ((390, "light"), (390, "dark"), (1280, "light")):
            page = browser.new_page(
                viewport={"width": width, "height": 900},
                color_scheme="dark" if scheme == "dark" else "light",
                bypass_csp=True,  # the page's policy would keep the checker out
            )
            page.goto(address)
            page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            sizes = page.evaluate(
                "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
            )
            assert sizes[0] <= sizes[1], (width, scheme)
            cut = page.evaluate(
                "[...document.querySelectorAll('td, th, p, li')].filter("
                "e => e.offsetParent && e.scrollWidth > e.clientWidth + 1).map(e => e.outerHTML)"
            )
            assert cut == [], (width, scheme)
            seen = Axe().run(page)
            assert seen.violations_count == 0, seen.generate_report()
            colours.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            page.close()
        browser.close()
    assert len(colours) == 2
