"""Settings by keyword: of each kind of model, and of an index."""

import difflib
import functools
import os

import numpy as np

from . import _native
from ._errors import OptionError, keyword

FITTED = {
    "index": "an index", "blend": "a blend", "calibrate": "a calibration", "search": "a search", "convert": "a conversion",
    "embed": "an embedding", "evaluate": "an evaluation",
}
"""What has settings beside kinds of models, and what messages call it."""


def settings(kind):
    """The settings of a kind by keyword: each a dict with its name in the program, type, names of values and help."""
    if not isinstance(kind, str):
        raise OptionError(f"kind: a {type(kind).__name__}; one of {', '.join(_native.kinds())} is expected, as a str")
    return _settings(kind)


@functools.lru_cache(maxsize=None)
def _settings(kind):
    known = _native.kinds()
    if kind not in known and kind not in FITTED:
        near = difflib.get_close_matches(str(kind), known, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise OptionError(f"kind {kind!r}: one of {', '.join(known)} is expected{hint}")
    found = {}
    for row in _native.settings(kind):
        found[keyword(row["name"])] = row
        if row["alias"]:
            found.setdefault(keyword(row["alias"]), row)
    return found


def typed(kind, options, keywords):
    """Settings given by keyword, or in ``options`` by any spelling, as pairs of the program's name and text."""
    known = settings(kind)
    if options is not None and not hasattr(options, "items"):
        raise TypeError(f"options: a {type(options).__name__}; a dict of names and values is expected")
    given = {}
    for name, value in list((options or {}).items()) + list(keywords.items()):
        name = keyword(name)
        row = known.get(name)
        if row is None:
            near = difflib.get_close_matches(name, list(known) + list(CALL), 3, 0.6)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            whose = FITTED.get(kind, f"kind {kind!r}")
            raise OptionError(f"{name}: {whose} has no such option{hint}")
        if row["name"] in given:
            raise OptionError(f"{name}: given twice")
        if value is not None and not (row["type"] == "switch" and value is False):
            # What is on or off is True or False too.
            is_switched = "off" in (row["names"] or ()) and isinstance(value, (bool, np.bool_))
            given[row["name"]] = ("on" if value else "off") if is_switched else as_text(name, value)
    return list(given.items())


CALL = (
    "model", "validation", "label_names", "label_features", "instance_weights", "label_costs", "seed", "threads",
    "max_memory", "resume", "restart", "progress", "callbacks", "checkpoint", "refit", "device", "text_fields",
)


def as_text(name, value):
    """A value as it is typed."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(as_text(name, item) for item in value)
    if isinstance(value, (np.integer, np.floating)):
        value = value.item()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, (int, float, str)):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    raise OptionError(f"{name}: a {type(value).__name__}; a number, a str, a path, a bool or a list of them is expected")
