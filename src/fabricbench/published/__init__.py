"""Figures of published studies, as data beside which a measurement can be set.

`studies.json` holds the facts as the studies give them; `figures` picks out those that a measurement can stand beside.
"""

from __future__ import annotations

from fabricbench.published.figures import PublishedFigure, PublishedQuantity, published_figures
from fabricbench.published.kernels import PublishedKernel, published_kernels, published_kernels_source
from fabricbench.published.studies import Study, studies

__all__ = [
    "PublishedFigure",
    "PublishedKernel",
    "PublishedQuantity",
    "Study",
    "published_figures",
    "published_kernels",
    "published_kernels_source",
    "studies",
]
