"""Intervals, tests, corrections and decisions: arrays only, knows no domain.

    order.py         quantiles and their nonparametric intervals
    ratios.py        the ratio of two sides, paired by block or not: interval and p-value from one and the same test
    correction.py    many comparisons at once
    decision.py      LOWER, HIGHER, EQUIVALENT or UNDECIDED, and how many more blocks would settle it
    crossing.py      where a curve of ratios crosses one
    dependence.py    autocorrelation within a launch, trend over blocks
    shape.py         histograms and a hint at two modes
    simulation.py    campaigns with known truth, and how often the procedures above are right on them

The caller states what it takes for granted (`Assumption`), the package chooses the test.
"""
