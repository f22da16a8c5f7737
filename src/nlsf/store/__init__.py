"""What survives: whole files, locks and JSON lines, which a killed process leaves in order.

`files` writes a file whole or not at all, `locks` keeps processes apart, `json_lines` holds rows.
"""
