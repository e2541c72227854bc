"""A printed page: nothing on paper can be scrolled or pressed."""

from __future__ import annotations

import re

import pytest
import torch

from page_in_browser import CHROMIUM
from unrolled.decomposition.attribution.outputs import Features
from unrolled.report.page import render_page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path"),
]

_AS_ON_PAPER = """<script>
const asked = window.matchMedia.bind(window);
window.matchMedia = (query) => query === "print" ? { matches: true, addEventListener() {} } : asked(query);
</script>"""


def test_on_paper_a_long_triangle_and_a_long_series_are_whole(build, browse):
    count = 90
    features = Features(("load",), torch.rand(count, 1), torch.rand(count, 1), torch.zeros(count))
    html = render_page([build([f"step {k}" for k in range(count)], features=features)])
    page = browse(re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', _AS_ON_PAPER, html))
    styles = [given["style"] for given in page.with_class("space")]
    sizes = [tuple(map(float, re.findall(r"(?:width|height): ([\d.]+)px", style))) for style in styles]
    assert len(sizes) == 2
    assert all(width <= 660 and height <= 900 for width, height in sizes), sizes
