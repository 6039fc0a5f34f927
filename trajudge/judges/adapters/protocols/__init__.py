"""The wire: chat turns, headers, finish reasons, and errors as providers word them."""
