"""The numbers of tables: run where they are missing, stored, timed."""
