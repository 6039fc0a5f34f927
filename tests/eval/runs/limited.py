"""A run of few trajectories of the sample, in the folder ``run``, and a judge of a user's own."""

from __future__ import annotations

from pathlib import Path

from tests.command_words import instead
from tests.judges.runs import GOOD
from tests.llm_server import LlmServer
from trajudge.eval.judge import main
from trajudge.eval.store.run_folder import read_judgments
from trajudge.judges.model import Judgment

BAD = GOOD.replace("Successful", "Unsuccessful")
OWN = '''"""Success if the agent said anything."""
from trajudge.judges.model import Verdict

needs_model = False


async def judge(trajectory, ask):
    return Verdict(success=bool(trajectory.answer))
'''


def run(server: LlmServer | None, *words: str) -> int:
    where = ["--base-url", server.url + "/v1"] if server else []
    own = ["--data", "sample", "--out", "run", "--limit", "4", *where]
    return main(instead(own, words))


def judgments() -> list[Judgment]:
    return read_judgments(Path("run"))
