"""The main of a local worker: orders come in and outcomes go out, a line each.

    python -m largeprompt.experiments.sweep.worker ORDERS OUTCOMES

with the numbers of two pipes. A worker ends when its runner is gone: at once, also in
the middle of a cell.
"""

import dataclasses
import json
import os
import queue
import signal
import sys
import threading
from typing import TextIO

from largeprompt.experiments.sweep.work import Order, carry_out


def main() -> None:
    """Carry out orders until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the runner decides
    orders, outcomes = (int(number) for number in sys.argv[1:])
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    source = open(orders, encoding="utf-8")  # noqa: SIM115 - open until the end
    threading.Thread(target=_listen, args=(source, waiting), daemon=True).start()
    with open(outcomes, "w", encoding="utf-8") as answers:
        while True:
            outcome = carry_out(Order.read(waiting.get()))
            answers.write(json.dumps(dataclasses.asdict(outcome)) + "\n")
            answers.flush()


def _listen(source: TextIO, waiting: "queue.SimpleQueue[str]") -> None:
    for line in source:
        waiting.put(line)
    os._exit(0)  # the runner is gone: leave the cell to whoever comes next


if __name__ == "__main__":
    main()
