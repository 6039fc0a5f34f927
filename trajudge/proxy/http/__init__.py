"""HTTP/1.1 on asyncio's streams: heads, bodies, and the connections that are kept to origins."""
