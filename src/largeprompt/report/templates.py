"""The pages' templates, and what they all share: escaping, numbers, colours."""

import jinja2
import markupsafe

from largeprompt.report.numbers import count, show
from largeprompt.report.palette import DARK, LIGHT, css_variables


def template(name: str) -> jinja2.Template:
    """Return a template of `assets`; text put into it is shown, never obeyed."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("largeprompt.report", "assets"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["show"] = show
    environment.filters["count"] = count
    environment.globals["light"] = markupsafe.Markup(css_variables(LIGHT))
    environment.globals["dark"] = markupsafe.Markup(css_variables(DARK))
    return environment.get_template(name)
