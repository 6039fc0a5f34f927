"""Screenshots: their headers, their memory, and how they are prepared for a prompt."""
