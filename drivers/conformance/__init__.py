"""Checks every driver in the parent folder against the contract in ../README.md.

Uses only Python's standard library: `python3 -m conformance`, in the folder `drivers`.
"""
