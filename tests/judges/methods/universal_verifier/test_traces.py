"""The verifier against the original: 18 runs of its own code with scripted replies (real data)."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections import Counter, defaultdict
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.judges.methods.universal_verifier.fara import (
    TOOLS,
    fara_run,
    recorded_scores,
    unscored,
)
from trajudge.judges.adapters.errors import Unreachable
from trajudge.judges.judging import BaseClient, CallArgs
from trajudge.judges.methods.universal_verifier.judge import UniversalVerifier, VerifierRecord
from trajudge.judges.methods.universal_verifier.model import (
    UniversalVerifierOptions,
    action_history,
    totals,
)
from trajudge.judges.model import Picture, Reply, Text
from trajudge.judges.prompting import AuxiliaryModel
from trajudge.judges.replies import ParseFailure
from trajudge.trajectories.model import Trajectory

pytestmark = pytest.mark.real_data

OURS = {
    "cp_classification": "critical_point",
    "rubric_generation": "rubric",
    "dependency_check": "dependencies",
    "action_only": "baseline",
    "disambiguation": "conditions",
    "rescoring": "rescore",
    "cp_violation": "violation",
    "failure_points": "failures",
    "task_validity_trajectory": "validity_after",
    "task_validity": "validity_before",
}
CASES = (
    *("recorded-precomputed", "recorded-generated", "two-conditions", "one-condition-or"),
    *("penalty", "every-call-bad-once", "transport-error-rescoring", "renamed-and-out-of-range"),
    *(
        f"always-bad-{stage}"
        for stage in (
            *("rubric_generation", "action_only", "relevance", "evidence_batched", "rescoring"),
            *("side_effects", "outcome", "failure_points", "task_validity_trajectory"),
            "task_validity",
        )
    ),
)
# The original repeats a failed transport in the conversation; here the engine does, once is asked.
TRANSPORT = "transport-error-rescoring"
CHECKOUTS = os.environ.get("TRAJUDGE_CHECKOUTS", "")
Call = tuple[str, str, bool, str, tuple[int, ...], int]


@cache
def traces(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content | {"cases": {case["case"]: case for case in content["cases"]}}


class TraceClient(BaseClient):
    """Answers each call with the trace's reply for its stage and screenshot, in order; writes down
    what was asked in the trace's words."""

    def __init__(self, case: dict[str, Any], trajectory: Trajectory) -> None:
        self._replies: dict[tuple[str, tuple[int, ...]], list[Any]] = defaultdict(list)
        for call in case["calls"]:
            self._replies[_kind(call["stage"]), tuple(call["images"])].append(call["reply"])
        self._shots = _hashes(trajectory)
        self._attempts: Counter[tuple[str, tuple[int, ...]]] = Counter()
        self.asked: list[Call] = []
        self.sent: dict[tuple[str, tuple[int, ...], int], str] = {}

    async def answer(self, call_args: CallArgs) -> Reply:
        pictures = [p for m in call_args.messages for p in m.parts if isinstance(p, Picture)]
        images = tuple(self._shots[picture.sha256] for picture in pictures)
        kind = call_args.stage.partition("#")[0]
        if kind == "evidence":
            text = "".join(p.text for m in call_args.messages for p in m.parts if p.kind == "text")
            asked = re.findall(r"^(?:criterion_idx \d+|\*\*Criterion \d+):", text, re.MULTILINE)
            kind = "evidence_single" if len(asked) == 1 else "evidence_batched"
        model = "light" if call_args.model == "light" else "strong"
        json_asked = call_args.parameters.get("response_format") == {"type": "json_object"}
        attempt = self._attempts[kind, images]
        self._attempts[kind, images] += 1
        shape = [[m.role, [_part(p) for p in m.parts]] for m in call_args.messages]
        self.asked.append((kind, model, json_asked, json.dumps(shape), images, attempt))
        texts = (p.text for m in call_args.messages for p in m.parts if isinstance(p, Text))
        self.sent[kind, images, attempt] = sha256("\n".join(texts).encode()).hexdigest()
        reply = self._replies[kind, images][attempt]
        if isinstance(reply, dict) and "raise" in reply:
            raise Unreachable("scripted")
        return Reply(text=reply if isinstance(reply, str) else json.dumps(reply))


def _kind(stage: str) -> str:
    return OURS.get(stage, stage)


def _part(part: object) -> str:
    return f"image:{part.detail}" if isinstance(part, Picture) else "text"


@cache
def _hash_of(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def _hashes(trajectory: Trajectory) -> dict[str, int]:
    hashes = {}
    for step in trajectory.steps:
        image = step.observation.screenshot
        assert image is not None
        digest = sha256(image.data).hexdigest() if image.data else _hash_of(image.path or Path())
        hashes[digest] = step.index
    return hashes


@pytest.fixture(scope="module")
def run(real_data: Path) -> Trajectory:
    return fara_run(real_data)


def evaluated(
    case: dict[str, Any], run: Trajectory, real_data: Path, tmp_path: Path, **asked: Any
) -> tuple[TraceClient, VerifierRecord | ParseFailure]:
    rubrics = None
    if case["case"] == "recorded-precomputed":
        rubrics = tmp_path / "rubrics.json"
        rubric = unscored(recorded_scores(real_data)["rubric_items"])
        rubrics.write_text(json.dumps({run.raw_task_id: rubric}), encoding="utf-8")
    stages = set(case["count"])
    if not asked:
        asked = {
            "failures": "failure_points" in stages or "error" in case,
            "validity": "task_validity" in stages or "error" in case,
        }
    options = UniversalVerifierOptions(
        on_stage_failure="continue",
        last_page=False,
        rubrics=rubrics,
        light=AuxiliaryModel(model="light"),
        **asked,
    )
    judge, client = UniversalVerifier(options), TraceClient(case, run)

    async def work() -> VerifierRecord:
        return await judge.verification(run, client).record()

    try:
        return client, asyncio.run(work())
    except ParseFailure as failure:
        return client, failure


def test_the_cases_are_those_of_the_traces(real_data: Path) -> None:
    assert set(traces(real_data / "uv_traces/traces.json")["cases"]) == set(CASES)


def test_the_history_is_the_originals_byte_by_byte(run: Trajectory, real_data: Path) -> None:
    content = traces(real_data / "uv_traces/traces.json")
    digest = sha256(action_history(run).encode()).hexdigest()
    assert digest == content["action_history_sha256"]
    assert len(run.goal) == content["task_characters"]


@pytest.mark.parametrize("name", CASES)
def test_every_trace_is_equal(name: str, run: Trajectory, real_data: Path, tmp_path: Path) -> None:
    case = traces(real_data / "uv_traces/traces.json")["cases"][name]
    client, record = evaluated(case, run, real_data, tmp_path)
    expected = Counter(
        (
            _kind(call["stage"]),
            call["model"],
            call["json"],
            json.dumps(call["shape"]),
            tuple(call["images"]),
            call["attempt"],
        )
        for call in case["calls"]
        if not (name == TRANSPORT and call["stage"] == "rescoring" and call["attempt"])
    )
    assert Counter(client.asked) == expected
    if case.get("error"):
        assert isinstance(record, ParseFailure)
        return
    assert isinstance(record, VerifierRecord)
    _same(record, case["result"])


@pytest.mark.skipif(not CHECKOUTS, reason="TRAJUDGE_CHECKOUTS: fara in a folder")
@pytest.mark.parametrize("name", CASES)
def test_the_sources_own_prompts_are_sent_byte_by_byte(
    name: str, run: Trajectory, real_data: Path, tmp_path: Path
) -> None:
    """Every first question; a rescoring that failed leaves a sentence of ours behind."""
    case = traces(real_data / "uv_traces/traces.json")["cases"][name]
    asked = {"prompts": f"fara:{CHECKOUTS}/fara", "untrusted": "as-recorded"}
    client, _ = evaluated(case, run, real_data, tmp_path, **asked)
    known = {
        (_kind(call["stage"]), tuple(call["images"]), call["attempt"]): call["sha256"]
        for call in case["calls"]
    }
    different = {
        stage
        for (stage, images, attempt), digest in client.sent.items()
        if attempt == 0 and known[stage, images, attempt] != digest
    }
    failed = name in (TRANSPORT, "always-bad-rescoring")
    assert different == ({"side_effects", "outcome", "violation"} if failed else set())
    # Nothing but the stages at the end is left out.
    assert {key for key in known if key not in client.sent and key[2] == 0} <= {
        (stage, (), 0) for stage in ("failures", "validity_after", "validity_before")
    }


def _same(record: VerifierRecord, result: dict[str, Any]) -> None:
    step2 = {
        f"screenshot_{shot}": {
            **{str(index): score for index, score in enumerate(scores)},
            "screenshot_idx": shot,
        }
        for shot, scores in enumerate(record.relevance)
    }
    assert step2 == result["step2"]
    assert {str(c): list(shots) for c, shots in record.ranked.items()} == result["step3"]
    pairs = {str(c): [one.screenshot for one in seen] for c, seen in record.evidence.items()}
    assert pairs == result["step4_pairs"]
    conditional = {
        str(index): item.is_condition_met
        for index, item in enumerate(record.items)
        if item.condition is not None
    }
    assert conditional == result["conditions"]
    for item, expected in zip(record.items, result["items"], strict=True):
        ours = item.model_dump()
        assert {name: ours[name] for name in expected} == expected
    points = totals(record.items)
    assert points.max == result["total_max_points"]
    assert points.earned == result["total_earned_points"]
    assert record.process_score == result["process_score"]
    assert record.outcome == result["outcome"]
    assert record.violation is not None
    assert record.violation.cp_violation == result["cp_violation"]
    votes = result["majority"]
    scores = [totals(items).score for items in record.instances]
    assert scores == votes["all_scores"]
    assert record.median == votes["median_instance_idx"]
    assert [vote and vote.output_success for vote in record.votes] == votes["outcome_votes"]
    assert record.outcome == votes["majority_output_success"]
    if "step9" in result:
        _same_failures(record, result["step9"])


def _same_failures(record: VerifierRecord, step9: dict[str, Any]) -> None:
    """All but the sentences of the points that are made by rule, which are our own."""
    assert record.failures is not None
    assert record.failures.has_failure == step9["has_failure"]
    first = record.failures.first
    assert (first and first.first_step) == step9["first_failure_step"]
    names = ("step_numbers", "error_code", "error_category", "error_type")
    ours = [tuple(getattr(p, name) for name in names) for p in record.failures.failure_points]
    assert ours == [tuple(point[name] for name in names) for point in step9["failure_points"]]
    made = [point.programmatic for point in record.failures.failure_points]
    assert made == [point.get("programmatic", False) for point in step9["failure_points"]]


def test_the_tools_are_those_of_the_traces() -> None:
    assert set(TOOLS) == {"click", "input_text"}
