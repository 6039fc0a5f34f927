"""The old name of ``trajudge rules blind``, for one version."""

from __future__ import annotations

import sys

from trajudge.rules.blind.__main__ import main

if __name__ == "__main__":
    sys.stderr.write("note: this is now  trajudge rules blind; the next version refuses it\n")
    sys.exit(main())
