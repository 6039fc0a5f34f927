"""The environment: an episode is one configuration, an action is text, the reward is success."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, get_args
from weakref import finalize

import gymnasium
import numpy as np
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import SyncVectorEnv
from PIL import Image

from trajudge.environments.agents.protocol import Job
from trajudge.environments.apps import load_app
from trajudge.environments.checks import draws
from trajudge.environments.checks.draws import AXES, LEVELS, USUAL_AXES, Axis
from trajudge.environments.checks.integrity import Reject, check
from trajudge.environments.chromium.action_syntax import spoken
from trajudge.environments.chromium.observation import Visible
from trajudge.environments.gym.observation import (
    Picture,
    Seen,
    browsergym_observation,
    browsergym_space,
    text_observation,
    text_space,
)
from trajudge.environments.gym.pages import ChromiumPages, DetailedPage, Pages, TextPages
from trajudge.environments.gym.spaces import ActionText
from trajudge.environments.model.case import Case, read_cases
from trajudge.environments.model.config import SPLITS, Config, Engine, Split
from trajudge.environments.recording.episode import VIEWPORT, Episode, Viewport
from trajudge.environments.recording.recorder import raise_mistake
from trajudge.environments.verify.frame import report_changes
from trajudge.util.errors import UserError

ObservationForm = Literal["text", "browsergym"]
RewardForm = Literal["final", "progress"]

_OPTIONS = ("attempt", "case", "config", "level", "scenario")


class WebEnv(gymnasium.Env[dict[str, Any], str]):
    """Tasks in sandboxed web applications as episodes (WebForge section 4.1: an episode is cut off
    after twice the shortest plan and some, at most 50 actions).

    ``tasks`` says what is drawn at each reset: ``all``, ``level1`` to ``level3``, an application
    (``shop``) or a scenario (``shop.buy``), of a ``split`` that shares no data, look or wording
    with the others (``checks.draws``); ``axes`` are what moves with the seed. ``cases``, a file of
    ``trajudge env generate`` or its cases, are drawn from instead.

    Observations are ``gym.observation``'s short dictionary, or with ``observation="browsergym"``
    BrowserGym's. Actions are text in BrowserGym's syntax; one that cannot be done is an error on
    the page, not an exception. The ``engine`` "text" needs no browser and shows the same trees,
    many times as fast; ``pictures`` are Chromium's. ``visible`` says what the tree calls visible:
    what has a box anywhere, what is in the window (Chromium), or nothing.

    ``reward="final"`` is 1 at the end of a run whose state and answer are right, else 0. With
    ``"progress"`` each step also earns by how much it moved the share of the expected changes that
    hold, less one while something is changed that nobody asked for (potential-based shaping, Ng et
    al. 1999, with a factor of 1): what is done and undone earns nothing. Where success is open to
    argument the last reward is ``open_reward``, by default NaN.

    ``info`` holds the labels at the end (None: open to argument), the applications' own crude
    ``official_reward`` and the ``trajectory``, which a judge can be shown; ``agent`` names the
    policy in its key. Raises UserError, and MissingExtra without a browser.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 1}  # noqa: RUF012 - as Gymnasium does

    def __init__(
        self,
        tasks: str = "all",
        *,
        cases: str | Path | Sequence[Case] | None = None,
        engine: Engine = "text",
        split: Split = "train",
        observation: ObservationForm = "text",
        axes: Collection[Axis] = USUAL_AXES,
        max_steps: int | None = None,
        reward: RewardForm = "final",
        open_reward: float = math.nan,
        visible: Visible = "rendered",
        pictures: bool = True,
        viewport: Viewport = VIEWPORT,
        agent: str = "policy",
        render_mode: str | None = None,
    ) -> None:
        _one_of("engine", engine, get_args(Engine))
        _one_of("split", split, SPLITS)
        _one_of("observation", observation, get_args(ObservationForm))
        _one_of("reward", reward, get_args(RewardForm))
        _one_of("visible", visible, get_args(Visible))
        for axis in axes:
            _one_of("axes", axis, AXES)
        if max_steps is not None and max_steps < 1:
            raise UserError(f"max_steps={max_steps}: give 1 or more, or None")
        self._shows = engine == "chromium" and pictures
        if visible == "window" and engine == "text":
            raise UserError("visible='window' needs a layout: use engine='chromium'")
        if not self._shows:
            self.metadata = {"render_modes": []}
            if render_mode is not None:
                raise UserError(
                    f"render_mode={render_mode!r} needs pictures: use engine='chromium'"
                )
        self.cases: dict[str, Case] | None = None
        if cases is None:
            draws.templates(tasks, split, pictures=self._shows)  # names what is wrong at once
        else:
            self.cases = _listed(cases)
        self.tasks: str = tasks
        self.split: Split = split
        self.engine: Engine = engine
        self.agent = agent
        self.render_mode = render_mode
        self.reasoning: str | None = None
        self._axes, self._max_steps, self._open_reward = tuple(axes), max_steps, open_reward
        self._progress, self._browsergym = reward == "progress", observation == "browsergym"
        self._size = (viewport[1], viewport[0], 3)
        shown = self._size if self._shows else None
        self.action_space: ActionText = ActionText()
        self.observation_space = browsergym_space(shown) if self._browsergym else text_space(shown)
        self._pages: Pages = (
            TextPages(visible)
            if engine == "text"
            else ChromiumPages(viewport, visible, pictures=pictures)
        )
        self._open = ExitStack()
        self._episode: Episode | None = None
        self._page: DetailedPage | None = None
        self._messages: list[tuple[str, int, str]] = []
        self._potential: tuple[str, float] = ("", 0.0)
        # Also where the program ends without close(): its threads no longer run afterwards.
        self._ending = finalize(self, _end, self._open, self._pages)
        self._attempts: Counter[str] = Counter()

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin a run of a task that is drawn. ``options`` may narrow the draw: ``scenario`` (of
        the environment's ``tasks``), ``level``, a whole ``config``, or the id of a ``case``;
        ``attempt`` numbers the run in its key. Raises UserError for what is not there,
        ClosedEnvironmentError after ``close``."""
        if not self._ending.alive:
            raise ClosedEnvironmentError("the environment was closed: make another one")
        super().reset(seed=seed)
        named = dict(options or {})
        case = self._case(named)
        name = self.np_random.bytes(8).hex()
        self._episode = self._page = self.reasoning = None
        self._open.close()
        job = Job(
            config=case.config,
            agent=self.agent,
            attempt=int(named.get("attempt", self._attempts[case.id])),
            goal=case.goal,
            shortest=case.shortest,
            fewest=case.fewest,
        )
        self._attempts[case.id] += 1
        self._page, run = self._open.enter_context(self._pages.open(job, name))
        episode = self._episode = Episode(self._page, run, job, self._max_steps)
        self._messages = [("user", 0, run.goal)]
        self._potential = (run.state.version, 0.0)
        return self._observation(episode, ""), self._info(episode)

    def step(self, action: str) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Do an action. The agent's reasoning is recorded with it where ``reasoning`` was set
        before. Raises ResetNeeded where no episode is under way, TypeError for another action than
        text, UserError where a user's application fails."""
        episode = self._episode
        if episode is None or episode.is_over:
            raise ResetNeeded("no episode is under way: call reset() first")
        if not isinstance(action, str):
            raise TypeError(f"an action is text such as \"click('12')\", not {action!r}")
        episode.act(action, self.reasoning)
        self.reasoning = None
        raise_mistake(episode.run)
        if self._browsergym and (message := spoken(action)) is not None:
            role = "infeasible" if action.lstrip().startswith("report_inf") else "assistant"
            self._messages.append((role, episode.steps, message))
        seen, ended = self._observation(episode, action), episode.answer is not None
        reward = self._gained(episode) if self._progress else 0.0
        info = self._info(episode)
        if not episode.is_over:
            return seen, reward, False, False, info
        trajectory, finding = episode.end({})
        labels = finding.labels
        held = [predicate.holds for predicate in finding.predicates]
        info |= {
            **labels._asdict(),
            "status": "open" if labels.success is None else "judged",
            "predicates_met": sum(held),
            "predicates": len(held),
            "split": self.split,
            "case": episode.job.config.id,
            "official_reward": trajectory.official_reward,
            "trajectory": trajectory,
        }
        reward += self._open_reward if labels.success is None else float(labels.success)
        return seen, reward, ended, not ended, info

    def actions(self) -> list[str]:
        """Return actions on what the page offers now, words of the goal as texts to fill in."""
        return [action for element in self.action_space.offered() for action in element]

    def render(self) -> Picture | None:
        """Return the page as it is now, (H, W, 3); None in another mode."""
        if self.render_mode != "rgb_array" or self._episode is None:
            return None
        return self._picture(self._episode)

    def close(self) -> None:
        """End the run, the server and the browser."""
        self._episode = self._page = None
        self._ending()

    def _case(self, options: dict[str, Any]) -> Case:
        if unknown := options.keys() - set(_OPTIONS):
            raise UserError(f"options: {min(unknown)!r} is none: there is  {', '.join(_OPTIONS)}")
        if (config := options.get("config")) is not None:
            return _checked(config)
        if self.cases is not None:
            return self._listed_case(options)
        tasks = self._named(options.get("scenario"))
        offered, level = draws.templates(tasks, self.split, pictures=self._shows)
        level = options.get("level", level)
        if level not in (None, 1, 2, 3):
            raise UserError(f"options: level={level!r}: give 1, 2 or 3")
        return draws.draw(self.np_random, offered, self.split, self._axes, level)

    def _named(self, scenario: str | None) -> str:
        """Return what is drawn from: the environment's tasks, or a scenario of an application."""
        if scenario is None or "." in scenario:
            return scenario or self.tasks
        app = self.tasks.partition(".")[0]
        if app in ("all", *LEVELS):
            raise UserError(f"options: scenario={scenario!r}: name it as application.scenario")
        return f"{app}.{scenario}"

    def _listed_case(self, options: dict[str, Any]) -> Case:
        cases = self.cases or {}
        if "case" not in options:
            return [*cases.values()][int(self.np_random.integers(len(cases)))]
        if (case := cases.get(options["case"])) is None:
            raise UserError(f"options: there is no case {options['case']!r}: name one of .cases")
        return case

    def _info(self, episode: Episode) -> dict[str, Any]:
        """Return what says nothing about the answer or the way to it."""
        drawn = sha256(episode.job.config.id.encode()).hexdigest()[:16]
        return {"step": episode.steps, "engine": self.engine, "config": drawn}

    def _gained(self, episode: Episode) -> float:
        """Return by how much the last step moved the potential."""
        version, before = self._potential
        if (now := episode.run.state.version) == version:
            return 0.0
        evidence = episode.run.evidence()
        report = report_changes(evidence.scenario, evidence.bound, evidence.changes)
        held = [predicate.holds for predicate in report.predicates]
        potential = sum(held) / max(len(held), 1) - (not report.no_side_effect)
        self._potential = (now, potential)
        return potential - before

    def _observation(self, episode: Episode, action: str) -> dict[str, Any]:
        view, page = episode.view, self._page
        self.action_space.goal, self.action_space.elements = episode.run.goal, view.elements
        picture = self._picture(episode) if self._shows else None
        seen = Seen(episode.run.goal, view, action, episode.steps, picture, self._messages)
        if not self._browsergym:
            return text_observation(seen)
        return browsergym_observation(seen._replace(details=page.details() if page else None))

    def _picture(self, episode: Episode) -> Picture:
        """Decode the page's picture; a page that cannot be shown is black."""
        shot = episode.view.observation.screenshot
        if shot is None or shot.data is None:
            return np.zeros(self._size, np.uint8)
        with Image.open(BytesIO(shot.data)) as image:
            return np.array(image.convert("RGB"), np.uint8)


class WebVectorEnv(SyncVectorEnv):
    """Several environments in one process, without a process or a copy of observations each: what
    ``gymnasium.make_vec`` makes of our ids by default. Keywords are those of ``WebEnv``."""

    def __init__(self, num_envs: int = 1, **keywords: Any) -> None:
        super().__init__([lambda: WebEnv(**keywords)] * num_envs, copy=False)


def _listed(cases: str | Path | Sequence[Case]) -> dict[str, Case]:
    listed = read_cases(Path(cases)) if isinstance(cases, str | Path) else cases
    if not listed:
        raise UserError("cases: there is none: write some with  trajudge env generate")
    return {case.id: case for case in listed}


def _checked(config: Config | Mapping[str, Any]) -> Case:
    """Return the case of a configuration that was named. Raises UserError if it is none."""
    whole = config if isinstance(config, Config) else Config.model_validate(config)
    checked = check(load_app(whole.app), whole)
    if isinstance(checked, Reject):
        raise UserError(
            f"options: config {whole.id} is no fair task ({checked.reason}: {checked.detail}): "
            "name another"
        )
    return checked


def _one_of(name: str, value: object, known: Sequence[str]) -> None:
    if value not in known:
        raise UserError(f"{name}={value!r}: choose from {', '.join(known)}")


def _end(run: ExitStack, pages: Pages) -> None:
    run.close()
    pages.close()
