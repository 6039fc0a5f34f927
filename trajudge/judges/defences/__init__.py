"""Defences of a judge against what it reads, as options that every judge takes.

``options`` reads them, ``applying`` puts them around a judge; each other module is one defence. A
defence changes the trajectory before a prompt is made of it, the messages before they are sent, or
the reply before it is parsed; the judge's own prompts stay as they are.
"""
