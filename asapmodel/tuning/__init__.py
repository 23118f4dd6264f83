"""The best policy inside a layout."""
