"""Agents with and without faults: paired runs, what the faults cost, what judges make of them.

Reads what ``trajudge env record --faults`` or ``trajudge proxy run`` wrote, as files.
"""
