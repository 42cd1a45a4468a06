"""Results of other programs, brought into run directories of ours."""
