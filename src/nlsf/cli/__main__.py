"""``python -m nlsf.cli``: the same as ``nlsf``."""

from nlsf.cli import main

main()
