"""Folders of models: where they are, what stands in them, and those that nobody gave a place."""

import hashlib
import io
import json
import os
import shutil
import tempfile
import weakref
import zipfile
from multiprocessing import util

from ._errors import ModelError

try:
    import fcntl
except ImportError:
    fcntl = None

PREFIX = "xc-"
LOCK = ".lock"
"""The file of a temporary folder that is locked as long as a process lives that may use it."""

INDEXES = ("ann-index", "inverted-index")
"""Kinds of folders that are an index of their own."""


class Folder:
    """A temporary folder, which goes with its last user: in the process that made it alone, not in a forked one.

    A process that is ended at once removes nothing. The folder therefore has a lock, which the system gives up with the
    last process that inherited it, and the next process that makes such a folder, or ends, removes it.
    """

    def __init__(self):
        sweep()
        self.path = tempfile.mkdtemp(prefix=PREFIX)
        lock = locked(self.path)
        self._remove = weakref.finalize(self, remove, self.path, os.getpid(), lock)
        # Workers of multiprocessing end without what Python does at its end. Others of them are joined first.
        util.Finalize(self, remove, (self.path, os.getpid(), None), exitpriority=-10)

    def inside(self, name):
        """The path of something in it."""
        return os.path.join(self.path, name)


def locked(path):
    """The open lock of a new folder; None where the system has none. It has its name only when it is locked, so that
    nobody finds it open."""
    if fcntl is None:
        return None
    try:
        lock = os.open(os.path.join(path, LOCK + "-new"), os.O_CREAT | os.O_RDWR, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rename(os.path.join(path, LOCK + "-new"), os.path.join(path, LOCK))
    except OSError:
        # A file system without locks: the folder stays where its process is ended.
        os.close(lock)
        return None
    return lock


def sweep():
    """Removes the temporary folders of processes that are gone."""
    if fcntl is None:
        return
    try:
        with os.scandir(tempfile.gettempdir()) as entries:
            found = [entry.path for entry in entries if entry.name.startswith(PREFIX) and is_own(entry)]
    except OSError:
        return
    for path in found:
        try:
            lock = os.open(os.path.join(path, LOCK), os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            clear(path)
        except OSError:
            pass
        finally:
            os.close(lock)


def clear(path):
    """Removes a folder, its lock last: of a process that is ended meanwhile it stays a folder that can be locked, which
    the next one removes."""
    try:
        with os.scandir(path) as entries:
            inside = [entry.path for entry in entries if entry.name != LOCK]
    except OSError:
        inside = []
    for one in inside:
        shutil.rmtree(one, ignore_errors=True)
        try:
            os.unlink(one)
        except OSError:
            # A folder, which is gone.
            pass
    shutil.rmtree(path, ignore_errors=True)


def is_own(entry):
    """Whether an entry of a folder is a folder of this user."""
    try:
        return entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.getuid()
    except OSError:
        return False


# When the workers of this process have ended.
util.Finalize(None, sweep, exitpriority=-20)


def remove(path, process, lock):
    """Removes a folder, unless a forked process asks for it."""
    if os.getpid() == process:
        clear(path)
        if lock is not None:
            os.close(lock)


def absolute(path):
    """A path that means the same after a change of the working directory."""
    path = os.fsdecode(path)
    # Of no name nothing is made: it is refused where it is used.
    return os.path.abspath(path) if path else path


def place(path, of_index=False):
    """Where a model, or an index, is to be saved: a folder of the other kind is not replaced by it."""
    if path is None:
        return None
    path = absolute(path)
    try:
        with open(os.path.join(path, "config.json"), "rb") as file:
            kind = json.load(file)["kind"]
    except (OSError, ValueError, KeyError, TypeError):
        # Whatever else stands there is looked at when it is written to.
        return path
    if isinstance(kind, str) and (kind in INDEXES) != of_index:
        stands, given = ("a model", "an index") if of_index else ("an index", "a model")
        what = f"{stands} of kind {kind!r} stands there; {given} does not replace it: another folder is expected"
        raise ModelError(f"{path}: {what}")
    return path


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
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            file.extractall(folder.inside(name))
    except Exception as error:
        # What zipfile raises of damaged bytes is of many kinds; the disk may be full as well.
        what = error.strerror if isinstance(error, OSError) and error.strerror else f"the pickle is damaged: {error}"
        raise ModelError(f"{name} of a pickle: {what}") from error
    return folder
