"""The applications as a Gymnasium environment, whose reward is what their state says.

Its import registers ``trajudge/Web-v0``, as Gymnasium's packages do. ``env`` holds the environment,
``spaces`` those of its texts, ``pages`` what opens a run's page in Chromium or without a browser.
Raises MissingExtra without the extra ``gym``.
"""

from importlib.util import find_spec

from trajudge.util.errors import MissingExtra

if find_spec("gymnasium") is None:
    raise MissingExtra("gymnasium", "gym", "the environment")

from gymnasium.envs.registration import register, registry

from trajudge.environments.gym.env import WebEnv

__all__ = ["NAME", "WebEnv"]

NAME = "trajudge/Web-v0"
if NAME not in registry:
    register(id=NAME, entry_point="trajudge.environments.gym.env:WebEnv")
