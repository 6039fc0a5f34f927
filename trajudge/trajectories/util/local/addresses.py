"""Addresses and names of this machine, and who reaches them."""

from __future__ import annotations

import array
import ipaddress
import socket
import struct
from contextlib import suppress
from pathlib import Path

from trajudge.trajectories.util.safe_files import read_regular

_SIOCGIFCONF = 0x8912  # Linux: all IPv4 addresses, those with the same interface included
_IFREQ_BYTES = 16 + 8 + 2 * struct.calcsize("L")  # a name and a union
_ROOM = 256  # of addresses
_UNROUTED = ("192.0.2.1", "2001:db8::1")  # of documentation


def is_loopback(host: str) -> bool:
    """Return True if only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def own_addresses(family: socket.AddressFamily) -> list[str]:
    """List the addresses of all interfaces but loopback and link-local ones, each once: as Linux
    lists them, elsewhere those of the host's name and of the route to the internet."""
    addresses = _of_ipv4_interfaces() if family == socket.AF_INET else _of_ipv6_interfaces()
    with suppress(OSError):
        entries = socket.getaddrinfo(socket.gethostname(), None, family)
        addresses += [str(entry[4][0]) for entry in entries]
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as routed:
        routed.connect((_UNROUTED[family == socket.AF_INET6], 9))  # sends nothing
        addresses.append(str(routed.getsockname()[0]))
    own = [address for address in dict.fromkeys(addresses) if "%" not in address]
    return [address for address in own if not _is_local(address)]


def own_names() -> list[str]:
    """List the names of this machine, but localhost: as it is set, in full, and in the local
    network (mDNS)."""
    name = socket.gethostname().rstrip(".").lower()
    names = dict.fromkeys([name, socket.getfqdn(name).rstrip(".").lower()])
    if "." not in name:
        names[f"{name}.local"] = None
    return [name for name in names if name and not name.startswith("localhost")]


def _is_local(address: str) -> bool:
    parsed = ipaddress.ip_address(address)
    return parsed.is_loopback or parsed.is_link_local or parsed.is_unspecified


def _of_ipv4_interfaces() -> list[str]:
    with suppress(OSError, ImportError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as query:
        import fcntl  # noqa: PLC0415 - not every system has it

        room = array.array("B", bytes(_ROOM * _IFREQ_BYTES))
        where, size = room.buffer_info()
        filled = fcntl.ioctl(query, _SIOCGIFCONF, struct.pack("iL", size, where))
        used = room.tobytes()[: struct.unpack("iL", filled)[0]]
        starts = range(0, len(used), _IFREQ_BYTES)
        return [socket.inet_ntoa(used[start + 20 : start + 24]) for start in starts]
    return []


def _of_ipv6_interfaces() -> list[str]:
    with suppress(OSError):
        lines = read_regular(Path("/proc/net/if_inet6")).decode().splitlines()
        return [str(ipaddress.IPv6Address(bytes.fromhex(line.split()[0]))) for line in lines]
    return []
