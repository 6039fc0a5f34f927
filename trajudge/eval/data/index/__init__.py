"""Large runs: their judgments as columns and by offset, never all of them in memory."""
