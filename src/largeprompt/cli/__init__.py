"""The command line: one command a file, each parses, calls and prints."""

from largeprompt.cli.app import main

__all__ = ["main"]
