"""Workloads: kernels and applications that run on a fabric. Each adapter knows its program's tokens and its results."""
