"""What a table is made of: its experiment, its cells, and the TOML that says so."""
