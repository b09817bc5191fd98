"""Experiments that run the tables and figures of five papers again; ``papers.catalogue`` names them.

Not part of the installed library: ``unseen reproduce`` finds this folder in a checkout.
"""
