"""Read the built documentation as a visitor would: ``make docs-check``, or

    python -m docs.check docs/_build/html [--every] [--pictures FOLDER]

Links and anchors are followed without a browser. In a headless Chromium each kind of page is opened in
light and dark, wide and narrow: nothing may stick out sideways, the console must stay silent, axe must
find no fault, and the search must find what readers look for. ``--every`` opens all pages, those of
single classes included; ``--pictures`` stores what they look like.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

from tests.serve.browser import Browser, browser, why_no_browser

WIDE, NARROW = (1280, 900), (390, 844)
SOUGHT = {
    "recommend": "recommend",
    "impute": "Imput",
    "cold start": "Cold start",
    "uncertainty": "ncertain",
}
"""What readers type, and what a title on the first page of results must hold."""
FAULTS = """
    const asked = {runOnly: ["wcag2a", "wcag2aa"], resultTypes: ["violations"]};
    return axe.run(document, asked).then(
        (found) => found.violations.flatMap((fault) => fault.nodes.map(
            node => `${fault.id}: ${node.html.slice(0, 150)} (${(node.failureSummary || "").slice(0, 200)})`,
        )));
"""
STICKING_OUT = """
    const page = document.documentElement, found = [], wide = window.innerWidth + 1;
    if (page.scrollWidth > wide) found.push(`the page is ${page.scrollWidth} wide`);
    const scrolls = (part) => ["auto", "scroll"].includes(getComputedStyle(part).overflowX);
    for (const part of document.querySelectorAll("article *, body > :not(nav, header, script) p")) {
        const box = part.getBoundingClientRect();
        if (box.right <= wide || box.width === 0) continue;
        let above = part;
        while (above && !scrolls(above)) above = above.parentElement;
        if (!above || above === page || above === document.body)
            found.push(`cut: ${part.outerHTML.slice(0, 99)}`);
    }
    return found.slice(0, 4);
"""


class Page(HTMLParser):
    """Names that a page has, and where it points to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.names.add(value)
            elif name in ("href", "src"):
                self.links.append(value)


def broken_links(site: Path) -> list[str]:
    """Links to pages, files or anchors that are not there."""
    files_of = (path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts)
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in files_of}
    found = []
    for path, page in pages.items():
        for link in page.links:
            address = urlsplit(link)
            if address.scheme or address.netloc:
                if address.scheme not in ("https", "mailto", "data"):
                    found.append(f"{path.relative_to(site.resolve())}: {link} is no address for a reader")
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            if not target.exists():
                found.append(f"{path.relative_to(site.resolve())}: {link} is not there")
            elif address.fragment and target in pages and not _has(pages[target], unquote(address.fragment)):
                found.append(f"{path.relative_to(site.resolve())}: {link} has no such anchor")
    return found


def _has(page: Page, name: str) -> bool:
    return name in page.names or name in ("", "top")


def kinds(site: Path, every: bool) -> list[str]:
    """Pages to open: all that were written by hand, of made ones some or all."""
    pages = [path.relative_to(site).as_posix() for path in sorted(site.rglob("*.html"))]
    pages = [page for page in pages if not page.startswith(("_", "genindex", "py-modindex", "search"))]
    if every:
        return pages
    made = [page for page in pages if "/generated/" in page]
    shown = [
        page
        for page in made
        if page.rsplit(".", 2)[-2] in ("MatrixFactorization", "Imputer", "ExMLDS", "rmse")
    ]
    gallery = [page for page in pages if page.startswith("gallery/")]
    rest = [page for page in pages if page not in {*made, *gallery}]
    return [*rest, *gallery[:2], *shown]


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The address of the site on this machine."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def seen(window: Browser, address: str, page: str, pictures: Path | None) -> list[str]:
    """What is wrong with a page, in four windows."""
    axe = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
    found = []
    window.window(*WIDE)
    window.open(f"{address}/{page}")
    window.until("document.readyState === 'complete'")
    for dark in (False, True):
        for width, height in (WIDE, NARROW):
            window.window(width, height, dark)
            window.run(f"document.documentElement.dataset.theme = '{'dark' if dark else 'light'}'")
            time.sleep(0.5)  # colours fade, and blocks of code are looked at anew
            how = f"{page} ({width}{', dark' if dark else ''})"
            found += [f"{how}: {text}" for text in window.run(STICKING_OUT)]
            if (width, height) == WIDE or not dark:
                window.run(f"if (!window.axe) {{ {axe} ; window.axe = axe; }}")
                found += [f"{how}: {text}" for text in window.run(FAULTS)]
            if pictures is not None:
                name = f"{page.removesuffix('.html').replace('/', '-')}-{width}{'-dark' if dark else ''}.png"
                window.window(width, min(int(window.run("return document.body.scrollHeight")), 6000), dark)
                window.picture(pictures / name)
    return found + [f"{page}: console: {text}" for text in window.errors()]


def not_found(window: Browser, address: str) -> list[str]:
    """Words that the search does not answer."""
    found = []
    for words, wanted in SOUGHT.items():
        window.open(f"{address}/search.html?q={words.replace(' ', '+')}")
        window.until("document.querySelectorAll('#search-results li a').length > 0")
        window.until("!document.querySelector('#search-progress')?.textContent.includes('Searching')")
        titles = window.run(
            "return [...document.querySelectorAll('#search-results li > a')].map((a) => a.textContent)"
        )
        if not any(wanted in title for title in titles[:10]):
            found.append(f"search for {words!r} begins with {', '.join(titles[:5])}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path)
    parser.add_argument("--every", action="store_true")
    parser.add_argument("--pictures", type=Path)
    parser.add_argument("--only", nargs="*", default=None, help="open these pages alone")
    options = parser.parse_args()
    found = broken_links(options.site) if options.only is None else []
    pages = options.only or kinds(options.site, options.every)
    if options.pictures is not None:
        options.pictures.mkdir(parents=True, exist_ok=True)
    if (missing := why_no_browser()) is not None:
        print(f"pages were not opened: {missing}")
        pages = []
    else:
        with (
            tempfile.TemporaryDirectory() as profile,
            served(options.site) as address,
            browser(Path(profile)) as window,
        ):
            for page in pages:
                found += seen(window, address, page, options.pictures)
            if options.only is None:
                found += not_found(window, address)
    print("\n".join(found) or "nothing to mend")
    print(json.dumps({"pages": len(pages), "faults": len(found)}))
    return 1 if found or missing is not None else 0


if __name__ == "__main__":
    raise SystemExit(main())
