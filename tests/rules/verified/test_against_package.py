"""The release mode gives the installed package's verdicts, on cases drawn from a seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import missing
from tests.rules.against_package import answer_changes, request_changes
from tests.rules.against_package.comparing import SHARES, Comparison
from tests.rules.against_package.environment import PACKAGE
from tests.rules.against_package.peer import PackageProcess
from tests.rules.against_package.reduction import reduced
from tests.rules.verified.release_cases import CASES
from tests.rules.verified.tasks import HOSTS
from trajudge.util.machine import NoEnvironment

FRESH = 5_000


@pytest.fixture(scope="module")
def python() -> Path:
    """An interpreter that has the package: a given one, or an environment made for it."""
    try:
        return PACKAGE.python()
    except NoEnvironment as error:
        missing("package", str(error))
        raise AssertionError("unreachable") from error


@pytest.mark.slow
def test_the_release_mode_gives_the_package_s_verdicts(python: Path) -> None:
    with PackageProcess(python) as process:
        tally = Comparison(process, seed=0, most_shown=5).run(FRESH)
    assert not tally.disagreements, "\n\n".join(map(str, tally.disagreements))
    assert sum(tally.cases.values()) == FRESH
    for label in SHARES:
        verdicts = {verdict for where, verdict in tally.verdicts if where == label}
        assert len(verdicts) >= 3, f"{label}: the cases are all alike"


def test_there_are_many_realistic_changes() -> None:
    assert len(request_changes.CHANGES) >= 25
    assert len(answer_changes.CHANGES) >= 25


def test_a_case_is_reduced_to_what_makes_it_differ() -> None:
    case = {"answer": {"a": [1, 2], "b": "xyz"}, "entries": [1, 2, 3], "task_id": 7}
    smallest = reduced(
        {**case, "changes": ["one"]},
        lambda case: "y" in str(case["answer"].get("b")) and 2 in case["entries"],
    )
    assert smallest == {"answer": {"b": "y"}, "entries": [2], "task_id": 7}


def test_the_verdicts_of_the_known_cases_are_the_package_s(python: Path) -> None:
    hosts = {name: list(urls) for name, urls in HOSTS.items()}
    cases = [{**case._asdict(), "hosts": hosts} for case in CASES]
    with PackageProcess(python) as process:
        replies, _ = process.judge(cases, lambda: None)
    said = {case.name: reply["verdict"] for case, reply in zip(CASES, replies, strict=True)}
    assert said == {case.name: case.verdict for case in CASES}
