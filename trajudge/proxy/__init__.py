"""Faults and efficiency between an agent and the web, by mitmproxy.

``addon`` runs inside mitmproxy and imports nothing of ours: it reads a plan and writes records.
``plan`` says which fault meets which page load, ``pages`` what faults show, ``process`` starts
mitmproxy, ``results`` reads the records; ``commands`` are at the top.
"""
