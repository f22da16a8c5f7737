"""Data of the user's own, from files and from objects."""
