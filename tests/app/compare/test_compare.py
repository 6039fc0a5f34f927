"""Judges beside each other: the counts are those of the raw files, the p-value is scipy's."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import orjson
import pytest
from playwright.sync_api import Browser, expect

from tests.app.browsing import complaints, launched
from tests.app.made_runs import Task, write_run
from tests.app.payloads import payloads
from tests.app.serving import Served, served
from tests.eval.cases import call, failed, key, said
from tests.waiting import wait_until
from trajudge.annotations import store as annotation_store
from trajudge.app.compare_page import (
    PairedJudges,
    PairedTables,
    compare,
    evidence_hash,
    letters,
    read_compare,
    shown_to,
)
from trajudge.app.workspace import open_workspace
from trajudge.eval.score import read_sources, score_source
from trajudge.eval.settings import ScoreConfig
from trajudge.eval.store.run_folder import (
    JUDGMENTS,
    LABELS,
    judgment_line,
    read_judgments,
    read_manifest,
    write_manifest,
)
from trajudge.eval.store.table import JudgmentTable
from trajudge.judges.model import Judgment, Status
from trajudge.judges.training import key_hash
from trajudge.util.files import without_surrogates

COUNT = 104


def tasks(seed: int) -> list[Task]:
    rng = np.random.default_rng(seed + 1)
    truths = np.random.default_rng(0).choice([True, False], COUNT)
    said = [bool(v) if rng.random() > 0.1 else None for v in rng.choice([True, False], COUNT)]
    return [Task(f"t{at}", bool(truths[at]) if at % 9 else None, said[at]) for at in range(COUNT)]


def sampled(judgment: Judgment, sample: int) -> Judgment:
    said = judgment.success
    success = not said if sample == 1 and said is not None else said
    return judgment.model_copy(update={"sample": sample, "success": success})


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, list[Path]]]:
    folder = tmp_path_factory.mktemp("shop")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAJUDGE_CACHE", str(folder / "cache" / "replies.sqlite"))
        runs = [write_run(folder / name, tasks(at), judge=name) for at, name in enumerate("uvw")]
        # The third judge is asked three times; its odd samples say the opposite.
        judgments = read_judgments(runs[2])
        again = [sampled(judgment, at) for judgment in judgments for at in range(3)]
        (runs[2] / JUDGMENTS).write_bytes(b"".join(map(judgment_line, again)))
        text = str(without_surrogates("\n".join(payloads())))
        evil = write_run(folder / "evil", [Task("x", False, True, text, text, text, text, text)])
        (judgment,) = read_judgments(evil)
        changed = judgment.model_copy(update={"judge": text[:400]})
        (evil / JUDGMENTS).write_bytes(judgment_line(changed))
        write_manifest(evil, {**read_manifest(evil), "judge": text[:400]})
        with served(open_workspace([*runs, evil])) as server:
            yield server, runs


@pytest.fixture(scope="module")
def browser(chromium: Path, shop: tuple[Served, list[Path]]) -> Iterator[Browser]:
    with launched(chromium) as browser:
        yield browser


def raw(run: Path) -> tuple[dict[str, bool], dict[str, bool]]:
    """The judge's majority and the expert's label by task, read without our readers."""
    said = defaultdict(list)
    for line in map(json.loads, (run / "judgments.jsonl").read_text().splitlines()):
        if line["status"] == "ok" and line["success"] is not None:
            said[line["key"]["task_id"]].append(line["success"])
    truth = {}
    for line in map(json.loads, (run / "labels.jsonl").read_text().splitlines()):
        if line.get("success") is not None:
            truth[line["key"]["task_id"]] = line["success"]
    return {task: 2 * sum(votes) > len(votes) for task, votes in said.items()}, truth


def asked(server: Served, query: str) -> dict[str, object]:
    answer: dict[str, object] = orjson.loads(
        server.ask(f"/compare?runs=u,v,w&{query}", Accept="application/json").text
    )
    return answer


@pytest.mark.parametrize(("first", "second"), [("u", "v"), ("v", "w")])
def test_the_two_by_two_is_that_of_the_files(
    shop: tuple[Served, list[Path]], first: str, second: str
) -> None:
    from scipy.stats import binomtest

    server, runs = shop
    (a, truth), (b, _) = raw(runs["uvw".index(first)]), raw(runs["uvw".index(second)])
    # Every trajectory was judged by all; a judgment that failed counts as not accepted.
    right = [(a.get(t, False) == truth[t], b.get(t, False) == truth[t]) for t in truth]
    pair = asked(server, f"a={first}&b={second}")["pair"]
    only = right.count((True, False)), right.count((False, True))
    assert pair == {
        "both_right": right.count((True, True)), "only_first": only[0], "only_second": only[1],
        "both_wrong": right.count((False, False)), "a": first, "b": second,
        "failed_first": len(truth.keys() - a.keys()), "n": len(truth),
        "failed_second": len(truth.keys() - b.keys()), "missing": "negative",
        "p": pytest.approx(binomtest(only[0], sum(only)).pvalue, rel=1e-12),
    }  # fmt: skip
    assert asked(server, f"a={first}&b={second}&preset=ab")["total"] == only[0]


def refusing(folder: Path, name: str) -> Path:
    """Write the run of a judge that refused ``none``, ``some``, or ``all`` but one, of ten runs."""
    refused = {"none": (), "some": (1, 8), "all": range(9)}[name]
    tasks = [Task(f"t{at}", at < 5, None if at in refused else at % 3 == 0) for at in range(10)]
    run = write_run(folder / name, tasks, judge=name)
    status = {True: Status.REFUSED, False: Status.OK}
    judgments = [
        judgment.model_copy(update={"status": status[judgment.success is None]})
        for judgment in read_judgments(run)
    ]
    (run / JUDGMENTS).write_bytes(b"".join(map(judgment_line, judgments)))
    return run


@pytest.mark.parametrize("protocol", ["default", "agentrewardbench"])
def test_it_says_what_the_command_says(tmp_path: Path, protocol: str) -> None:
    runs = [refusing(tmp_path, name) for name in ("none", "some", "all")]
    for run in runs:
        write_manifest(run, {**read_manifest(run), "protocol": protocol})
    trained = key_hash(key("t9"))
    write_manifest(runs[1], {**read_manifest(runs[1]), "training_keys": [trained]})
    config = ScoreConfig(runs=tuple(runs))
    scores = score_source(read_sources(config), config)
    tests = [test for test in scores.comparison.discordances if test.label == "success"]
    assert [(test.n, test.first, test.second) for test in tests] == [
        (10, "all", "none"), (9, "all", "some"), (9, "none", "some")
    ]  # fmt: skip
    with served(open_workspace(runs)) as server:
        for test in tests:
            query = f"a={test.first}&b={test.second}"
            answer = server.ask(f"/compare?{query}", Accept="application/json")
            pair = json.loads(answer.text)["pair"]
            assert (pair["n"], pair["only_first"], pair["only_second"], pair["p"] or 1.0) == (
                test.n, test.only_first_right, test.only_second_right, test.p
            )  # fmt: skip
            wanted = server.ask(f"/compare?{query}&preset=ab", Accept="application/json")
            assert json.loads(wanted.text)["total"] == test.only_first_right
        page = server.ask("/compare?a=all&b=some").text
    counting = {"default": "not accepted", "agentrewardbench": "AgentRewardBench does"}
    assert "9 trajectories; judgments without an answer (9 of A and 2 of B) counted as" in page
    assert counting[protocol] in page


def test_judges_without_a_common_trajectory_are_not_called_alike(
    shop: tuple[Served, list[Path]],
) -> None:
    page = shop[0].ask("/compare?runs=u,judge").text
    assert "No labelled trajectory was judged by both." in page
    assert "They are right and wrong" not in page


def test_the_presets_keep_what_they_say(shop: tuple[Served, list[Path]]) -> None:
    server, runs = shop
    votes, truth = [raw(run)[0] for run in runs], raw(runs[0])[1]
    names = [f"webarena.t{at}" for at in range(COUNT)]
    said = {name: [judge.get(name) for judge in votes] for name in names}
    rewards = [json.loads(line) for run in runs[:1] for line in (run / "rewards.jsonl").open()]
    rule = {r["key"]["task_id"]: r["official_reward"] > 0.5 for r in rewards}
    wanted = {
        "": names,
        "wrong": [n for n in names if n in truth and said[n] == [not truth[n]] * 3],
        "differs": [n for n in names if min(said[n].count(True), said[n].count(False)) == 1],
        "rule": [n for n in names if n in truth and n in rule and rule[n] != truth[n]],
        "unstable": [n for n in names if n in votes[2]],
    }
    for preset, kept in wanted.items():
        assert asked(server, f"preset={preset}")["total"] == len(kept), preset
        assert len(kept) > 5


def test_pages_follow_each_other_without_a_gap(shop: tuple[Served, list[Path]]) -> None:
    server, _ = shop
    seen: list[str] = []
    view = asked(server, "")
    while True:
        rows = view["rows"]
        assert isinstance(rows, list)
        seen += [row["key"]["task_id"] for row in rows]
        if not view["next"]:
            break
        view = orjson.loads(server.ask(str(view["next"]), Accept="application/json").text)
    assert len(seen) == COUNT == len(set(seen))


def test_a_bad_filter_stands_beside_its_field(shop: tuple[Served, list[Path]]) -> None:
    server, _ = shop
    answer = server.ask("/compare?f=nonsense:x")
    assert answer.status == 422
    assert 'id="problem" class="problem" role="alert"><bdi>' in answer.text
    assert server.ask("/compare?runs=absent").status == 404
    assert server.ask("/compare?show=99999").status == 404
    for hostile in ("after=-1", "after=x", "preset=x", "a=x&b=y", "show=x", "runs=,,"):
        assert server.ask(f"/compare?{hostile}").status == 200


def test_evidence_is_told_by_what_was_shown() -> None:
    overflowed = call(rung="full", finish="context_overflow")
    table = JudgmentTable.of(
        [
            said("1", True, calls=(call(rung="full"),)),
            said("1", True, calls=(call(rung="elided"),)),
            said("1", True, calls=(overflowed, call(rung="elided"))),
            said("1", True, calls=(call(rung="my own"),)),
            failed("1", Status.SKIPPED),
        ]
    )
    options = {"representation": "axtree"}
    manifest = {"judge": "simplified-axtree:gpt-4o", "options": options, "data": "sample"}
    other_model = manifest | {"model": "gpt-5", "judge": "simplified-axtree:gpt-5"}
    screenshot = manifest | {"options": {"representation": "screenshot"}}
    other_data = manifest | {"revision": "x"}
    hashes = [
        evidence_hash(shown_to(each), table, row)
        for each, row in (
            (manifest, 0), (other_model, 0), (manifest, 1), (manifest, 2), (screenshot, 0),
            (other_data, 0), ({"judge": "mine"}, 0), (manifest, 3), (manifest, 4),
        )
    ]  # fmt: skip
    assert "".join(letters(hashes)) == "AABBCD???"


@pytest.mark.browser
def test_it_leads_to_reasoning_and_trajectory(
    browser: Browser, shop: tuple[Served, list[Path]]
) -> None:
    page = browser.new_context(java_script_enabled=False).new_page()
    page.set_default_timeout(30_000)
    page.goto(f"{shop[0].address}/compare?runs=u,v&preset=wrong")
    page.locator("tbody td.false-positive a, tbody td.false-negative a").first.click()
    assert "The order stands there." in page.locator("#panel").inner_text()
    page.get_by_role("link", name="The whole judgment").click()
    page.wait_for_url("**/judgment/**")
    page.go_back()
    with page.expect_navigation():
        page.get_by_role("link", name="Close").click()
    assert page.locator("#panel").count() == 0
    page.locator("table[data-rows] tbody th a").first.click()
    expect(page.locator(".steps li")).to_have_count(2)


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_it_fits(
    browser: Browser, shop: tuple[Served, list[Path]], scheme: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    context = browser.new_context(
        color_scheme=scheme,  # type: ignore[arg-type]
        bypass_csp=True,
        viewport={"width": 320, "height": 700},
    )
    page = context.new_page()
    page.goto(f"{shop[0].address}/compare?runs=u,v,w&show=1&f=task:*t10*")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    apart = "label.control.getBoundingClientRect().top - label.getBoundingClientRect().top"
    labels = "[...document.querySelectorAll('.filter label')]"
    assert page.evaluate(f"Math.max(...{labels}.map(label => Math.abs({apart})))") < 20


@pytest.mark.browser
def test_hostile_text_stays_text(browser: Browser, shop: tuple[Served, list[Path]]) -> None:
    page = browser.new_context().new_page()
    origin = shop[0].address
    events = complaints(page, origin)
    page.goto(f"{origin}/compare?show=0&runs=judge")
    assert page.locator("#panel").count() == 1
    assert page.evaluate("window.pwned") is None
    assert page.locator("main iframe, main script, main [onload], main object").count() == 0
    assert events == []


def test_the_table_of_two_is_counted_once_while_the_runs_stay(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / n, tasks(ord(n)), judge=n) for n in "ab"]
    lines = (runs[1] / JUDGMENTS).read_bytes().splitlines(keepends=True)
    (runs[1] / JUDGMENTS).write_bytes(b"".join(lines[:50]))
    workspace, tables = open_workspace(runs), PairedTables()

    def counted(**asked: str) -> PairedJudges:
        paired = compare(workspace, read_compare(asked, []), tables).paired
        assert paired is not None
        return paired

    counted()
    assert wait_until(lambda: not any(run.notes() for run in workspace.runs.values()), every=0.05)
    whole, chosen = counted(), counted(f="expert:yes")
    assert chosen.counts.n < whole.counts.n
    assert counted() is whole
    assert counted(preset="ab", after="3") is whole
    assert counted(f="expert:yes") is chosen
    assert counted(a="b", b="a").counts.n == whole.counts.n
    with (runs[1] / JUDGMENTS).open("ab") as file:
        file.writelines(lines[50:])
    assert wait_until(lambda: counted().counts.n > whole.counts.n, every=0.05)


def test_labels_of_unequal_probabilities_take_no_test(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / n, tasks(ord(n)), judge=n) for n in "ab"]
    for run in runs:
        labels = annotation_store.load(run / LABELS)
        drawn = [
            each.model_copy(update={"inclusion_probability": 0.2 + 0.5 * (place % 2)})
            for place, each in enumerate(labels)
        ]
        annotation_store.write(run / LABELS, drawn)
    paired = compare(open_workspace(runs), read_compare({}, []), PairedTables()).paired
    assert paired is not None
    assert paired.weighted and paired.counts.n and paired.counts.p is None
