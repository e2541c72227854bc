"""The documentation site: `make docs` writes it to build/docs. A broken link is an error."""

from __future__ import annotations

from typing import Any

import latex2mathml.converter

import unrolled

project = "unrolled"
author = "The unrolled authors"
copyright = "2026, The unrolled authors"
release = version = unrolled.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
exclude_patterns = ["**/.ipynb_checkpoints"]

html_theme = "furo"
html_title = "unrolled"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}
html_copy_source = False

myst_enable_extensions = ["deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3

# Every notebook is run whenever the site is built; an error in one fails the build.
nb_execution_mode = "force"
nb_execution_timeout = 240
nb_execution_raise_on_error = True
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Source", "notes_style"), ("Shapes", "params_style")]

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def setup(app: Any) -> None:
    """Write formulas as MathML, which browsers render without a script from elsewhere."""

    def convert(text: str, display: str) -> str:
        return str(latex2mathml.converter.convert(text, display=display))

    def inline(translator: Any, node: Any) -> None:
        from docutils import nodes

        translator.body.append(convert(node.astext(), "inline"))
        raise nodes.SkipNode

    def block(translator: Any, node: Any) -> None:
        from docutils import nodes

        translator.body.append(convert(node.astext(), "block"))
        raise nodes.SkipNode

    app.add_html_math_renderer("mathml", (inline, None), (block, None))


html_math_renderer = "mathml"
