"""The formats that a run is exported in, a file for each; `exchange/exporter.py` says what one is and has the table."""
