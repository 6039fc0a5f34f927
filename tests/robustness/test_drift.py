"""Canaries: a model that changed is told from one that is only noisy."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.commands import robust as main
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer
from tests.robustness.models import own_verdict, reply
from tests.screens import on_one_line
from tests.tables import one_sentence
from trajudge.robustness.drift import JudgeDrift, check_drift
from trajudge.robustness.settings import SOURCES, RobustConfig
from trajudge.stats.comparison import exchange_test
from trajudge.util import settings

RUNS = 24
DAY = date(2030, 5, 6)
Model = Callable[[Incoming], str]


def steady(incoming: Incoming) -> str:
    return reply(own_verdict(incoming.prompt))


def contrary(incoming: Incoming) -> str:
    return reply(not own_verdict(incoming.prompt))


class Noisy:
    """Says of each prompt now this, now that: every second draw is the other."""

    def __init__(self) -> None:
        self.drawn: Counter[str] = Counter()

    def __call__(self, incoming: Incoming) -> str:
        self.drawn[incoming.prompt] += 1
        return reply(self.drawn[incoming.prompt] % 2 == 0)


class Service:
    """A model behind one address, which may be exchanged; the command's ``out`` and ``file``."""

    def __init__(self, folder: Path) -> None:
        self.model: Model = steady
        self.judge: tuple[str, ...] = ("--judge", "simplified")
        self.out, self.file = folder / "out", folder / "canaries.jsonl"
        self.server = LlmServer(text=self._answer, record=0)

    def _answer(self, incoming: Incoming) -> str:
        return self.model(incoming)

    def words(self, *more: str) -> list[str]:
        judge = (*self.judge, "--model", "gpt-4o", "--yes", "--data", "sample")
        runs = ("--limit", str(RUNS), "--perturbation", "identity", "--out", str(self.out))
        places = ("--cache", str(self.out / "cache.sqlite"), "--drift", str(self.file))
        return [*judge, *runs, *places, "--base-url", f"{self.server.url}/v1", *more]

    def robust(self, *more: str) -> tuple[int, int]:
        """The command's exit code, and how many requests it sent."""
        before = self.server.stats.requests
        return main(self.words(*more)), self.server.stats.requests - before

    def on(self, day: date, *more: str) -> tuple[int, int, dict[str, Any]]:
        """The same on a day, with what was found."""
        config = settings.parse(RobustConfig, "trajudge robust", self.words(*more))
        before = self.server.stats.requests
        code = check_drift(config.request, config, day)
        sent = self.server.stats.requests - before
        file = self.out / "canaries" / day.isoformat() / "drift.json"
        (found,) = json.loads(file.read_text())
        return code, sent, found


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path)
    with made.server:
        yield made


@pytest.mark.slow
def test_a_model_that_says_the_same_has_not_drifted(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    assert service.robust() == (0, 2 * RUNS), "the verdicts that are frozen, each twice"
    lines = [json.loads(line) for line in service.file.read_text().splitlines()]
    assert len(lines) == RUNS
    assert {(len(one["requests"]), len(set(one["verdicts"]))) for one in lines} == {(1, 1)}
    assert f"{RUNS} canaries of 1 judge frozen in" in capsys.readouterr().out
    content = service.file.read_bytes()
    assert service.robust() == (0, 2 * RUNS), "the same command asks past the cache"
    shown = capsys.readouterr().out
    assert "simplified-axtree:gpt-4o: no more than noise: 0.0 %" in shown
    assert max(len(line) for line in shown.splitlines() if "/" not in line) <= 100
    assert service.robust() == (0, 0), "and on one day once"
    assert service.file.read_bytes() == content


@pytest.mark.slow
def test_every_day_is_asked_anew_and_a_change_is_found(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    service.robust()
    code, sent, found = service.on(DAY)
    assert (code, sent, found["between"], found["has_drifted"]) == (0, 2 * RUNS, 0, False)
    service.model = contrary
    assert service.on(DAY)[:2] == (0, 0), "what was asked on the day is kept"
    code, sent, found = service.on(DAY.replace(day=7))
    assert (code, sent, found["compared"]) == (1, 2 * RUNS, RUNS)
    assert (found["between"], found["within"]) == (1, 0)
    assert found["accepted_now"] == pytest.approx(1 - found["accepted_then"])
    assert found["p_adjusted"] < 0.001 and found["has_drifted"]
    shown = on_one_line(capsys.readouterr().out)
    assert "its verdicts have changed: 100.0 % of verdicts differ" in shown
    service.model = steady
    assert service.on(DAY.replace(day=8))[0] == 0


def test_a_model_that_is_only_noisy_has_not_drifted(service: Service) -> None:
    """Half of its verdicts are others than then, and no draw is like the one before."""
    service.model = Noisy()
    service.robust()
    code, _, found = service.on(DAY)
    assert (code, found["between"], found["within"]) == (0, 0.5, 1)
    assert found["p_adjusted"] > 0.9


@pytest.mark.slow
def test_another_prompt_tells_nothing_of_the_model(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    service.robust()
    service.model = contrary
    code, _, found = service.on(DAY, "--max-tokens", "321")
    assert (code, found["other_prompts"], found["compared"]) == (1, RUNS, 0)
    assert not found["has_drifted"] and found["between"] is None
    printed = capsys.readouterr().out
    assert "no canary could be compared" in printed
    assert f"{RUNS} canaries have other prompts than the frozen ones" in printed


@pytest.mark.slow
def test_a_failure_is_no_verdict(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    service.robust()
    service.model = lambda _: "I would rather not say."
    code, _, found = service.on(DAY)
    assert (code, found["unanswered"], found["compared"]) == (1, RUNS, 0)
    assert f"{RUNS} canaries got no verdict" in capsys.readouterr().out


def test_a_dry_run_asks_nothing(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    service.robust()
    capsys.readouterr()
    assert service.robust("--dry-run") == (0, 0)
    assert capsys.readouterr().out


def test_free_judges_have_canaries_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Other verdicts, and other prompts, end with 1."""
    file = tmp_path / "c.jsonl"
    words = ["--judge", "heuristic", "--data", "sample", "--limit", "6", "--perturbation"]
    words += ["identity", "--out", str(tmp_path), "--drift", str(file)]
    assert main(words) == 0
    frozen = [json.loads(line) for line in file.read_text().splitlines()]

    def checked(**changes: Any) -> tuple[int, dict[str, Any]]:
        lines = [json.dumps({**one, **{k: f(one) for k, f in changes.items()}}) for one in frozen]
        file.write_text("".join(f"{line}\n" for line in lines))
        code = main(words)
        (drift,) = tmp_path.glob("canaries/*/drift.json")
        return code, json.loads(drift.read_text())[0]

    assert checked()[0] == 0
    assert "heuristic: no more than noise" in capsys.readouterr().out
    code, found = checked(verdicts=lambda one: [not verdict for verdict in one["verdicts"]])
    assert (code, found["compared"], found["has_drifted"]) == (1, 6, True)
    assert found["p_adjusted"] == found["p_value"] < 0.05
    code, found = checked(requests=lambda _: ["other"])
    assert (code, found["compared"], found["other_prompts"]) == (1, 0, 6)
    assert (found["p_value"], found["p_adjusted"], found["has_drifted"]) == (1, 1, False)


@pytest.mark.parametrize(("p", "has_drifted"), [(0.0499, True), (0.05, False)])
def test_below_5_percent_is_a_drift(p: float, has_drifted: bool) -> None:
    assert JudgeDrift("j", 9, 0, 0, p_adjusted=p).has_drifted is has_drifted


KEY = '{"benchmark":"b","agent":"a","task_id":"t"}'
LINE = f'{{"judge":"heuristic","key":{KEY},"verdicts":[true,%s]}}'


@pytest.mark.parametrize(
    ("content", "words", "sentence"),
    [
        ("", ("--judge", "heuristic"), "is empty: remove it"),
        (LINE % "7", ("--judge", "heuristic"), "line 1: verdicts.1 is 7"),
        (LINE[:40], ("--judge", "heuristic"), "restore the file from a copy, or remove it"),
        (LINE % "true", ("--judge", "heuristic"), "1 of its 1 runs are not in the data"),
        (LINE % "true", (), "no judge to ask: name one with --judge"),
    ],
)
def test_a_mistake_is_one_sentence(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    content: str,
    words: tuple[str, ...],
    sentence: str,
) -> None:
    file = tmp_path / "canaries.jsonl"
    file.write_text(content)
    given = ["--data", "sample", "--drift", str(file), "--out", str(tmp_path / "out"), *words]
    assert main(given) == 2
    one_sentence(capsys, sentence)
    assert file.read_text() == content


def test_canaries_of_another_judge_are_refused(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    service.robust()
    before = service.server.stats.requests
    assert main(service.words("--judge-option", "success=last")) == 2
    assert "holds none of simplified-axtree-success-last:gpt-4o" in capsys.readouterr().err
    assert service.server.stats.requests == before


def test_changes_that_no_noise_explains_weigh_by_task() -> None:
    """Of a steady judge one changed task has one chance in three, three have one in 27; three runs
    of one task are no more than one."""
    then = np.zeros((50, 2))
    for changed, clusters, expected in [
        (1, np.arange(50), 1 / 3),
        (3, np.arange(50), 1 / 27),
        (3, np.arange(50) // 3, 1 / 3),
    ]:
        now = then.copy()
        now[:changed] = 1
        found = exchange_test(then, now, clusters, np.random.default_rng(0))
        assert found.p_value == pytest.approx(expected, abs=0.015)
        assert (found.between, found.within) == (changed / 50, 0)
    assert exchange_test(then, then, np.arange(50), np.random.default_rng(0)).p_value == 1


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "changed"), [(0.02, 0.15), (0.2, 0.3)])
def test_noise_is_called_drift_as_rarely_as_is_said(noise: float, changed: float) -> None:
    """Of judges that did not change at most one in twenty; of those that changed by more than
    their noise, most. As many canaries as the command has by default."""
    rng = np.random.default_rng(5)
    false, found, rounds = 0, 0, 200
    for _ in range(rounds):
        settled = (rng.random(SOURCES) < 0.4).astype(float)[:, None]
        draws = np.abs(settled - (rng.random((SOURCES, 4)) < noise))
        tasks = np.arange(SOURCES) // 2
        false += exchange_test(draws[:, :2], draws[:, 2:], tasks, rng).p_value < 0.05
        moved = np.abs(draws[:, 2:] - (rng.random((SOURCES, 1)) < changed))
        found += exchange_test(draws[:, :2], moved, tasks, rng).p_value < 0.05
    assert false / rounds < 0.09
    assert found / rounds > 0.8
