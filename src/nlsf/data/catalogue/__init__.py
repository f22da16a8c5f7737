"""The catalogue of data sets: entries, their files, and how they are found."""
