"""The old name of ``trajudge rules blind-model``, for one version."""

from __future__ import annotations

import sys

from trajudge.eval.blind_model import main

if __name__ == "__main__":
    sys.stderr.write("note: this is now  trajudge rules blind-model; the next version refuses it\n")
    sys.exit(main())
