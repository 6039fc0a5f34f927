"""Faults and efficiency between an agent and the web.

``plans`` say which fault meets which page load of a task; ``commands`` are at the top. The room
imports nothing of ours but leaf utilities: what it records is plain JSON, which others read.
"""
