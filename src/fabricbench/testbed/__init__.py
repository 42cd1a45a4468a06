"""Nodes, fabrics and wires, and the inventory of a machine."""
