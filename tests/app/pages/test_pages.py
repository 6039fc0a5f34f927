"""Templates, text of others on pages, and figures."""

from __future__ import annotations

import html
import random
import re
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.app.made_runs import Task, judgment, write_run
from tests.app.payloads import payloads
from tests.app.serving import served
from trajudge.app.rendering import unfolding, visible
from trajudge.app.workspace import open_workspace
from trajudge.eval.cli import main as trajudge
from trajudge.eval.store.run_folder import JUDGMENTS, judgment_line

APP = Path(__file__).parents[3] / "trajudge" / "app"
TEMPLATES = sorted((APP / "templates").rglob("*.html"))
# The report is one file: its style and script stand in it, allowed by their hashes.
ONE_FILE = {"report.html"}


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_a_template_escapes_and_has_nothing_inline(template: Path) -> None:
    text = template.read_text(encoding="utf-8")
    assert not re.search(r"\|\s*safe\b|autoescape|Markup", text)
    assert not re.search(r"<[^>{]*\s(on\w+|style|hx-on[^=]*|hx-vals|srcdoc)\s*=", text)
    assert "javascript:" not in text
    if template.name not in ONE_FILE:
        assert not re.search(r"<style|<script(?![^>]*\ssrc=)", text)


def test_nothing_is_fetched_from_elsewhere() -> None:
    for path in (APP / "static").iterdir():
        if path.suffix in (".css", ".js") and path.name != "htmx.min.js":
            assert not re.search(r"//\w|url\(", path.read_text().replace("\n//", "\n")), path.name


def test_the_environment_escapes() -> None:
    from trajudge.app.rendering import templates

    shown = templates().from_string("{{ text }} {{ text|visible }}").render(text="<b>'\"&")
    assert "<b>" not in shown


_BOX = re.compile(r'<span class="invisible" title="[^"<>]*">U\+([0-9A-F]{4,6})</span>')


@pytest.mark.parametrize(
    ("letter", "shown"),
    [
        ("\u200b", "U+200B"),
        ("\u202e", "U+202E"),
        ("\ufe0f", "U+FE0F"),
        ("\U000e0041", "U+E0041"),
        ("\u3164", "U+3164"),
        ("\u2800", "U+2800"),
        ("\x1b", "U+001B"),
        ("\ud800", "U+D800"),
    ],
)
def test_what_has_no_width_stands_as_its_code_point(letter: str, shown: str) -> None:
    text = visible(f"a{letter}b")
    assert f">{shown}</span>" in text
    assert letter not in text


def test_line_breaks_and_letters_of_all_scripts_stay() -> None:
    text = "año\n\t한국어 עברית"
    assert visible(text) == f"<bdi>{text}</bdi>"


def test_a_long_text_says_how_much_is_left_out() -> None:
    shown = visible("x" * 5_000_000, 10)
    assert shown.startswith("<bdi>xxxxxxxxxx</bdi>")
    assert "4,999,990 more characters" in shown
    assert len(shown) < 200
    assert visible("x" * 4_000) == f"<bdi>{'x' * 4_000}</bdi>"
    assert "… 1 more characters" in visible("x" * 4_001)


def test_what_has_to_be_read_whole_is_unfolded() -> None:
    text = "<b>" + "a\u200bb" * 10
    shown = unfolding(text, 12)
    front, _, fold = shown.partition("<details")
    assert "… 21 more characters</summary>" in fold
    assert front + fold[fold.index("<bdi>") : -len("</details>")] == visible(text[:12]) + visible(
        text[12:]
    )
    assert unfolding("as short", 8) == visible("as short")
    assert unfolding("a mug that is green", 8).startswith("<bdi>a mug </bdi><details")


@given(st.text(max_size=60) | st.sampled_from([*payloads()]))
def test_only_our_own_tags_are_left(text: str) -> None:
    shown = visible(text, 10**9)
    inside = shown.removeprefix("<bdi>").removesuffix("</bdi>")
    rest = _BOX.sub("", inside)
    assert not re.search("[<>\"']", rest)
    assert all(
        letter in "\n\t" or unicodedata.category(letter) not in {"Cc", "Cf", "Cs", "Co"}
        for letter in rest
    )


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[float, bool]]]:
    """A run of a judge that gives scores, with score and label of every trajectory."""
    rng = random.Random(4)
    tasks = [Task(str(n), rng.random() < 0.5, None) for n in range(200)]
    scores = [round(rng.betavariate(2, 1) if task.truth else rng.random(), 3) for task in tasks]
    tasks = [task._replace(verdict=score > 0.6) for task, score in zip(tasks, scores, strict=True)]
    run = write_run(tmp_path_factory.mktemp("scored"), tasks)
    made = [
        judgment(task, "judge").model_copy(update={"score": score})
        for task, score in zip(tasks, scores, strict=True)
    ]
    (run / JUDGMENTS).write_bytes(b"".join(map(judgment_line, made)))
    return run, [(score, bool(task.truth)) for task, score in zip(tasks, scores, strict=True)]


def page_and_report(run: Path) -> list[str]:
    with served(open_workspace([run])) as site:
        site.ask(f"/run/{run.name}", Accept="application/json")  # waits for the scores
        page = site.ask(f"/run/{run.name}").text
    out = run.parent / "report.html"
    assert trajudge(["report", str(run), "--out", str(out), "--baselines", "off"]) == 0
    return [page, out.read_text()]


def test_curve_and_bins_are_those_of_the_scores(
    scored: tuple[Path, list[tuple[float, bool]]],
) -> None:
    run, pairs = scored
    scores, labels = (np.array(each) for each in zip(*pairs, strict=True))
    for page in page_and_report(run):
        line = re.search(r'<polyline class="curve" points="([^"]+)"', page)
        assert line is not None
        drawn = [[float(one) / 300 for one in part.split(",")] for part in line[1].split()]
        for recall, below in drawn[1::2]:  # every second point is a threshold's
            told = [
                abs((labels & (scores >= t)).sum() / labels.sum() - recall) < 1e-4
                and abs((labels & (scores >= t)).sum() / (scores >= t).sum() - 1 + below) < 1e-4
                for t in scores
            ]
            assert any(told), (recall, below)
        assert drawn[-1][0] == 1
        table = html.unescape(page.split("Scores of judge A", 1)[1].split("</table>")[0])
        rows = re.findall(r">([\d.]+)</th><td>([\d.]+) \[.*?\]</td><td>(\d+)</td>", table)
        bins = np.minimum((scores * 10).astype(int), 9)
        assert rows == [
            (
                f"{scores[bins == b].mean():.2f}",
                f"{100 * labels[bins == b].mean():.1f}",
                str((bins == b).sum()),
            )
            for b in np.unique(bins)
        ]
