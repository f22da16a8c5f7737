"""What a person sees: how far work is, and tables."""
