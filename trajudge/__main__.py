"""``python -m trajudge``: the console script, where its folder is not on the path."""

from __future__ import annotations

import sys

from trajudge.eval.cli import main

if __name__ == "__main__":
    sys.exit(main())
