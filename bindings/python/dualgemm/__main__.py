"""``python -m dualgemm``: the command."""

from ._command import main

main()
