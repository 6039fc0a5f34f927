"""``trajudge score --ranks``: ranks against counting by hand, rows, page, what is left out."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.eval.cases import call, failed, key, label, said
from tests.eval.folders import write_run
from tests.llm_server import LlmServer
from tests.screens import on_one_line, one_screen
from tests.tables import mistakes
from trajudge.eval.cli import main
from trajudge.eval.ranks import cost_text, rank_ranges, smallest_overlap, with_rule_based
from trajudge.eval.scoring.records import Comparison, MetricDifference
from trajudge.eval.sources import Source
from trajudge.eval.store.table import in_memory
from trajudge.judges.model import Status
from trajudge.judges.training import key_hash
from trajudge.prompts.published import load_texts

HOSTILE = 'judge <script>alert(1)</script> "&'
TASKS = range(40)
LABELS = [label(task, task % 2 == 0) for task in TASKS]
JUDGES = ("a", "b", "c", "d", "e")


def difference(first: str, second: str, by: float | None, p: float | None) -> MetricDifference:
    return MetricDifference(
        metric="precision",
        first=first,
        second=second,
        n=10 + ord(first) - ord("a"),
        difference=by,
        low=None,
        high=None,
        p=p,
        p_holm=p,
    )


def test_judges_that_are_not_told_apart_share_a_rank() -> None:
    """a > c is significant, a ~ b and b ~ c are not: b may hold every rank."""
    found = rank_ranges(
        Comparison(
            differences=(
                difference("a", "b", 0.1, 0.2),
                difference("a", "c", 0.3, 0.05),
                difference("b", "c", 0.1, 0.051),
            )
        ),
        "overall",
        "success",
        "precision",
        ("a", "b", "c"),
    )
    assert {j: (r.best, r.worst) for j, r in found.items()} == {
        "a": (1, 2),
        "b": (1, 3),
        "c": (2, 3),
    }


def test_a_reward_of_more_than_one_half_is_a_yes_of_the_rule() -> None:
    rewards = {key(0): 0.5, key(1): 0.51, key(2): None}
    found = with_rule_based(Source("runs", in_memory([]), rewards)).judgments
    assert [(one.key, one.judge, one.success) for one in found] == [
        (key(0), "rule-based", False),
        (key(1), "rule-based", True),
    ]


@pytest.mark.parametrize(
    ("cost", "shown"),
    [(None, "?"), (0.0, "0"), (0.1, "0.10"), (0.0994, "0.099"), (12.344, "12.34")],
)
def test_a_cost_is_shown_with_its_digits(cost: float | None, shown: str) -> None:
    assert cost_text(cost) == shown


def test_other_metrics_and_benchmarks_do_not_count() -> None:
    apart = difference("a", "b", 0.3, 0.01)
    others = (
        apart.model_copy(update={"metric": "recall"}),
        apart.model_copy(update={"benchmark": "webarena"}),
        apart.model_copy(update={"label": "side_effect"}),
    )
    found = rank_ranges(
        Comparison(differences=others), "overall", "success", "precision", ("a", "b")
    )
    assert {(r.best, r.worst) for r in found.values()} == {(1, 2)}
    assert smallest_overlap(Comparison(differences=others), "overall", "success") == {
        "a": 10,
        "b": 10,
    }


def test_a_judge_without_the_metric_has_no_rank() -> None:
    apart = Comparison(differences=(difference("a", "b", 0.3, 0.01),))
    assert rank_ranges(apart, "overall", "success", "precision", ("b",))["b"].best == 1


@given(st.lists(st.sampled_from((-1, 0, 1)), min_size=10, max_size=10))
def test_two_judges_share_a_rank_unless_one_is_significantly_better(outcomes: list[int]) -> None:
    """Whatever the pairs say: between two that are tied, ranks overlap, or a third is better than
    the one and worse than the other."""
    pairs = list(combinations(JUDGES, 2))
    differences = tuple(
        difference(*pair, 0.1 * (way or 1), 0.01 if way else 0.5)
        for pair, way in zip(pairs, outcomes, strict=True)
    )
    found = rank_ranges(
        Comparison(differences=differences), "overall", "success", "precision", JUDGES
    )
    beaten = {
        (pair if way > 0 else pair[::-1]) for pair, way in zip(pairs, outcomes, strict=True) if way
    }
    for judge in JUDGES:
        assert found[judge].best == 1 + sum(lost == judge for _, lost in beaten)
        assert found[judge].worst == 5 - sum(won == judge for won, _ in beaten)
    for one, other in set(pairs) - beaten - {pair[::-1] for pair in beaten}:
        between = any(
            {(x, third), (third, y)} <= beaten
            for third in JUDGES
            for x, y in ((one, other), (other, one))
        )
        shared = max(found[one].best, found[other].best) <= min(
            found[one].worst, found[other].worst
        )
        assert shared or between


Rows = dict[str, dict[str, str]]


@pytest.fixture
def ranked(capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Rows]]:
    """The rows of ``--ranks --csv`` by benchmark and judge."""

    def read(*words: object) -> dict[str, Rows]:
        capsys.readouterr()
        command = ["score", *map(str, words), "--ranks", "--csv", "--baselines", "off"]
        assert main(command) == 0
        tables: dict[str, Rows] = {}
        for row in csv.DictReader(io.StringIO(capsys.readouterr().out)):
            tables.setdefault(row["benchmark"], {})[row["judge"]] = row
        return tables

    return read


Ranked = Callable[..., dict[str, Rows]]


def test_a_row_counts_failures_as_not_accepted_and_out_of_coverage(
    tmp_path: Path, ranked: Ranked
) -> None:
    judged = [said(task, True, calls=(call(0.002), call(0.001))) for task in range(20)]
    broken = [failed(20, Status.UNPARSABLE, calls=(call(0.002),))]
    row = ranked(write_run(tmp_path / "run", [*judged, *broken], LABELS))["webarena"]["judge"]
    assert (row["n"], row["failed"], row["labelled"], row["coverage"]) == ("21", "1", "40", "0.5")
    assert (row["precision"], row["common"]) == ("0.5", "")
    assert float(row["recall"]) == pytest.approx(10 / 11)
    assert float(row["cost_per_1000"]) == pytest.approx(1000 * (20 * 0.003 + 0.002) / 21)


@pytest.mark.parametrize(
    ("benchmarks", "title", "rest"),
    [
        (["webarena"], "WebArena: 40 labelled trajectories\n", "All columns, 1 warning: "),
        (
            ["webarena", "workarena"],
            "Overall: 80 labelled trajectories of 2 benchmarks\n",
            "All columns, every benchmark, 1 warning: ",
        ),
    ],
)
def test_the_screen_says_of_how_many_benchmarks_it_is(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    benchmarks: list[str],
    title: str,
    rest: str,
) -> None:
    labels = [label(t, t % 2 == 0, benchmark=b) for b in benchmarks for t in TASKS]
    runs = [
        write_run(
            tmp_path / name,
            [said(t, t % 2 == 0, benchmark=b, judge=name) for b in benchmarks for t in TASKS],
            labels,
        )
        for name in "ab"
    ]
    capsys.readouterr()
    assert main(["score", *map(str, runs), "--ranks", "--baselines", "off"]) == 0
    shown = capsys.readouterr().out
    assert title in shown
    assert rest in shown


def test_an_unknown_price_is_no_cost_of_zero(tmp_path: Path, ranked: Ranked) -> None:
    judged = [said(task, True, calls=(call(None if task else 0.1),)) for task in TASKS]
    costs = [said(task, True, judge="rules") for task in TASKS]
    runs = (
        write_run(tmp_path / "run", judged, LABELS),
        write_run(tmp_path / "free", costs, LABELS, model=None),
    )
    rows = ranked(*runs)["webarena"]
    assert (rows["judge"]["cost_per_1000"], rows["rules"]["cost_per_1000"]) == ("", "0.0")


def test_a_clear_winner_ranks_alone_and_noise_is_tied(tmp_path: Path, ranked: Ranked) -> None:
    verdicts = {
        "right": [said(task, task % 2 == 0, judge="right") for task in TASKS],
        "always": [said(task, True, judge="always") for task in TASKS],
        "nearly": [said(task, task != 1, judge="nearly") for task in TASKS],
        "never": [said(task, False, judge="never") for task in TASKS],
    }
    runs = [write_run(tmp_path / name, verdicts[name], LABELS) for name in sorted(verdicts)]
    rows = ranked(*runs)["webarena"]
    assert next(iter(rows)) == "right" and list(rows)[-1] == "never"
    ranks = {name: (row["rank"], row["rank_to"], row["common"]) for name, row in rows.items()}
    assert ranks == {
        "right": ("1", "1", "40"),
        "always": ("2", "3", "40"),
        "nearly": ("2", "3", "40"),
        "never": ("", "", "40"),
    }
    assert (rows["never"]["precision"], rows["never"]["recall"]) == ("", "0.0")


def test_official_rewards_are_a_judge_beside_the_others(tmp_path: Path, ranked: Ranked) -> None:
    rewards = {key(task): 1.0 if task < 10 else 0.0 for task in TASKS[:30]}
    run = write_run(tmp_path / "run", [said(task, True) for task in TASKS], LABELS, rewards)
    row = ranked(run)["webarena"]["rule-based"]
    assert (row["n"], row["labelled"], row["cost_per_1000"]) == ("30", "40", "0.0")
    assert (row["precision"], row["rank"]) == ("0.5", "1")


def test_every_benchmark_has_a_table_below_the_whole(tmp_path: Path, ranked: Ranked) -> None:
    benchmarks = ("webarena", "visualwebarena")
    judged = [said(t, True, benchmark=b) for t in TASKS for b in benchmarks]
    labels = [label(t, t % 2 == 0, benchmark=b) for t in TASKS for b in benchmarks]
    tables = ranked(write_run(tmp_path / "run", judged, labels))
    assert list(tables) == ["overall", "visualwebarena", "webarena"]
    assert tables["overall"]["judge"]["labelled"] == "80"


def test_the_split_and_the_training_set_are_those_of_the_score(
    tmp_path: Path, ranked: Ranked
) -> None:
    labels = [label(task, task % 2 == 0, split="dev" if task < 10 else "test") for task in TASKS]
    hashes = [key_hash(key(task)) for task in TASKS[:15]]
    judged = [said(task, True) for task in TASKS]
    run = write_run(tmp_path / "run", judged, labels, training_keys=hashes)
    assert ranked(run)["webarena"]["judge"]["n"] == "25"
    assert (
        ranked(run, "--split", "dev", "--training-set", "include")["webarena"]["judge"]["n"] == "10"
    )


def test_a_runs_own_labels_do_not_count_beside_the_annotations(
    tmp_path: Path, ranked: Ranked, capsys: pytest.CaptureFixture[str]
) -> None:
    """A submitter turned a label round, and added trajectories that the annotations do not have."""
    easy = range(100, 140)
    honest = write_run(tmp_path / "honest", [said(t, True, judge="a") for t in TASKS], LABELS)
    turned = [label(1, True), *(each for t, each in enumerate(LABELS) if t != 1)]
    cheat = write_run(
        tmp_path / "cheat",
        [said(t, True, judge="b") for t in (*TASKS, *easy)],
        [*turned, *(label(t, True) for t in easy)],
    )
    assert main(["score", str(honest), str(cheat), "--ranks"]) == 2
    assert "differ" in capsys.readouterr().err
    annotations = f"trajudge:{honest / 'labels.jsonl'}"
    rows = ranked(honest, cheat, "--annotations", annotations)["webarena"]
    assert (rows["b"]["n"], rows["b"]["labelled"], rows["b"]["precision"]) == ("40", "40", "0.5")


def test_soundness_of_the_process_is_ranked_where_it_is_asked_for(
    tmp_path: Path, ranked: Ranked
) -> None:
    labels = [each.model_copy(update={"process": n % 4 != 0}) for n, each in enumerate(LABELS)]
    sees = [said(t, True, judge="sees", process=t % 4 != 0) for t in TASKS]
    blind = [said(t, True, judge="blind", process=True) for t in TASKS]
    runs = [write_run(tmp_path / each[0].judge, each, labels) for each in (sees, blind)]
    rows = ranked(*runs, "--question", "process")["webarena"]
    assert {(row["label"], row["n"]) for row in rows.values()} == {("process", "40")}
    assert (rows["sees"]["precision"], rows["blind"]["precision"]) == ("1.0", "0.75")
    assert (rows["sees"]["rank_to"], rows["blind"]["rank"]) == ("1", "2")


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


def page_of(runs: list[str], file: Path) -> str:
    assert main(["score", *runs, "--html", str(file)]) == 0
    return file.read_text(encoding="utf-8")


def test_the_page_needs_nothing_else_and_escapes_what_it_shows(
    runs: list[str], tmp_path: Path
) -> None:
    page = page_of(runs, tmp_path / "page.html")
    assert not re.search(r"https?:|//|@import|url\(|<script", page)
    read = Texts()
    read.feed(page)
    assert not {"script", "img", "link", "iframe", "object"} & set(read.tags)
    assert HOSTILE in read.texts
    assert str(tmp_path) not in page
    assert sum(text == "Judges × benchmarks" for text in read.texts) == 1
    moved = tmp_path / "moved"
    moved.mkdir()
    there = [str(Path(run).rename(moved / Path(run).name)) for run in runs]
    assert page_of(there[::-1], tmp_path / "two.html") == page


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
    assert main(["score", *runs, *many, "--html", "page.html", "--baselines", "off"]) == 0
    lines = screen_lines()
    assert lines[0].startswith("Overall: ")
    assert any("more: " in line for line in lines)
    assert "page.html" in lines[-1]


def test_trivial_baselines_stand_below_without_a_rank(
    own_folder: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["judge", "--judge", "heuristic", "--limit", "60", "--out", "run"]) == 0
    capsys.readouterr()
    assert main(["score", "run", "--ranks", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)[0]["rows"]
    ranks = {row["judge"]: row["ranks"] for row in rows}
    assert ranks["heuristic"] and ranks["rule-based"]
    assert not any(ranks[name] for name in ("always-fail", "tfidf-answer", "telemetry"))
    assert main(["score", "run", "--ranks"]) == 0
    one_screen(capsys.readouterr().out, 100)


def test_a_run_that_may_not_be_compared_is_left_out_with_its_reason(
    runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judged = [said(t, True, judge="cut") for t in TASKS]
    labels = [label(t, True) for t in TASKS]
    cut = write_run(tmp_path / "cut", judged, labels, selection={"trajectories": 41})
    page = tmp_path / "page.html"
    assert main(["score", *runs, str(cut), "--html", str(page)]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "warning: left out: cut: 1 of 41 judgments are missing" in told
    assert "1 of 41 judgments are missing" in page.read_text(encoding="utf-8")
    assert main(["score", str(cut), "--ranks"]) == 2
    assert "no run may be compared: cut: 1 of 41" in capsys.readouterr().err


@mistakes(
    """
    score --ranks => nothing to score
    score absent --ranks => absent
    score {run} {run} --ranks => twice
    score --checks --judgments . => --checks: give the folder of a run
    """
)
def test_bad_input_is_one_sentence(
    words: list[str], sentence: str, runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word.format(run=runs[0]) for word in words]) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())


def test_without_a_label_there_are_no_ranks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", [said(0, True)], [])
    assert main(["score", str(run), "--ranks"]) == 2
    assert "no judged trajectory has an expert's label" in capsys.readouterr().err
    labels = write_run(tmp_path / "labels", [said(0, True)], LABELS) / "labels.jsonl"
    assert main(["score", str(run), "--ranks", "--annotations", f"trajudge:{labels}"]) == 0


@pytest.mark.browser
def test_no_width_and_no_scheme_cuts_the_page_and_axe_finds_nothing(
    runs: list[str], tmp_path: Path, chromium: Path
) -> None:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright

    page_of(runs, tmp_path / "page.html")
    address = (tmp_path / "page.html").as_uri()
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
            seen = Axe().run(page)
            assert seen.violations_count == 0, seen.generate_report()
            colours.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            page.close()
        browser.close()
    assert len(colours) == 2


@pytest.mark.usefixtures("own_folder")
@pytest.mark.skipif(find_spec("agent_reward_bench") is None, reason="needs agent-reward-bench")
def test_rows_of_our_own_and_of_published_prompts_show_whose_they_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    good = (
        "<reasoning>x</reasoning><success>Successful</success><side>No</side>"
        "<optimal>3. Somewhat Optimal</optimal><loop>No</loop>"
    )
    with LlmServer(text=good) as server:
        words = ["judge", "--model", "gpt-4o", "--base-url", f"{server.url}/v1", "--data", "sample"]
        for name, prompts in (("ours", "trajudge"), ("theirs", "agentrewardbench")):
            run = ["--limit", "12", "--prompts", prompts, "--out", name, "--yes"]
            assert main([*words, *run]) == 0
    capsys.readouterr()
    runs = ["score", "ours", "theirs", "--ranks", "--baselines", "off"]
    assert main([*runs, "--csv"]) == 0
    rows = {
        row["asks_with"]: row
        for row in csv.DictReader(io.StringIO(capsys.readouterr().out))
        if row["benchmark"] == "shop"
    }
    assert rows["own"]["judge"] == "simplified-axtree:gpt-4o"
    assert rows["published"]["judge"] == "simplified-axtree-agentrewardbench:gpt-4o"
    known = load_texts("simplified", "agentrewardbench").text_hash[:12]
    assert {row["published_prompts"] for row in rows.values() if row["prompts"]} == {known}
    assert rows["own"]["prompts"] != rows["published"]["prompts"]
    assert main([*runs, "--html", "ranks.html"]) == 0
    shown = on_one_line(capsys.readouterr().out)
    assert "the rows of simplified asked with different prompts" in shown
    assert f"{rows['own']['prompts']} (our own)" in shown
    page = Path("ranks.html").read_text(encoding="utf-8")
    assert f"ours; the source's {known}" in page
    assert page.count("the source's own</span>") == 1
