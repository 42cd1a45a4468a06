"""The contract with the native part (plan, record lines), reading records, and the run directory."""
