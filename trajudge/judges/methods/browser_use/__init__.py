"""browser-use's built-in judge: its call, and the texts that it is shown."""
