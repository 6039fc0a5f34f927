"""Programs that train with TRL, each in a process of its own that has imported it already.

``python -m tests.rewards.trl_programs SITE_PACKAGES FOLDER STEPS ENVIRONMENT GUIDE SERVER``, three
addresses of models that judge and one of a reward server, carries them out and prints, as JSON,
what each ended with, wrote and complained of. To import torch, transformers and TRL takes as long
as the training: this process does it once and forks.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.rewards import guide_grpo, trl_environment, trl_steps

EXAMPLE = Path(__file__).parents[2] / "examples" / "grpo_on_cpu.py"
Program = Callable[[Path], None]


def carried_out(program: Program, folder: Path) -> dict[str, object]:
    """Carry a program out in a folder of its own."""
    folder.mkdir()
    out, err = folder / "stdout", folder / "stderr"
    child = os.fork()
    if not child:
        code = 1
        try:
            for stream, path in ((1, out), (2, err)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
            program(folder)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return {"code": code, "out": out.read_text(), "err": err.read_text()[-2000:]}


def example(_: Path) -> None:
    """Carry out the example as a user does: without a key, without options."""
    sys.argv = [str(EXAMPLE)]
    runpy.run_path(str(EXAMPLE), run_name="__main__")


def main(folder: Path, steps: str, environment: str, guide_model: str, server: str) -> None:
    def guide(place: Path) -> None:
        os.environ["OPENAI_API_KEY"] = "a-key"
        os.environ["OPENAI_BASE_URL"] = f"{guide_model}/v1"
        os.environ["TRAJUDGE_CACHE"] = str(place / "replies.sqlite")
        guide_grpo.main(place, server)

    programs: dict[str, Program] = {
        "steps": lambda place: trl_steps.main(steps, place),
        "guide": guide,
        "example": example,
        "environment": lambda place: trl_environment.main(environment, place),
    }
    ended = {name: carried_out(program, folder / name) for name, program in programs.items()}
    sys.stdout.write(json.dumps(ended) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[2]), *sys.argv[3:7])
