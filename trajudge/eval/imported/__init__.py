"""Published verdicts as runs: what others' judges said, in folders like those of our own."""
