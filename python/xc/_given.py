"""Arguments that are refused by the name that the caller gave them."""

import operator
from collections.abc import Mapping, Set

import numpy as np

from ._errors import OptionError

MOST_SEED = (1 << 64) - 1
MOST_THREADS = 4096


def shown(value):
    """A value in a message: the beginning of what is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{type(value).__name__} {text[:50]}..."


def whole(name, value):
    """A whole number; a bool is none."""
    if isinstance(value, (bool, np.bool_)) or not hasattr(type(value), "__index__"):
        raise OptionError(f"{name} {shown(value)}: a whole number is expected")
    try:
        return operator.index(value)
    except TypeError:
        raise OptionError(f"{name} {shown(value)}: a whole number is expected") from None


def count(name, value, least=1):
    """A whole number that is at least ``least``, or None."""
    if value is None:
        return None
    number = whole(name, value)
    if number < least:
        raise OptionError(f"{name} {number}: at least {least} is expected")
    if number >= 1 << 63:
        raise OptionError(f"{name} {number}: a number below 2^63 is expected")
    return number


def number(name, value):
    """A number, or None."""
    if value is None:
        return None
    if isinstance(value, (bool, np.bool_, str, bytes)) or getattr(value, "ndim", 0) != 0:
        raise OptionError(f"{name} {shown(value)}: a number is expected")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise OptionError(f"{name} {shown(value)}: a number is expected") from None


def text(name, value, expected="a str"):
    """A text, or None."""
    if value is not None and not isinstance(value, str):
        raise OptionError(f"{name} {shown(value)}: {expected} is expected")
    return value


def within(name, value, least, most, expected):
    """A whole number from ``least`` to ``most``."""
    found = whole(name, value)
    if not least <= found <= most:
        raise OptionError(f"{name} {found}: {expected} expected")
    return found


def seed(value):
    """A seed of draws."""
    return within("seed", value, 0, MOST_SEED, "a whole number from 0 to 2^64 - 1 is")


def threads(value):
    """A number of threads, or None for all that there are."""
    return None if value is None else within("threads", value, 1, MOST_THREADS, f"between 1 and {MOST_THREADS} are")


def top_k(value):
    """How many answers are asked for."""
    if value is None:
        raise OptionError("top_k None: a whole number is expected")
    return count("top_k", value)


def n_bytes(limit):
    """Bytes of ``8 << 30`` or ``"8GiB"``."""
    if limit is None:
        return None
    wrong = OptionError(f"max_memory {shown(limit)}: bytes, or a text such as '8GiB', are expected")
    units = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "": 1}
    if isinstance(limit, str):
        lowered = limit.strip().lower()
        digits = lowered.rstrip("kmgtib ")
        unit = lowered[len(digits):].strip().replace("ib", "").replace("b", "")
    elif isinstance(limit, (bool, np.bool_)):
        raise wrong
    else:
        digits, unit = limit, ""
    try:
        found = int(digits) if unit == "" and not isinstance(digits, str) else int(float(digits) * units[unit])
    except (KeyError, TypeError, ValueError, OverflowError):
        raise wrong from None
    if not 0 <= found < 1 << 64:
        raise wrong
    return found


def is_missing(value):
    """Whether a value stands for none: None, NaN, and what pandas has for it, which cannot be compared."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)


def refuse_unordered(value, name, expected):
    """Refuses what has no order, or is read by its keys or letters."""
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{name}: a str; {expected} is expected")
    # A form of scipy's matrices is a dict.
    if isinstance(value, (Set, Mapping)) and not hasattr(value, "tocsr"):
        unordered = ", which has no order" if isinstance(value, Set) else ""
        raise TypeError(f"{name}: a {type(value).__name__}{unordered}; {expected} is expected")


def names(values, name="label_names"):
    """Names of labels in the order of their ids, or None."""
    if values is None:
        return None
    refuse_unordered(values, name, "a list of names, in the order of their ids,")
    if not hasattr(values, "__iter__"):
        raise TypeError(f"{name}: {type(values).__name__}; a list of names is expected")
    found = []
    for label, value in enumerate(values):
        if is_missing(value):
            raise OptionError(f"{name}: name {label} is a missing value; a name for each label is expected")
        found.append(str(value))
    return found
