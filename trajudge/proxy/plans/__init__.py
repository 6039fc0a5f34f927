"""Fault plans: faults, when each fires, and what of a plan a task was exposed to.

Everything here is pure: a plan, a seed and a task's name give the same schedule, whatever the order
in which requests come.
"""
