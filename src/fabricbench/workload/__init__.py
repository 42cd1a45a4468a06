"""Workloads: kernels and applications that run on a fabric. `adapter` says what one is, `registry` lists them."""
