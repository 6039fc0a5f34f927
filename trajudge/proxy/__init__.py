"""A proxy (mitmproxy) between an agent and the web that injects faults and measures efficiency.

``addon`` runs inside mitmproxy and imports nothing of trajudge: it reads a plan and writes records.
``plan`` schedules faults by page load, ``pages`` has the pages of faults, ``process`` runs
mitmproxy, ``results`` reads the records, ``commands`` are the commands.
"""
