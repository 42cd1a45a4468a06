"""Intervals, tests, corrections and decisions: arrays only, knows no domain.

    order.py         quantiles and their nonparametric intervals
    ratios.py        the ratio of two sides, paired by block or not: interval and p-value from one and the same test
    correction.py    many comparisons at once, and several looks at one
    decision.py      LOWER, HIGHER, EQUIVALENT or UNDECIDED, and how many more blocks would settle it
    skew.py          shapes: histograms, two modes, launches in two groups, and what a decision then needs in addition
    crossing.py      the sizes between which one side overtakes the other, and where in between if Hockney's model says so
    curves.py        slow sizes, jumps that stay, launches in groups and drifts on curves over message size
    segments.py      curves as lines in pieces, and how far sizes are off that were left out
    moderated.py     Student's t of many alike comparisons, whose variances borrow from each other
    dependence.py    autocorrelation within a launch, trend over blocks
    order_effects.py what place and predecessor in a block do to values, found and taken out

The caller states what it takes for granted (`Assumption`), the package chooses the test.
"""
