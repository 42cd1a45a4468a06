"""Intervals, tests, corrections and decisions: arrays only, knows no domain.

    order.py         quantiles and their nonparametric intervals
    ratios.py        the ratio of two sides, paired by block or not: interval and p-value from one and the same test
    correction.py    many comparisons at once
    decision.py      LOWER, HIGHER, EQUIVALENT or UNDECIDED, and how many more blocks would settle it
    skew.py          launches of one side in two groups, and what a decision then needs in addition
    hockney.py       latency plus bandwidth, fitted to the launches of a curve
    crossing.py      the sizes between which one side overtakes the other, and where in between if a model says so
    dependence.py    autocorrelation within a launch, trend over blocks
    shape.py         histograms and a hint at two modes
    simulation.py    launches of campaigns whose truth is known
    characteristics.py  how often the procedures above are right on such campaigns

The caller states what it takes for granted (`Assumption`), the package chooses the test.
"""
