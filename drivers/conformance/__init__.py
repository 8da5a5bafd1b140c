"""Checks every driver in this folder's neighbourhood against the contract in ../README.md.

Python's standard library alone: `python3 -m conformance`, in the folder `drivers`.
"""
