"""The environment: an episode is one case, an action is text, the reward is success."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from typing import Any
from weakref import finalize

import gymnasium
import numpy as np
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.spaces import Box, Dict
from numpy.typing import NDArray
from PIL import Image

from trajudge.environments.agents.protocol import Job
from trajudge.environments.gym.pages import ChromiumPages, Pages, TextPages
from trajudge.environments.gym.spaces import ActionText, UnicodeText
from trajudge.environments.model.case import Case, read_cases
from trajudge.environments.recording.episode import VIEWPORT, Episode, Viewport
from trajudge.environments.recording.recorder import raise_mistake
from trajudge.prompts.render import sendable
from trajudge.util.errors import UserError

MOST_TEXT = 2**22
"""Characters of a page's tree at most."""


class WebEnv(gymnasium.Env[dict[str, Any], str]):
    """Cases of ``trajudge env generate`` as episodes (WebForge section 4.1: an episode is cut off
    after twice the shortest plan and some, at most 50 actions).

    Observations are a dictionary under BrowserGym's names: ``goal``, ``url``, ``axtree_txt``,
    ``focused_element_bid``, ``last_action``, ``last_action_error``, and ``screenshot`` (H, W, 3),
    uint8. Actions are text in BrowserGym's syntax; one that cannot be done is an error on the
    page, not an exception. The reward is 1 at the end of an episode whose state and answer are what
    the case asks for, and 0 otherwise, also where the answer is open to argument; ``info`` then
    holds the labels (None: open to argument), the applications' own crude ``official_reward`` and
    the ``trajectory``, which a judge can be shown.

    ``cases`` is a file, or cases. Without ``browser`` the text engine reads the same
    pages (``environments.text``): the same trees, many times as fast; ``pictures`` then are none.
    ``agent`` names the policy in the keys of trajectories. Raises UserError, and MissingExtra
    without a browser.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 1}  # noqa: RUF012 - as Gymnasium does

    def __init__(
        self,
        cases: str | Path | Sequence[Case],
        *,
        browser: bool = True,
        pictures: bool = True,
        viewport: Viewport = VIEWPORT,
        agent: str = "policy",
        render_mode: str | None = None,
    ) -> None:
        listed = read_cases(Path(cases)) if isinstance(cases, str | Path) else cases
        if not listed:
            raise UserError("cases: there is none: write some with  trajudge env generate")
        self.cases = {case.id: case for case in listed}
        self.agent = agent
        self.render_mode = render_mode
        self.reasoning: str | None = None
        self._shows = browser and pictures
        if not self._shows:
            self.metadata = {"render_modes": []}
            if render_mode is not None:
                raise UserError(f"render_mode={render_mode!r} needs a browser and pictures")
        self._size = (viewport[1], viewport[0], 3)
        self.action_space = ActionText()
        self.observation_space = self._space()
        self._pages: Pages = ChromiumPages(viewport, pictures=pictures) if browser else TextPages()
        self._open = ExitStack()
        self._episode: Episode | None = None
        # Also where the program ends without close(): its threads no longer run afterwards.
        self._ending = finalize(self, _end, self._open, self._pages)
        self._attempts: Counter[str] = Counter()

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin a run of a case: the one that ``options={"case": ID}`` names, else one that is
        drawn. Raises UserError for an unknown one, ClosedEnvironmentError after ``close``."""
        if not self._ending.alive:
            raise ClosedEnvironmentError("the environment was closed: make another one")
        super().reset(seed=seed)
        case = self._case(dict(options or {}))
        name = self.np_random.bytes(8).hex()
        self._episode = self.reasoning = None
        self._open.close()
        job = Job(
            config=case.config,
            agent=self.agent,
            attempt=self._attempts[case.id],
            goal=case.goal,
            shortest=case.shortest,
            fewest=case.fewest,
        )
        self._attempts[case.id] += 1
        page, run = self._open.enter_context(self._pages.open(job, name))
        self._episode = Episode(page, run, job)
        info = {"case": case.id, "level": case.level, "shortest": case.shortest}
        return self._observation(self._episode, ""), {**info, "most_actions": job.budget}

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
        seen, ended = self._observation(episode, action), episode.answer is not None
        if not episode.is_over:
            return seen, 0.0, False, False, {}
        trajectory, finding = episode.end({})
        info = {
            **finding.labels._asdict(),
            "official_reward": trajectory.official_reward,
            "trajectory": trajectory,
        }
        return seen, float(finding.labels.success is True), ended, not ended, info

    def render(self) -> NDArray[np.uint8] | None:
        """Return the page as it is now, (H, W, 3); None in another mode."""
        if self.render_mode != "rgb_array" or self._episode is None:
            return None
        return self._picture(self._episode)

    def close(self) -> None:
        """End the run, the server and the browser."""
        self._episode = None
        self._ending()

    def _case(self, options: dict[str, Any]) -> Case:
        if unknown := options.keys() - {"case"}:
            raise UserError(f"options: {min(unknown)!r} is none: there is  case")
        if not options:
            return [*self.cases.values()][int(self.np_random.integers(len(self.cases)))]
        if (case := self.cases.get(options["case"])) is None:
            raise UserError(f"options: there is no case {options['case']!r}: name one of .cases")
        return case

    def _space(self) -> Dict:
        texts = ("goal", "url", "focused_element_bid", "last_action", "last_action_error")
        spaces: dict[str, gymnasium.Space[Any]] = {name: UnicodeText(MOST_TEXT) for name in texts}
        spaces["axtree_txt"] = UnicodeText(MOST_TEXT)
        if self._shows:
            spaces["screenshot"] = Box(0, 255, self._size, np.uint8)
        return Dict(spaces)

    def _observation(self, episode: Episode, action: str) -> dict[str, Any]:
        view = episode.view
        seen = {
            "goal": episode.run.goal,
            "url": view.observation.url or "",
            "axtree_txt": (view.observation.axtree or "")[:MOST_TEXT],
            "focused_element_bid": view.focused or "",
            "last_action": sendable(action)[:MOST_TEXT],
            "last_action_error": view.observation.page_error or "",
        }
        return {**seen, "screenshot": self._picture(episode)} if self._shows else seen

    def _picture(self, episode: Episode) -> NDArray[np.uint8]:
        """Decode the page's picture; a page that cannot be shown is black."""
        shot = episode.view.observation.screenshot
        if shot is None or shot.data is None:
            return np.zeros(self._size, np.uint8)
        with Image.open(BytesIO(shot.data)) as image:
            return np.array(image.convert("RGB"), np.uint8)


def _end(run: ExitStack, pages: Pages) -> None:
    run.close()
    pages.close()
