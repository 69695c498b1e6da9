"""Folders of models that nobody gave a place."""

import hashlib
import io
import os
import shutil
import tempfile
import weakref
import zipfile

from ._errors import ModelError


class Folder:
    """A temporary folder, which goes with its last user: in the process that made it alone, not in a forked one."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="xc-")
        self._remove = weakref.finalize(self, remove, self.path, os.getpid())

    def inside(self, name):
        """The path of something in it."""
        return os.path.join(self.path, name)


def remove(path, process):
    """Removes a folder, unless a forked process asks for it."""
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)


def fingerprint(folder):
    """A hash of the configuration of a model, which has the hashes of its arrays."""
    try:
        with open(os.path.join(folder, "config.json"), "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError as error:
        raise ModelError(f"{folder}: {error.strerror or error}") from None


def packed(folder):
    """All bytes of a folder."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for path, _, names in os.walk(folder):
            for name in names:
                whole = os.path.join(path, name)
                file.write(whole, os.path.relpath(whole, folder))
    return out.getvalue()


def unpacked(data, name):
    """A temporary folder that holds ``name`` with these bytes."""
    folder = Folder()
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        file.extractall(folder.inside(name))
    return folder
