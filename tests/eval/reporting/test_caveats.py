"""The sentences below the tables: what weakens the numbers."""

from __future__ import annotations

import re

import pytest

from tests.eval.cases import failed, key, label, said
from trajudge.eval.reporting.sentences import notes, warnings_of
from trajudge.eval.reporting.summary import summary
from trajudge.eval.reporting.tables import plain
from trajudge.eval.scoring.compute import score
from trajudge.judges.model import Status


def test_failed_judgments_come_first_among_the_warnings() -> None:
    labels = {key(n): label(n, n % 2 == 0) for n in range(10)}
    judgments = [*(said(n, True) for n in range(9)), failed(9, Status.REFUSED)]
    lines = summary(score(judgments, labels, rewards={}), width=100).splitlines()
    warnings = [line for line in lines if line.startswith("warning: ")]
    assert warnings[0] == "warning: 1 failed judgment of judge counted as not accepted"


def test_what_judges_left_open_is_told_label_by_label_where_it_differs() -> None:
    """The count of one label, whichever came last, stood for all of them."""
    labels = {key(n): label(n, n % 2 == 0, side_effect=None if n else True) for n in range(10)}
    judgments = [*(said(n, True, side_effect=False) for n in range(2, 10))]
    judgments += [failed(n, Status.REFUSED) for n in (0, 1)]
    text = " ".join(summary(score(judgments, labels, rewards={}), width=100).split())
    assert (
        "warning: 2 failed judgments (success) and 1 failed judgment (side effect) of judge "
        "counted as not accepted"
    ) in text


def test_a_label_that_the_labels_do_not_hold_is_not_spoken_of() -> None:
    """Labels of success alone read "few positive labels (side effect) … 0", and "40 unsure"."""
    labels = {key(n): label(n, n % 2 == 0) for n in range(40)}
    judgments = [said(n, True, side_effect=False, repetition=False) for n in range(40)]
    scored = score(judgments, labels, rewards={})
    for text in (summary(scored, width=100), "\n".join(notes(scored)), plain(scored)):
        assert not re.search("side effect|repetition|unsure", text.lower())
    half = labels | {key(n): label(n, True, side_effect=n == 0) for n in range(20)}
    assert warnings_of(score(judgments, half, rewards={}))[0] == (
        "warning: few positive labels (side effect 1): estimates are unreliable"
    )


def test_precision_on_one_task_says_why_it_has_no_interval() -> None:
    labels = {key(n): label(n, True) for n in range(4)}
    judgments = [said(n, n == 0) for n in range(4)]
    text = " ".join(summary(score(judgments, labels, rewards={}), width=100).split())
    assert "precision without an interval: judge: it counts runs of one task only" in text


def test_what_failed_of_many_judges_is_one_warning() -> None:
    labels = {key(n): label(n, n % 2 == 0) for n in range(10)}
    judgments = [
        one
        for judge in "abcdef"
        for one in (
            *(said(n, True, judge=judge) for n in range(9)),
            failed(9, Status.REFUSED, judge=judge),
        )
    ]
    text = " ".join(summary(score(judgments, labels, rewards={}), width=100).split())
    assert text.count("failed judgment") == 4
    assert "1 failed judgment of d, of 2 more judges counted as not accepted" in text


@pytest.mark.parametrize(("failing", "kind"), [(0, "2 undecided"), (1, "3 failed or undecided")])
def test_a_judge_that_leaves_the_label_open_did_not_fail(failing: int, kind: str) -> None:
    labels = {key(n): label(n, n % 2 == 0) for n in range(12)}
    judgments = [said(n, True) for n in range(9)] + [said(n, None) for n in (9, 10)]
    judgments += [failed(11, Status.REFUSED)] * failing
    lines = summary(score(judgments, labels, rewards={}), width=100).splitlines()
    warnings = [line for line in lines if line.startswith("warning: ")]
    assert warnings[0] == f"warning: {kind} judgments of judge counted as not accepted"


def test_what_is_open_in_one_label_alone_is_not_said_of_all() -> None:
    labels = {key(n): label(n, n % 2 == 0, side_effect=False) for n in range(12)}
    judgments = [said(n, True, side_effect=None if n < 2 else False) for n in range(12)]
    warnings = warnings_of(score(judgments, labels, rewards={}))
    assert (
        "warning: 2 undecided judgments (side effect) of judge counted as not accepted" in warnings
    )


def test_a_precision_without_an_interval_is_named_with_whose_it_is() -> None:
    labels = {key(n): label(n, n % 2 == 0) for n in range(12)}
    choosy = [said(n, n == 2, judge="choosy") for n in range(12)]
    wide = [said(n, n < 8, judge="wide") for n in range(12)]
    line = "warning: precision without an interval: choosy: it counts runs of one task only"
    assert line in warnings_of(score([*choosy, *wide], labels, rewards={}))
    assert not any("wide" in one for one in warnings_of(score(wide, labels, rewards={})))


@pytest.mark.parametrize(("positives", "is_few"), [(19, True), (20, False)])
def test_fewer_than_twenty_positive_labels_are_few(positives: int, is_few: bool) -> None:
    labels = {key(n): label(n, n < positives) for n in range(40)}
    lines = warnings_of(score([said(n, n < 30) for n in range(40)], labels, rewards={}))
    few = "warning: few positive labels (success 19): estimates are unreliable"
    assert (few in lines) == is_few


def test_warnings_of_one_kind_are_one_line() -> None:
    """Three labels with few positives were three warnings, and each benchmark named in each."""
    labels = {
        key(n, b): label(n, n % 2 == 0, side_effect=n == 1, repetition=n > 3, benchmark=b)
        for b in ("webarena", "workarena")
        for n in range(6)
    }
    judgments = [
        said(n, n < 4, side_effect=n < 2, repetition=n > 2, benchmark=b)
        for b in ("webarena", "workarena")
        for n in range(6)
    ]
    lines = warnings_of(score(judgments, labels, rewards={}))
    assert lines[0] == (
        "warning: few positive labels (success 6, side effect 2, repetition 4): estimates are "
        "unreliable"
    )
    assert sum("few positive" in line for line in lines) == 1
