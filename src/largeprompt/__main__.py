"""`python -m largeprompt`: the command line without its script."""

from largeprompt.cli import main

main()
