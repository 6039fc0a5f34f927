"""What the tab State says of an expectation: values, never the names that stand for them."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from trajudge.app.evidence_files import FACTS, described, state_facts
from trajudge.trajectories.model import TrajectoryKey
from trajudge.trajectories.sample import sample_path
from trajudge.util.files import DataFolder

REVOKED = {
    "kind": "changed",
    "table": "accesskey",
    "key": "k7",
    "before": {"status": "live"},
    "after": {"status": "revoked", "ground": "lost"},
    "inside": True,
}
NAME = "changed accesskey {key[id]}: status = revoked, ground = {ground}"


@pytest.mark.parametrize(
    ("holds", "changes", "text"),
    [
        (True, [REVOKED], "changed accesskey k7: status = revoked, ground = lost"),
        (
            False,
            [],
            "changed accesskey (the one that was meant): status = revoked, ground as asked",
        ),
        (
            True,
            [REVOKED, {**REVOKED, "inside": False, "key": "k8"}],
            "changed accesskey k7: status = revoked, ground = lost",
        ),
        # Which of two rows the expectation claimed is not known.
        (
            True,
            [REVOKED, {**REVOKED, "key": "k8"}],
            "changed accesskey (the one that was meant): status = revoked, ground as asked",
        ),
    ],
)
def test_values_come_from_the_row_that_met_it(
    holds: bool, changes: list[dict[str, object]], text: str
) -> None:
    assert described({"name": NAME, "holds": holds, "wanted": 1}, changes) == text


@pytest.mark.parametrize(
    ("name", "change", "text"),
    [
        (
            "removed wish: product = {product[id]}",
            {"kind": "removed", "table": "wish", "before": {"product": "p1"}, "after": {}},
            "removed wish: product = p1",
        ),
        (
            "added result: tool = loan, inputs = amount={amount}; source={pair[source]}",
            {
                "kind": "added",
                "table": "result",
                "before": {},
                "after": {"tool": "loan", "inputs": "amount=5; source=kg"},
            },
            "added result: tool = loan, inputs = amount=5; source=kg",
        ),
        ("sent", {}, "sent"),
        ("changed account me: city = Exeter", {}, "changed account me: city = Exeter"),
    ],
)
def test_every_form_of_an_expectation_is_read(
    name: str, change: dict[str, object], text: str
) -> None:
    predicate = {"name": name, "holds": True, "wanted": 1}
    assert described(predicate, [{"inside": True, "key": "x", **change}]) == text


def test_no_fact_of_the_sample_shows_a_template() -> None:
    folder = sample_path()
    lines = (folder / FACTS).read_bytes().splitlines()
    keys = [TrajectoryKey.model_validate(orjson.loads(line)["key"]) for line in lines]
    texts = [
        fact.text
        for key in keys
        for fact in state_facts(key, Path(folder), DataFolder(folder))
        if fact.name == "must hold"
    ]
    assert texts
    assert not [text for text in texts if "{" in text]
    assert any("added purchase: delivery = standard: 1 found, 1 wanted" in text for text in texts)
