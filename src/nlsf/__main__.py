"""``python -m nlsf``: the same as ``nlsf``."""

from nlsf.cli import main

main()
