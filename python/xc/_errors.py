"""Exceptions and warnings."""

import re


class XcError(Exception):
    """Whatever is wrong; every exception of the package is one."""


class OptionError(XcError, ValueError):
    """An option that is not known, cannot have this value, or changes nothing here.

    ``option`` is its keyword, where the message is about one.
    """

    def __init__(self, message):
        message = keywords_in(message)
        super().__init__(message)
        found = re.match(r"([a-z][a-z0-9_]*)\b", message)
        self.option = found.group(1) if found else None

    def __reduce__(self):
        return (type(self), (self.args[0],))


class DataError(XcError, ValueError):
    """Rows or labels that cannot be; ``row`` and ``column`` say where, if one row or column is at fault."""

    def __init__(self, message, row=None, column=None):
        super().__init__(keywords_in(message))
        self.row, self.column = row, column

    def __reduce__(self):
        return (type(self), (self.args[0], self.row, self.column))


class ModelError(XcError, OSError):
    """A folder that is no model, is damaged, or cannot be written."""

    def __init__(self, message):
        super().__init__(keywords_in(message))

    def __reduce__(self):
        return (type(self), (self.args[0],))


class MemoryLimitError(XcError, MemoryError):
    """Work that needs more memory than is free, or than ``max_memory`` allows. Nothing was begun."""

    def __init__(self, message):
        super().__init__(keywords_in(message))


class DefectError(XcError, RuntimeError):
    """A defect of xc: please report it."""


class XcWarning(UserWarning):
    """Something that may surprise."""


def keywords_in(message):
    """A message with the program's spelling of options (``--text.min-df``) in that of keywords (``text_min_df``)."""
    return re.sub(r"(?<![\w-])--([a-z][a-z0-9]*(?:[-.][a-z0-9]+)*)", lambda found: keyword(found.group(1)), message)


def keyword(name):
    """The keyword of an option of the program."""
    return name.replace("-", "_").replace(".", "_")
