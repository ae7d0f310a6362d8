"""The README's picture, drawn from a saved audit.

python -m benchmarks.figures out/demo
"""

import sys

from benchmarks.record import ROOT
from largeprompt.audit import AuditResult
from largeprompt.report import Figure, write_figure

IMAGE = ROOT / "docs" / "images" / "phase_map.svg"

if __name__ == "__main__":
    IMAGE.parent.mkdir(parents=True, exist_ok=True)
    write_figure(AuditResult.load(sys.argv[1]), Figure.PHASE_MAP, IMAGE)
    print(IMAGE)
