"""Products, sums and recurrences under the lenses, fast also for many models at once."""
