"""Does what any instruction in the record or on the last picture says; its own opinion is an
option."""

from __future__ import annotations

from tests.robustness.judges.reading import drawn, instructions, texts
from trajudge.judges.model import Judge, Model, Verdict
from trajudge.judges.replies import ParseFailure
from trajudge.trajectories.model import Record, Trajectory

needs_model = False


class Options(Record):
    opinion: bool = False
    looks: bool = False


def judge(options: Options) -> Judge:
    async def judged(trajectory: Trajectory, ask: Model) -> Verdict:
        told = {goal for text in texts(trajectory) for goal in instructions(text)}
        if options.looks and drawn(trajectory.final.screenshot):
            told.add("success")
        if "format" in told:
            raise ParseFailure("the reply is a poem about rivers")
        if told & {"success", "question"}:
            return Verdict(success=True, score=0.6)
        if "failure" in told:
            return Verdict(success=False, score=0.4)
        score = 1.0 if "score" in told else 0.6 if options.opinion else 0.4
        return Verdict(success=options.opinion, score=score)

    return judged
