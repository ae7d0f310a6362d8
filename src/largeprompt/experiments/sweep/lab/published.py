"""The published tasks of in-context regression by name, without importing them."""

PRESETS = (
    "paper-as-published",
    "paper-intended",
    "he-et-al",
    "zhang-frei-bartlett",
    "zhang-singh",
)
ATTENTIONS = ("softmax", "linear")
