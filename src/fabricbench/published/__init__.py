"""Figures of published studies, as data beside which a measurement can be set."""
