"""Judges of several runs beside each other: one row a trajectory, one column a judge."""
