"""Everything that commands call takes typed settings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from trajudge.app.settings import LabelServeConfig, ReportConfig, ServerConfig
from trajudge.environments.planning import SuiteSpecification
from trajudge.environments.settings import (
    GenerateConfig,
    HostConfig,
    PlayConfig,
    RecordConfig,
    ResultsConfig,
    ValidateConfig,
)
from trajudge.eval.accept.settings import TrainingConfig
from trajudge.eval.labelling.settings import BuildConfig
from trajudge.eval.runs.settings import RunConfig
from trajudge.eval.select.plan import SelectionPlan
from trajudge.eval.select.settings import PlanConfig
from trajudge.eval.settings import ScoreConfig
from trajudge.judges.calls.settings import CallConfig
from trajudge.judges.settings import FidelityConfig, ListConfig, ShowConfig
from trajudge.proxy.plan import AssetFault, FaultPlan, OfflineFault, PopupFault, TruncateFault
from trajudge.proxy.settings import ServeConfig, TaskConfig
from trajudge.rewards.settings import (
    RewardConfig,
    RewardServerConfig,
    RewardShaping,
    WatchConfig,
)
from trajudge.robustness.settings import PerturbConfig
from trajudge.trajectories.model import Record
from trajudge.util.commands import LARGEST

PACKAGE = Path(__file__).parents[1] / "trajudge"
ROOMS = (
    *("annotations", "environments", "eval", "judges", "prompts", "proxy", "rules"),
    "trajectories",
)


def takers(text: str) -> Iterator[str]:
    """The functions that take or give a Namespace; most modules do not name it at all."""
    for node in ast.walk(ast.parse(text)) if "Namespace" in text else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            signature = ast.unparse(node.args) + (ast.unparse(node.returns) if node.returns else "")
            if re.search(r"\bNamespace\b", signature):  # a SimpleNamespace is none of argparse
                yield node.name


@pytest.mark.parametrize("room", ROOMS)
def test_no_function_takes_a_namespace(room: str) -> None:
    for path in sorted((PACKAGE / room).rglob("*.py")):
        assert [*takers(path.read_text())] == [], path


SEEDED = [
    *(TrainingConfig, BuildConfig, ScoreConfig),
    *(SelectionPlan, PlanConfig, CallConfig, WatchConfig, PerturbConfig, RecordConfig),
    *(GenerateConfig, SuiteSpecification),
]


@pytest.mark.parametrize("settings", SEEDED)
@pytest.mark.parametrize("seed", [-1, LARGEST + 1])
def test_a_seed_is_one_that_every_file_can_hold(settings: type[Record], seed: int) -> None:
    """JSON is written with integers of 64 bits; a larger one is refused before any work."""
    with pytest.raises(ValidationError) as refused:
        settings.model_validate({"seed": seed})
    assert ("seed",) in [error["loc"] for error in refused.value.errors()]


DEFAULTS: dict[type[BaseModel], dict[str, float]] = {
    GenerateConfig: {"count": 20, "seed": 0, "noise": False, "workers": 1, "max_tokens": 4096},
    SuiteSpecification: {"count": 20, "seed": 0, "noise": False},
    ValidateConfig: {"thorough": False, "seed": 0, "workers": 1},
    RecordConfig: {
        **{"seed": 0, "workers": 1, "attempts": 1, "text_only": False},
        **{"agent_timeout": 120, "agent_memory": 4096},
    },
    HostConfig: {
        **{"port": 8378, "site_port": 8379, "with_test": False},
        **{"open_runs": 64, "minutes": 60, "requests": 1000},
    },
    PlayConfig: {"seed": 0, "minutes": 60},
    ResultsConfig: {"full": False, "seed": 0},
    ServerConfig: {"port": 0, "no_token": False},
    LabelServeConfig: {"auth": False},
    ReportConfig: {"show": 50, "no_images": False, "max_size": 8},
    ServeConfig: {"port": 0, "stop_with_stdin": False},
    PopupFault: {"seconds": 1},
    TruncateFault: {"share": 0.5},
    AssetFault: {"status": 503},
    OfflineFault: {"retry_seconds": 5},
    FaultPlan: {"version": 1, "seed": 0},
    CallConfig: {
        **{"temperature": 0.0, "seed": 0, "concurrency": 32, "timeout": 300.0},
        **{"dry_run": False, "yes": False},
    },
    RewardShaping: {
        **{"reject_below": 0.5, "low": 0.0, "high": 1.0},
        **{"side_effect": 0.5, "repetition": 0.1, "allow_flip": False},
    },
    WatchConfig: {
        **{"every": 100, "noise": 0.05, "audit_share": 0.005, "gap": 0.1, "failures": 0.2},
        **{"probes": True, "fooled": 0.1, "baseline": 200, "run_length": 100_000},
        **{"reference_share": 0.05, "alpha": 0.01, "keep_going": False, "seed": 0},
    },
    RewardConfig: {"unqualified": False, "assume_same_judge": False},
    RewardServerConfig: {"port": 8377, "queue": 1_000, "patience": 0.5},
    ListConfig: {"full": False},
    ShowConfig: {"prompt": False, "system_prompt": False, "full": False},
    FidelityConfig: {"full": False},
}


@pytest.mark.parametrize("settings", DEFAULTS)
def test_without_an_option_nothing_changes_from_one_release_to_the_next(
    settings: type[BaseModel],
) -> None:
    """What is recorded, drawn and allowed without a word: another number is another result."""
    defaults = {name: field.default for name, field in settings.model_fields.items()}
    numbers = {
        name: default for name, default in defaults.items() if isinstance(default, float | int)
    }
    assert numbers == DEFAULTS[settings]


@pytest.mark.parametrize(
    ("settings", "name", "most"),
    [
        (RewardServerConfig, "port", 65_535),
        (RunConfig, "samples", 10_000),
        (GenerateConfig, "count", 10_000),
        (SuiteSpecification, "count", 10_000),
        (TaskConfig, "horizon", 10_000),
    ],
)
def test_the_largest_number_that_is_taken(settings: type[Record], name: str, most: int) -> None:
    for number, is_taken in ((most, True), (most + 1, False)):
        places: list[object] = []
        try:
            settings.model_validate({name: number})
        except ValidationError as refused:
            places = [error["loc"] for error in refused.errors()]
        assert ((name,) not in places) is is_taken


def test_a_temperature_is_at_most_two() -> None:
    assert CallConfig(temperature=2.0).temperature == 2.0
    with pytest.raises(ValidationError):
        CallConfig(temperature=2.01)
