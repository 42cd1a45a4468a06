"""Renders findings as HTML, Markdown, CSV, figures and terminal tables; computes no statistics."""
