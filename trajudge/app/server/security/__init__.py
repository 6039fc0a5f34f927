"""What stands between a request and the pages: hosts, origins, sessions, tokens, headers."""
