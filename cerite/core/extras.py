"""Packages that Cerite uses and does not bring: which extra has each, and what to say where one is missing.

`pip install cerite` brings what every query needs. Whatever else a call needs is imported when it is called, through
`load`, so that importing Cerite imports none of it and its absence is a `MissingExtraError` with a pip line.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from cerite.core.errors import MissingExtraError

_EXTRAS = {  # package: its extra, and what needs it
    "altair": ("plot", "a chart of matches"),
    "google": ("spark", "a live stream on Spark"),
    "graphviz": ("graphviz", "a picture as SVG"),
    "grpc": ("connect", "Spark Connect"),
    "pandas": ("pandas", "a pandas frame of matches"),
    "polars": ("polars", "a Polars frame of matches"),
    "pyspark": ("spark", "Cerite on Spark"),
    "vl_convert": ("plot", "a chart of matches in a file"),
    "typer": ("cli", "the command `cerite`"),
}


def load(module: str) -> Any:
    """A module that is in an extra or imports one; a package that is missing is named with its pip line.

    >>> load("polars").__name__
    'polars'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        extra, need = _EXTRAS[package]
        raise MissingExtraError(
            f"{need} needs the package `{package}`, which is not installed", hint=f"pip install 'cerite[{extra}]'"
        ) from None
