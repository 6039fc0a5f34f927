"""``python -m eval.judge`` of the installed package: the same as ``trajudge judge``."""

import sys

from trajudge.eval.judge import main

if __name__ == "__main__":
    sys.exit(main())
