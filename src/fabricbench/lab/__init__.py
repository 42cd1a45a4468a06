"""The virtual testbed: nodes in namespaces on this machine, joined by emulated switches."""
