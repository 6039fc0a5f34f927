"""Environments of their own for packages that cannot be installed beside ours."""
