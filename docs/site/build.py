"""Builds the documentation site into `target/site`: `cargo xtask site`.

The pages are the repository's own Markdown files, in the places that they have there, so that a link
works on the site as it does in the repository. Links to source code become links to the repository,
formulas become MathML, and the Python reference is made from the docstrings. A link that leads nowhere
ends the build.
"""

import html.parser
import importlib
import inspect
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import unquote, urlsplit

import latex2mathml.converter

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "target" / "site-pages"
SITE = ROOT / "target" / "site"
PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs", "experiments", "benches/README.md"]
KINDS = {".md", ".png", ".svg", ".js", ".css"}

CODE = re.compile(r"^(```|~~~).*?^\1\s*$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^\s$](?:[^$\n]*[^\s$])?)\$", re.DOTALL)
LINK = re.compile(r"(\]\()([^)\s]+)(\))")


def repository() -> str:
    with (ROOT / "Cargo.toml").open("rb") as file:
        return tomllib.load(file)["workspace"]["package"]["repository"]


def outside_code(text: str, change) -> str:
    """Applies `change` to all that is no code."""
    parts, end = [], 0
    for code in CODE.finditer(text):
        parts += [change(text[end : code.start()]), code.group()]
        end = code.end()
    return "".join([*parts, change(text[end:])])


def with_formulas(text: str) -> str:
    def mathml(found: re.Match) -> str:
        display, inline = found.groups()
        kind = "block" if display else "inline"
        made = latex2mathml.converter.convert((display or inline).strip(), display=kind)
        # A line that begins with an element of its own would be a paragraph.
        return made if display else f"<span>{made}</span>"

    return FORMULA.sub(mathml, text)


def gather() -> list[str]:
    """Copies the pages; gives the links that lead nowhere."""
    shutil.rmtree(WORK, ignore_errors=True)
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *PAGES],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    files = [
        file
        for file in map(Path, tracked.stdout.splitlines())
        if file.suffix in KINDS and file.parts[:2] != ("docs", "site") and (ROOT / file).exists()
    ]
    dead = []
    for file in files:
        page = WORK / file
        page.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix != ".md":
            shutil.copyfile(ROOT / file, page)
            continue

        def relinked(found: re.Match, file=file) -> str:
            before, link, after = found.groups()
            parts = urlsplit(link)
            if parts.scheme or not parts.path:
                return found.group()
            place = (ROOT / file.parent / unquote(parts.path)).resolve()
            if not place.exists():
                # The references are made below.
                if place != ROOT / "docs/python/reference.md" and not place.is_relative_to(
                    ROOT / "rust"
                ):
                    dead.append(f"{file}: {link}")
                return found.group()
            inside = place.relative_to(ROOT)
            if inside in files:
                return found.group()
            if place.is_dir() and inside / "README.md" in files:
                return f"{before}{parts.path.rstrip('/')}/README.md{after}"
            return f"{before}{repository()}/blob/main/{inside}{after}"

        text = (ROOT / file).read_text(encoding="utf-8")
        # What only the site has.
        text = re.sub(r"<!-- site: (.*?) -->", r"\1", text)
        text = outside_code(text, lambda part, relinked=relinked: LINK.sub(relinked, part))
        page.write_text(outside_code(text, with_formulas), encoding="utf-8")
    return dead


def reference() -> None:
    """What `help` says of every public name, as one page."""
    package = importlib.import_module("steinflow")
    lines = ["# Python reference", "", f"Version {package.__version__}, from the docstrings.", ""]

    def described(name: str, thing, level: str) -> None:
        try:
            signature = str(inspect.signature(thing)) if callable(thing) else ""
        except (TypeError, ValueError):
            signature = ""
        signature = re.sub(r"(: |-> )(['\"])(.*?)\2", r"\1\3", signature)
        signature = re.sub(r"ForwardRef\('(.*?)'\)", r"\1", signature)
        # A signature of many settings is a line each.
        if len(signature) > 88:
            inside = re.sub(r", (?=[*\w]+[:=,)]|[*\w]+: )", ",\n    ", signature[1:])
            signature = f"(\n    {inside}"
        document = re.sub(
            r"^(\w+)\n-+$", r"**\1**\n", inspect.getdoc(thing) or "", flags=re.MULTILINE
        )
        anchor = name.split("(")[0]
        lines.extend(
            [f"{level} `{anchor}`", "", "```python", f"{name}{signature}", "```", "", document, ""]
        )

    for name in package.__all__:
        thing = getattr(package, name)
        if name.startswith("__"):
            continue
        described(f"steinflow.{name}", thing, "##")
        if inspect.isclass(thing):
            for member, value in vars(thing).items():
                if not member.startswith("_") and (
                    inspect.isfunction(value) or isinstance(value, property)
                ):
                    described(f"{name}.{member}", value, "###")
    (WORK / "docs/python/reference.md").write_text("\n".join(lines), encoding="utf-8")


class Page(html.parser.HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []
        self.anchors = {""}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def dead_links() -> list[str]:
    """Links between the pages of the site that lead nowhere. Those to other sites are not followed."""
    pages = {
        path: Page(path.read_text(encoding="utf-8"))
        for path in SITE.rglob("*.html")
        if path.relative_to(SITE).parts[0] != "rust" and path.name != "404.html"
    }
    dead = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith("data:"):
                continue
            place = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if place.is_dir():
                place /= "index.html"
            is_there = place.exists() or place.is_relative_to(SITE / "rust")
            if not is_there or (
                place in pages and unquote(parts.fragment) not in pages[place].anchors
            ):
                dead.append(f"{path.relative_to(SITE)}: {link}")
    return sorted(set(dead))


def main() -> None:
    dead = gather()
    reference()
    (WORK / "README.md").rename(WORK / "index.md")
    for page in WORK.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(
            re.sub(r"\]\(((?:\.\./)+)README\.md", r"](\1index.md", text), encoding="utf-8"
        )
    settings = (ROOT / "docs/site/zensical.toml").read_text(encoding="utf-8")
    (WORK.parent / "zensical.toml").write_text(settings, encoding="utf-8")
    shutil.rmtree(SITE, ignore_errors=True)
    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build"], cwd=WORK.parent, check=False
    )
    if built.returncode != 0:
        sys.exit("zensical could not build the site")
    if (ROOT / "target/doc/steinflow").is_dir():
        shutil.copytree(ROOT / "target/doc", SITE / "rust")
    dead += dead_links()
    if dead:
        sys.exit("links that lead nowhere:\n  " + "\n  ".join(dead))
    count = sum(1 for _ in SITE.rglob("*.html") if "rust" not in _.parts)
    print(f"{SITE.relative_to(ROOT)}/index.html: {count} pages, all links between them checked")


if __name__ == "__main__":
    main()
