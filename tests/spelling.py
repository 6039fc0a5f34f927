"""What the command line says of a command that is not spelled right."""

from __future__ import annotations

import re

# What argparse says of a command that is not spelled as it is written there.
MISUNDERSTOOD = re.compile(
    r"unrecognized arguments|invalid choice|are required|expected (one|at least)|no command|"
    r"is an old|was renamed|deprecated|is now --|is given twice, as|is empty: give|"
    r": use '|is missing: give"
)
