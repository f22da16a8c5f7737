"""What survives a killed process, and what is kept while one lives.

`files` writes a file whole or not at all, `locks` keeps processes apart, `json_lines` holds rows,
and `memory` keeps results that are dear to compute, bounded in bytes.
"""
