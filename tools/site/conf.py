"""How Sphinx makes the course's site of the pages that build.py wrote."""

import latex2mathml.converter
from docutils import nodes
from sphinx.application import Sphinx

project = "PyTorch training tricks"
copyright = "the authors of the course, under the MIT licence"
author = "the authors of the course"
extensions = ["myst_nb"]
html_theme = "sphinx_book_theme"
html_title = project
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "use_download_button": False,
    "use_fullscreen_button": False,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "navbar_persistent": [],  # the sidebar has the search
}
nb_merge_streams = True
nb_execution_mode = "off"  # build.py has run the chapters
nb_render_markdown_format = "myst"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["mystnb.unknown_mime_type", "myst.header"]
html_math_renderer = "mathml"


def _mathml(node: nodes.Node, display: str) -> str:
    """Formulas as browsers draw them themselves: no JavaScript, no network."""
    return latex2mathml.converter.convert(node.astext(), display=display)


def _inline(self: object, node: nodes.math) -> None:
    self.body.append(_mathml(node, "inline"))  # type: ignore[attr-defined]
    raise nodes.SkipNode


def _block(self: object, node: nodes.math_block) -> None:
    formula = _mathml(node, "block")
    # a wide one is scrolled, by keyboard too
    self.body.append(  # type: ignore[attr-defined]
        f'<div class="formula" tabindex="0" role="group">{formula}</div>'
    )
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Registers the renderer of formulas."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
