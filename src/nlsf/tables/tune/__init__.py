"""Settings that are good on validation data: spaces, trials, the search, where it is kept."""
