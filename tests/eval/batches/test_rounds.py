"""A run in batches ends with the bytes of a live run, whatever the provider does on the way."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import orjson
import pytest

from tests.batch_server import BatchServer
from tests.eval.batches.batch_runs import JUDGMENTS, judge, live
from tests.screens import on_one_line
from trajudge.eval.store.run_folder import read_judgments
from trajudge.judges.batch.ledger import Ledger

pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"),
    [("gpt-4o", "simplified"), ("claude-sonnet-4-5", "simplified"), ("gpt-4o", "webjudge")],
)
def test_the_bytes_of_a_live_run(name: str, kind: str) -> None:
    with BatchServer() as server:
        judgments = live(server, "--judge", kind, name=name)
        calls = server.live
        assert judge(server, "batch", "--batch", "--judge", kind, name=name) == 0
        assert server.live == calls
    assert Path("batch/judgments.jsonl").read_bytes() == judgments
    assert server.double == server.over_limit == 0
    assert judgments.count(b"\n") == JUDGMENTS
    live_manifest, manifest = (
        orjson.loads(Path(f"{run}/manifest.json").read_bytes()) for run in ("live", "batch")
    )
    assert manifest == live_manifest


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt-4o", "claude-sonnet-4-5"])
def test_traps(name: str) -> None:
    traps = dict.fromkeys(("accept_500", "accept_drop", "refuse_429", "cut"), 0.3)
    traps |= {"expire": 0.3, "error": 0.05, "duplicate": 0.1}
    with BatchServer(traps=traps, seed=3) as server:
        judgments = live(server, name=name)
        assert judge(server, "batch", "--batch", name=name) == 0
    assert Path("batch/judgments.jsonl").read_bytes() == judgments
    assert server.double == server.over_limit == 0
    assert server.submissions > 1


def test_a_refused_line_is_a_status() -> None:
    with BatchServer(traps={"refuse": 1.0}) as server:
        assert judge(server, "batch", "--batch") == 1
    found = read_judgments(Path("batch"))
    assert {one.status for one in found} == {"refused"}
    assert {one.success for one in found} == {None}


def test_a_line_that_always_fails_is_a_provider_error() -> None:
    with BatchServer(traps={"error": 1.0}, seconds=0.05) as server:
        assert judge(server, "batch", "--batch", "--limit", "3") == 1
        assert server.submissions == 5
    assert {one.status for one in read_judgments(Path("batch"))} == {"provider_error"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt-4o", "claude-sonnet-4-5"])
def test_a_lost_submission_is_not_taken_for_that_of_another_run(name: str) -> None:
    """Another run with a cache of its own asked the same, of as many trajectories."""
    with BatchServer(seconds=0.05) as server:
        assert judge(server, "other", "--batch", name=name) == 0
        server.forget_lines()
        server.seconds, server.traps = 1.0, {"accept_500": 1.0}
        assert judge(server, "batch", "--batch", name=name) == 0
        taken = [*server.batches]
    ledger = Ledger(Path("batch.sqlite.batches"))
    assert [row.provider_id for row in ledger.batches()] == taken[1:]
    ledger.close()
    assert server.double == 0
    assert Path("batch/judgments.jsonl").read_bytes() == Path("other/judgments.jsonl").read_bytes()


def test_ten_lines_refused_in_the_same_words_end_the_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As of live calls: what is wrong with all requests is not asked of all of them."""
    with BatchServer(traps={"refuse": 1.0}) as server:
        assert judge(server, "batch", "--batch", "--limit", "12") == 2
        told = on_one_line(capsys.readouterr().err)
        assert "10 requests were refused and none answered: " in told
        assert server.submissions == 1
        server.traps.clear()
        assert judge(server, "batch", "--batch", "--limit", "12", "--retry-failed") == 0


def test_a_line_that_is_answered_makes_refusals_statuses() -> None:
    with BatchServer(traps={"refuse": 0.9}, seed=1) as server:
        assert judge(server, "batch", "--batch", "--limit", "24") == 1
    statuses = Counter(str(one.status) for one in read_judgments(Path("batch")))
    assert statuses["refused"] >= 10
    assert statuses["ok"] == 24 - statuses["refused"] > 0
