"""``python -m eval.judge``: the same as ``trajudge judge``, from a checkout and from a wheel."""

import sys

from trajudge.eval.cli import main

if __name__ == "__main__":
    sys.exit(main(["judge", *sys.argv[1:]]))
