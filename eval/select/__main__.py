"""Start ``trajudge select`` as a module."""

from __future__ import annotations

import sys

from trajudge.eval.select.command import main

if __name__ == "__main__":
    sys.exit(main())
