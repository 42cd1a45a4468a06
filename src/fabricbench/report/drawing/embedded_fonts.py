"""SVG that carries its letters, so that it looks the same where none of its fonts is installed.

Arimo's letters are as wide as those of Liberation Sans, with which figures are laid out. Signs that it lacks are the viewer's.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from importlib.resources import files

EMBEDDED = "Arimo"
"""The family, which `PAPER_SANS` names first."""
WEIGHTS = {400: "arimo-regular.woff2", 700: "arimo-bold.woff2"}


def with_fonts(svg: str) -> str:
    """Return an SVG with the fonts of its text within, 31 kB."""
    end = svg.index(">", svg.index("<svg")) + 1
    return f"{svg[:end]}<style>{_faces()}</style>{svg[end:]}"


@cache
def _faces() -> str:
    fonts = files("fabricbench.report.drawing") / "fonts"
    return "".join(
        f"@font-face{{font-family:{EMBEDDED};font-weight:{weight};"
        f"src:url(data:font/woff2;base64,{b64encode((fonts / name).read_bytes()).decode()})}}"
        for weight, name in WEIGHTS.items()
    )
