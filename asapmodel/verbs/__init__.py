"""What a user asks: one verb a module."""
