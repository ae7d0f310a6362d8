"""The command line: one command a file, each parses, calls and prints."""

import sys


def main() -> None:
    """Run the command line and exit with its status.

    Status 1 is a failure the user can act on, said in one line; 2 a wrong argument; 130
    an interruption, whether a command has begun by then or is still being imported.
    """
    try:
        from largeprompt.cli.app import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


__all__ = ["main"]
