"""Whole runs: from settings to measured models, their folders, what one sees of them."""
