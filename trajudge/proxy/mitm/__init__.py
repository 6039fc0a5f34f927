"""The mitmproxy back end: TLS and HTTP/2 on the agent's side, the embedded proxy behind it.

mitmproxy cannot be installed beside the SDKs, so it runs as a process in an environment of its own.
It decrypts, and hands every request to the embedded proxy in this process, which decides: plans,
faults, events and tasks have one implementation.
"""
