"""``trajudge run recertify``: certify a choice again for other agents, with few labels."""

from __future__ import annotations

import argparse
import sys

from trajudge.eval.acceptance.options import recertify_parser
from trajudge.util.commands import FAILURES, OK, command, read_settings


@command(recertify_parser)
def main(options: argparse.Namespace) -> int:
    """Draw the sample, or test it; return the exit code."""
    from trajudge.annotations import labels_by  # noqa: PLC0415
    from trajudge.eval.acceptance.recertification import SAMPLE  # noqa: PLC0415
    from trajudge.eval.acceptance.recertifying import (  # noqa: PLC0415 - --help needs none of these
        draw_sample,
        outcome_text,
        recertify,
        sample_text,
    )
    from trajudge.eval.acceptance.settings import SampleConfig  # noqa: PLC0415
    from trajudge.util.errors import UserError  # noqa: PLC0415

    drawing = (options.decision, options.accepted, options.out)
    if options.sample is None:
        if not all(drawing) or options.annotations is not None:
            raise UserError(
                "draw a sample with --decision DIR --accepted DIR --out DIR, or test one with "
                "--sample DIR --annotations KIND:PATH"
            )
        config = read_settings(SampleConfig, options)
        sys.stdout.write(sample_text(draw_sample(config), config.out, config.out / SAMPLE))
        return OK
    if any(drawing) or options.annotations is None:
        raise UserError("--sample DIR takes --annotations KIND:PATH, and nothing else")
    made, found = recertify(options.sample, str(labels_by(options.annotations, options.labels_by)))
    sys.stdout.write(outcome_text(made, found, options.sample))
    return OK if found.verdict == "certified" else FAILURES


if __name__ == "__main__":
    sys.exit(main())
