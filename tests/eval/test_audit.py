"""The audit of a rule: counts by facet, the agents' order, and the cases worth a look."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.commands import command
from tests.samples import narrow
from tests.screens import on_one_line, one_screen
from tests.tables import mistakes
from trajudge.annotations import Label, open_annotations, primary_labels
from trajudge.annotations.agentrewardbench import benchmark_of
from trajudge.eval.audit import (
    AgentRanking,
    Audit,
    Flip,
    Labelled,
    RuleErrors,
    errors_by_facet,
    find_cases,
    rank_agents,
    read_facets,
    rule_errors,
    sentences,
    summary,
    tau_of,
    with_evidence,
)
from trajudge.eval.scoring.metrics import verdict_limits
from trajudge.eval.scoring.records import OVERALL
from trajudge.eval.store.run_folder import (
    JUDGMENTS,
    judgment_line,
    write_labels,
    write_manifest,
    write_rewards,
)
from trajudge.judges.model import Judgment, Status
from trajudge.stats.intervals import Bools, sum_clusters, verdict_columns
from trajudge.trajectories import store
from trajudge.trajectories.model import Step, Trajectory, TrajectoryKey

AGENTS = ("a", "b", "c")
Verdicts = dict[TrajectoryKey, bool]
main = command("audit")


def key(task: int, agent: str = "a") -> TrajectoryKey:
    return TrajectoryKey(benchmark="webarena", agent=agent, task_id=f"webarena.{task}")


KEYS = [key(task) for task in range(6)]
EXPERT = dict(zip(KEYS, (True, True, True, False, False, False), strict=True))
RULE = dict(zip(KEYS, (True, False, False, True, False, False), strict=True))


def array(verdicts: Verdicts, keys: list[TrajectoryKey]) -> Bools:
    return np.array([verdicts[key] for key in keys], dtype=bool)


def errors(rule: Verdicts, expert: Verdicts, keys: list[TrajectoryKey]) -> RuleErrors:
    return rule_errors(Labelled.of(expert, keys), array(rule, keys))


def ranking(benchmark: str, expert: Verdicts, rule: Verdicts) -> AgentRanking:
    keys = sorted(expert, key=lambda key: key.order)
    return rank_agents(benchmark, "rule", Labelled.of(expert, keys), array(rule, keys))


def said(place: TrajectoryKey, success: bool | None, judge: str = "j") -> Judgment:
    status = Status.OK if success is not None else Status.REFUSED
    return Judgment(key=place, judge=judge, status=status, success=success, reasoning="because")


def test_the_errors_of_a_rule() -> None:
    found = errors(RULE, EXPERT, KEYS)
    assert (found.precision.hits, found.precision.trials) == (1, 2)
    assert (found.missed.hits, found.missed.trials) == (2, 3)
    assert (found.passed_failures.hits, found.passed_failures.trials) == (1, 3)
    assert found.missed.low is not None
    assert found.missed.low < 2 / 3 < (found.missed.high or 0)


def test_a_rate_of_nothing_is_undefined() -> None:
    found = errors(RULE, EXPERT, KEYS[4:])
    assert found.precision.rate is found.precision.low is found.missed.rate is None


def test_the_intervals_are_those_of_the_score() -> None:
    """Also where a task has no run that the rule passes."""
    rng = np.random.default_rng(0)
    keys = [key(task, agent) for task in range(30) for agent in AGENTS]
    rule, expert = (dict(zip(keys, rng.random(90) < 0.3, strict=True)) for _ in range(2))
    found = errors(rule, expert, keys)
    columns = verdict_columns(
        np.array([[float(rule[one])] for one in keys]),
        np.array([[float(expert[one])] for one in keys]),
    )
    counts = sum_clusters(columns.reshape(90, -1), [one.task_id for one in keys])
    limits = verdict_limits(counts.sums[None], counts.stratum_sizes)
    for name, limited in (("precision", found.precision), ("fpr", found.passed_failures)):
        assert (limited.low, limited.high) == (limits[name].low[0], limits[name].high[0])
    assert found.missed.low == pytest.approx(1 - limits["recall"].high[0])


def test_a_task_counts_with_each_of_its_methods(tmp_path: Path) -> None:
    (tmp_path / "webarena.csv").write_text(
        "task_name,sites,eval_types\n"
        "webarena.0,gitlab,string_match url_match\nwebarena.1,gitlab,url_match\n"
    )
    templates = tmp_path / "tasks.json"
    templates.write_text(json.dumps([{"task_id": 1, "intent_template_id": 7, "intent": "x"}]))
    facets = read_facets(tmp_path, templates)
    groups = errors_by_facet(Labelled.of(EXPERT, KEYS), array(RULE, KEYS), facets)
    found = {(each.facet, each.value): each.n for each in groups}
    assert found == {
        ("all", "all"): 6,
        ("benchmark", "webarena"): 6,
        ("agent", "a"): 6,
        ("site", "gitlab"): 2,
        ("evaluation", "string_match"): 1,
        ("evaluation", "url_match"): 2,
        ("template", "7"): 1,
    }


def table(rates: dict[str, int], tasks: int = 10) -> dict[TrajectoryKey, bool]:
    return {key(t, agent): t < good for agent, good in rates.items() for t in range(tasks)}


def test_an_order_that_the_rule_turns_round_is_named() -> None:
    expert, rule = table({"a": 8, "b": 5, "c": 2}), table({"a": 4, "b": 5, "c": 2})
    found = ranking("webarena", expert, rule)
    assert [(flip.better, flip.worse) for flip in found.flips] == [("a", "b")]
    assert found.flips[0].expert == (0.8, 0.5)
    assert found.tau == pytest.approx(1 / 3)
    assert found.low is not None
    assert found.low <= 1 / 3 <= (found.high or 0)
    assert found.shift == pytest.approx(-4 / 30)
    # Of ten tasks 4 and 5 are not told apart.
    assert not found.flips[0].significant
    text = sentences(audited(found))[0]
    assert "no pair reversed; not distinguishable on shared tasks: a and b" in text


def test_a_pair_is_reversed_where_both_orders_are_shown_on_the_tasks_of_both() -> None:
    """Agent a ran forty tasks that b did not, which show nothing of their order."""
    expert, rule = table({"a": 30, "b": 10}, 40), table({"a": 10, "b": 30}, 40)
    whole = ranking("webarena", expert, rule)
    assert whole.flips[0].significant and whole.flips[0].p_value is not None
    assert "reversed pairs: a 75.0 over b 25.0" in sentences(audited(whole))[0]
    moved = {replace_task(one): value for one, value in expert.items()}
    moved_rule = {replace_task(one): value for one, value in rule.items()}
    apart = ranking("webarena", moved, moved_rule)
    assert (apart.flips[0].p_value, apart.flips[0].significant) == (None, False)


def replace_task(one: TrajectoryKey) -> TrajectoryKey:
    return key(int(one.task_id.rsplit(".", 1)[-1]) + 100 * (one.agent == "b"), one.agent)


def audited(found: AgentRanking) -> Audit:
    return Audit(rule="rule", n=80, without_verdict=0, errors=(), rankings=(found,), cases=())


def test_of_many_reversed_pairs_the_first_are_named_whole(width: int) -> None:
    agents = {f"an-agent-of-a-long-name-{n}": 12 * n for n in range(8)}
    expert, rule = table(agents, 84), table({agent: 84 - n for agent, n in agents.items()}, 84)
    found = ranking(OVERALL, expert, rule)
    lines = one_screen(summary(audited(found), rest="all: --full", width=width), width)
    text = on_one_line("\n".join(lines))
    assert "…" not in text
    pair = r"an-\S+-\d [\d.]+ over an-\S+-\d [\d.]+ by the expert, [\d.]+ under [\d.]+"
    assert re.search(rf"reversed pairs: {pair}(; {pair})* and \d+ more ", text), text


def test_one_agent_has_no_order() -> None:
    expert = table({"a": 8})
    found = ranking("webarena", expert, expert)
    assert (found.tau, found.low, found.flips) == (None, None, ())
    assert not [line for line in sentences(audited(found)) if "tau" in line]
    screen = summary(audited(ranking(OVERALL, expert, expert)), rest="all: --full", width=100)
    assert "tau" not in screen


def test_an_order_is_reversed_at_the_level() -> None:
    pair = {"better": "a", "worse": "b", "expert": (0.7, 0.4), "evaluator": (0.4, 0.7)}
    assert Flip(**pair, p_value=0.05).significant
    assert not Flip(**pair, p_value=0.0501).significant


@pytest.mark.parametrize(("agents", "told"), [(8, ""), (9, "and 1 more group: --full")])
def test_the_screen_has_ten_groups(agents: int, told: str) -> None:
    """All runs, those of one benchmark, and those of each agent."""
    expert = table({f"agent-{n}": 10 + n for n in range(agents)}, 20)
    keys = [*expert]
    groups = errors_by_facet(Labelled.of(expert, keys), array(expert, keys), {})
    audit = audited(ranking(OVERALL, expert, expert)).model_copy(update={"errors": tuple(groups)})
    screen = summary(audit, rest="all: results", width=100)
    assert sum(f"agent-{n} " in screen for n in range(agents)) == 8
    assert re.findall("and .* more group.*", screen) == ([told] if told else [])


def test_workarenas_second_level_is_a_stratum_of_its_own_whatever_its_name() -> None:
    rng, found = np.random.default_rng(5), []
    drawn = {
        (level, task, agent): bool(rng.random() < rate + better)
        for level, rate in (("l1", 0.9), ("l2", 0.1))
        for task in range(8)
        for agent, better in (("a", -0.1), ("b", 0.1))
    }
    for second in ("workarena", "workarena++"):
        expert = {
            TrajectoryKey(
                benchmark=second if level == "l2" else "workarena",
                agent=agent,
                task_id=f"workarena.{level}.{task}",
            ): success
            for (level, task, agent), success in drawn.items()
        }
        found.append(ranking(OVERALL, expert, expert))
    assert [(one.tau, one.low, one.high) for one in found] == [(1, -1, 1)] * 2


@pytest.mark.parametrize("seed", range(20))
def test_tau_is_scipys_where_there_are_no_ties(seed: int) -> None:
    from scipy import stats

    rng = np.random.default_rng(seed)
    counts = np.stack([np.full(4, 97), rng.permutation(97)[:4], rng.permutation(97)[:4]])
    ours = tau_of(4)(counts.reshape(-1).astype(float))[0]
    assert ours == pytest.approx(stats.kendalltau(counts[1], counts[2]).statistic)


def test_cases_where_all_others_agree_against_one() -> None:
    judges = {
        KEYS[1]: [said(KEYS[1], True), said(KEYS[1], True, "k")],
        KEYS[2]: [said(KEYS[2], False), said(KEYS[2], None, "k")],
        KEYS[3]: [said(KEYS[3], True), said(KEYS[3], False, "k")],
        KEYS[0]: [said(KEYS[0], False)],
    }
    found = find_cases(Labelled.of(EXPERT, KEYS), array(RULE, KEYS), judges, {KEYS[1]: 0.0})
    assert [(case.suspect, case.key) for case in found] == [
        ("rule", KEYS[1]),
        ("annotation", KEYS[2]),
    ]
    steps = tuple(Step(index=n, action=f"click('{n}')") for n in range(5))
    run = Trajectory(key=KEYS[1], raw_task_id="r", goal="Buy it\n", steps=steps, answer="Done")
    seen = with_evidence(found[0], run)
    assert (seen.goal, seen.answer) == ("Buy it", "Done")
    assert seen.last_steps == ("3. click('2')", "4. click('3')", "5. click('4')")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    write_manifest(folder, {"judge": "j", "protocol": "default"})
    write_labels(
        folder,
        [Label(key=k, raw_task_id=k.task_id, annotator="A", success=s) for k, s in EXPERT.items()],
    )
    write_rewards(folder, {k: float(passed) for k, passed in RULE.items()})
    lines = [judgment_line(said(k, EXPERT[k])) for k in KEYS]
    (folder / JUDGMENTS).write_bytes(b"".join(lines))
    return folder


def test_the_command_writes_what_it_found(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(run), "--out", str(tmp_path / "audit")]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("The official reward passes 2 of 6 runs, of which 1 is a true success")
    assert "3 trajectories on which all others disagree with the official reward" in shown
    written = json.loads((tmp_path / "audit" / "audit.json").read_text())
    assert written["errors"][0]["missed"]["hits"] == 2
    cases = (tmp_path / "audit" / "cases.jsonl").read_text().splitlines()
    assert len(cases) == 3
    assert main([str(run), "--evaluator", "j", "--full", "--out", str(tmp_path / "other")]) == 0
    assert "Errors of j" in capsys.readouterr().out


@mistakes(
    """
    => nothing to audit
    absent => absent
    {run} --evaluator k => --evaluator k: no such judge here; there are j
    {run} --templates absent.json => absent.json
    {run} --task-tables {run} => holds none of the tables
    """
)
def test_mistakes_are_one_sentence(
    run: Path, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word.format(run=run) for word in words]) == 2
    shown = capsys.readouterr().err
    assert sentence in shown
    assert shown.count("error:") == 1


def test_task_tables_beside_the_judgments_do_not_hide_a_wrong_path(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "webarena.csv").write_text("task_name\n")
    assert main(["--judgments", str(tmp_path), "--task-tables", str(run)]) == 2
    assert f"--task-tables {run}: holds none of the tables" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.real_data
def test_the_stored_real_trajectories(real_data: Path, tmp_path: Path) -> None:
    data = real_data / "agentrewardbench"
    out = str(tmp_path / "audit")
    templates = str(real_data / "webarena" / "test.raw.json")
    assert (
        main(["--judgments", str(data), "--split", "test", "--templates", templates, "--out", out])
        == 0
    )
    written = json.loads((tmp_path / "audit" / "audit.json").read_text())
    overall = written["errors"][0]
    assert written["n"] == overall["n"] == 781
    assert (overall["precision"]["hits"], overall["precision"]["trials"]) == (132, 159)
    assert (overall["missed"]["hits"], overall["missed"]["trials"]) == (72, 204)
    assert {e["facet"] for e in written["errors"]} >= {"site", "evaluation", "level", "template"}


@pytest.mark.real_data
def test_the_experts_rates_of_table_3(real_data: Path) -> None:
    labels = primary_labels(open_annotations(f"agentrewardbench:{real_data / 'agentrewardbench'}"))
    expert = {
        k: a.success for k, a in labels.items() if a.split == "test" and a.success is not None
    }
    published = {
        "visualwebarena": (21.7, 28.3, 35.9),
        "webarena": (33.3, 55.1, 42.3, 22.4),
        "workarena++": (13.8, 18.4, 18.4, 9.2),
    }
    for benchmark, rates in published.items():
        own = {k: success for k, success in expert.items() if benchmark_of(k) == benchmark}
        found = ranking(benchmark, own, own)
        assert tuple(round(100 * (row.expert.rate or 0), 1) for row in found.agents) == rates
        assert (found.shift, found.flips) == (0, ())


def test_without_tables_every_trajectory_has_its_benchmark_and_agent() -> None:
    found = errors_by_facet(Labelled.of(EXPERT, KEYS), array(RULE, KEYS), {})
    assert [(e.facet, e.value) for e in found[1:]] == [("benchmark", "webarena"), ("agent", "a")]


def test_goals_of_the_cases_come_from_the_data_that_the_runs_name(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = tmp_path / "data"
    steps = (Step(index=0, action="click('1')"),)
    store.write(
        keep, [Trajectory(key=k, raw_task_id="r", goal=f"Buy {k}", steps=steps) for k in KEYS]
    )
    write_manifest(run, {"judge": "j", "protocol": "default", "data": f"trajudge:{keep}"})
    assert main([str(run), "--out", str(tmp_path / "audit")]) == 0
    lines = (tmp_path / "audit" / "cases.jsonl").read_text().splitlines()
    assert all(json.loads(line)["goal"].startswith("Buy webarena/") for line in lines)
    write_manifest(run, {"judge": "j", "protocol": "default", "data": "trajudge:/no/such/folder"})
    assert main([str(run), "--out", str(tmp_path / "audit")]) == 0


@narrow
@pytest.mark.slow
@pytest.mark.real_data
def test_the_audit_of_the_published_judgments_takes_one_screen(
    arb: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    screen_lines: Callable[[], list[str]],
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--judgments", str(arb / "judgments"), "--task-tables", str(arb)]
    assert main([*words, "--out", "audit"]) == 0
    lines = screen_lines()
    assert "(84.0 %, 75.5 to 89.9 by its 95 % interval)" in " ".join(" ".join(lines[:4]).split())
    assert any(line.startswith("WorkArena++ ") for line in lines)
    assert main([*words, "--out", "audit", "--full"]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 60
