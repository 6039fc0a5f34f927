"""Drift: frozen verdicts of a judge on some runs, about which it is asked again later, to see
whether the model still says the same."""
