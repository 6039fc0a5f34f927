"""Judges against each other and against the rule-based baseline."""
