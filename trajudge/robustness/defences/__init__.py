"""Judges behind defences, beside the same judges without: what ``trajudge robust --defence`` asks
and compares."""
