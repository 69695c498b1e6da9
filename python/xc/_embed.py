"""Vectors of texts."""

import os
import warnings

from . import _given, _native
from ._errors import XcWarning
from ._folders import absolute
from ._rows import rows
from ._settings import typed


class Embedder:
    """The transformer in a folder as HuggingFace's libraries write it, or the name of a repository that ``hf download`` has
    fetched; nothing is downloaded or trained.

    >>> vectors = xc.Embedder("all-MiniLM-L6-v2").embed(["a text", "another"])

    ``options`` are those of ``xc embed``: ``max_tokens`` of a text are read, special ones included; ``prefix`` stands before
    every text, the folder's default prompt where it is None. ``precision`` "bf16" rounds what products multiply and takes half
    the time where the CPU has such products. Vectors have length 1 unless ``normalise`` is False. Threads that embed at a time
    have the weights once each.
    """

    __slots__ = ("_native", "_given")

    def __init__(self, folder, **options):
        # What is no folder is the name of a repository.
        folder = absolute(folder) if os.path.exists(folder) else os.fsdecode(folder)
        self._given = (folder, options)
        self._native, said = _native.Embedder.open(folder, typed("embed", None, options))
        for line in said:
            warnings.warn(line, XcWarning, stacklevel=2)

    @property
    def width(self):
        """Values of a vector."""
        return self._native.width

    def embed(self, texts, *, text_fields=None, threads=None):
        """Vectors of ``texts`` as float32, (texts, ``width``): each has the same bits alone and among others."""
        vectors, cut = self._native.embed(rows(texts, "texts", text_fields), _given.threads(threads))
        if cut is not None:
            warnings.warn(f"texts: {cut}", XcWarning, stacklevel=2)
        return vectors

    def __reduce__(self):
        return _opened, self._given

    def __repr__(self):
        return f"Embedder({self._given[0]!r}, width={self.width})"


def _opened(folder, options):
    return Embedder(folder, **options)
