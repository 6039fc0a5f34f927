"""Runs that were released together with verdicts on them: text only, without pages."""
