"""The environments through Gymnasium; importing this registers their ids:

``trajudge/APPLICATION.SCENARIO-v0`` for every scenario, ``trajudge/APPLICATION-v0``,
``trajudge/level1-v0`` to ``level3-v0`` and ``trajudge/all-v0``, which draw a scenario at reset.

``env`` holds the environment, ``draws`` what an episode is about, ``observation`` what a policy
sees, ``spaces`` the spaces of that, ``pages`` what opens a run's page in Chromium or without a
browser. ``agentlab``, ``trl`` and ``verl_agent`` are for those packages. Raises MissingExtra
without the extra ``gym``.
"""

from importlib.util import find_spec
from typing import Any

from trajudge.util.errors import MissingExtra

if find_spec("gymnasium") is None:
    raise MissingExtra("gymnasium", "gym", "the environment")

from gymnasium.envs.registration import register, registry

from trajudge.environments.apps import APPS, load_app
from trajudge.environments.checks.draws import held_out
from trajudge.environments.gym.env import WebEnv

__all__ = ["IDS", "WebEnv"]


def _registered() -> tuple[str, ...]:
    """Register all ids and return them. A scenario that is in one split alone, or whose charts must
    be read, has these as its defaults."""
    defaults: dict[str, dict[str, Any]] = {"all": {}, "level1": {}, "level2": {}, "level3": {}}
    for app in APPS:
        defaults[app] = {}
        for scenario in load_app(app).scenarios:
            own: dict[str, Any] = {"split": "test"} if held_out(app, scenario.id) else {}
            defaults[f"{app}.{scenario.id}"] = {
                **own,
                **({"engine": "chromium"} if scenario.charts else {}),
            }
    module = "trajudge.environments.gym.env"
    for tasks, keywords in defaults.items():
        if (name := f"trajudge/{tasks}-v0") not in registry:
            register(
                id=name,
                entry_point=f"{module}:WebEnv",
                vector_entry_point=f"{module}:WebVectorEnv",
                kwargs={"tasks": tasks, **keywords},
            )
    return tuple(f"trajudge/{tasks}-v0" for tasks in defaults)


IDS = _registered()
"""The ids that are registered."""
