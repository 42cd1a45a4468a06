"""Intervals, tests, corrections, stopping rules: arrays only, knows no domain."""
