"""Training, tuning, blending, calibrating: the options, defaults and bytes of the program."""

import logging
import os
import sys
import time
import warnings

import numpy as np

from . import _given, _native
from ._errors import OptionError, XcWarning
from ._folders import Folder, absolute, place
from ._model import TEMPORARY, Model, _opened, running
from ._report import Report, Trained, Tuned
from ._rows import labels, rows, unmasked
from ._settings import typed

log = logging.getLogger("xc")


class Watch:
    """Hands events to callbacks, the progress line, the log and warnings."""

    def __init__(self, progress, callbacks, what):
        self.callbacks = [callbacks] if callable(callbacks) else list(callbacks or ())
        self.progress = Progress(what) if wants_progress(progress) else None
        self.checkpoint, self.notes = None, []

    def __call__(self, event):
        kind = event["event"]
        if kind == "note":
            log.info("%s", event["line"])
            if event["line"] not in self.notes:
                self.notes.append(event["line"])
        elif kind == "warning":
            warnings.warn(event["line"], XcWarning, stacklevel=5)
        elif kind == "checkpoint":
            self.checkpoint = event["folder"]
        for callback in self.callbacks:
            callback(event)
        if self.progress is not None:
            self.progress(event)

    def close(self):
        if self.progress is not None:
            self.progress.close()


def wants_progress(progress):
    """Whether progress is shown: where it was not said, on a terminal and in a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules if progress is None else bool(progress)


class Progress:
    """A bar of tqdm where that is installed, else lines on stderr, five seconds apart."""

    def __init__(self, what):
        self.what, self.bar, self.done, self.total, self.last = what, None, 0, None, 0.0
        try:
            from tqdm.auto import tqdm
        except ImportError:
            tqdm = None
        self.tqdm = tqdm

    def __call__(self, event):
        kind = event["event"]
        if kind == "step":
            self.show(event["step"], event["steps"], f"{self.what} {event['what']} loss {event['loss']:.4g}")
        elif kind in ("level", "wide"):
            self.total = event["rankers"]
            self.show(0, self.total, f"{self.what} {kind} {event.get('level', '')}")
        elif kind == "rankers":
            self.show(event["done"], self.total, None)
        elif kind == "validation":
            figures = " ".join(f"{name} {100 * event[name]:.2f}" for name in ("P@1", "P@5") if name in event)
            self.line(f"{self.what}: step {event['step']}: loss {event['loss']:.4g} {figures}")

    def show(self, done, total, text):
        if self.tqdm is None:
            if time.monotonic() - self.last > 5:
                self.last = time.monotonic()
                self.line(f"{text or self.what}: {done} of {total}")
            return
        if self.bar is None:
            self.bar = self.tqdm(total=total, leave=False)
        if self.bar.total != total or done < self.bar.n:
            self.bar.reset(total=total)
        if text:
            self.bar.set_description(text.replace("  ", " "), refresh=False)
        self.bar.update(done - self.bar.n)

    def line(self, text):
        if self.bar is not None:
            self.bar.write(text, file=sys.stderr)
        else:
            print(text, file=sys.stderr)

    def close(self):
        if self.bar is not None:
            self.bar.close()


def followed(watch, checkpoint_is_kept, work):
    """Does work; an interruption says what is kept."""
    try:
        return work()
    except KeyboardInterrupt as error:
        if watch.checkpoint is not None and checkpoint_is_kept and not os.path.exists(watch.checkpoint):
            said = "stopped; there is no checkpoint: the work had only begun, or its result is saved already"
        elif watch.checkpoint is not None and checkpoint_is_kept:
            said = f"stopped; finished work is kept in {watch.checkpoint}: the same call with resume=True goes on"
        else:
            said = "stopped; nothing is kept (model= or checkpoint= names a folder for finished work)"
        raise KeyboardInterrupt(said) from error
    finally:
        watch.close()


def train_data(kind, X, Y, validation, label_names, label_features, instance_weights, label_costs, text_fields):
    """What is learned from, as the extension module takes it."""
    names = _given.names(label_names)
    truth = None if Y is None else labels(Y, "Y", names)
    if truth is None and kind != "skipgram":
        raise TypeError(f"Y: the labels of each row are expected for kind {kind!r}")
    if names is not None and truth is not None and truth.names is None and truth.n_labels > len(names):
        raise OptionError(f"label_names: {len(names)} names for {truth.n_labels} labels; one for each is expected")
    judged = None
    if validation is not None:
        if not isinstance(validation, (tuple, list)) or len(validation) != 2:
            raise TypeError(f"validation: a {type(validation).__name__}; a pair of X and Y is expected")
        X_v, Y_v = validation
        known = names if names is not None else truth.names
        judged = (rows(X_v, "X of validation", text_fields), labels(Y_v, "Y of validation", known, None, append=True))
    return {
        "x": rows(X, "X", text_fields),
        "y": truth,
        "label_names": names,
        "validation": judged,
        "label_features": None if label_features is None else rows(label_features, "label_features"),
        "instance_weights": numbers(instance_weights, "instance_weights"),
        "label_costs": numbers(label_costs, "label_costs"),
    }


def numbers(values, name, dtype=np.float32):
    """A list of floats."""
    if values is None:
        return None
    _given.refuse_unordered(values, name, "a list of numbers")
    try:
        array = np.asarray(unmasked(np.asanyarray(values), name), dtype=dtype)
    except (TypeError, ValueError):
        raise OptionError(f"{name}: a {type(values).__name__} of other things; a list of numbers is expected") from None
    if array.ndim != 1:
        raise OptionError(f"{name}: an array of {array.ndim} dimensions; a list of numbers is expected")
    return array.tolist()


def path_of(path):
    """A path as a string, or None."""
    return None if path is None else absolute(path)


def on_cpu(device):
    """Refuses what this build cannot do."""
    if device not in ("cpu", "auto"):
        raise OptionError(f"device {device!r}: training runs on the CPU; 'cpu' is expected")


def train(
    kind, X, Y=None, *, model=None, validation=None, label_names=None, label_features=None, instance_weights=None,
    label_costs=None, seed=0, threads=None, max_memory=None, resume=False, restart=False, progress=None, callbacks=(),
    checkpoint=None, refit=None, device="cpu", text_fields=None, options=None, **keywords,
):
    """Trains a model of a kind: "tree", "mach", "dense", "uniform", "lns", "astra" or "skipgram".

    ``X``: sparse rows (any object with ``indptr``, ``indices``, ``data``, ``shape``), a matrix of floats, a list of str, or
    a DataFrame with ``text_fields``. ``Y``: a sparse matrix, one or a DataFrame of 0 and 1, lists of ids or names, or one of
    them a row. ``model`` is the folder that the model is saved in; without one it lives in a temporary folder, until the
    last object of it is gone.
    ``validation``: ``(X, Y)`` that judge. Other keywords are the program's options, with ``_`` for ``-`` and ``.``
    (``tree_branching=32``, or ``options={"tree.branching": 32}``): :func:`xc.settings` lists them. Values that are not
    given follow from the data, as in the program.

    ``callbacks`` are called with a dict an event, at most ten times a second; an exception stops the training. Ctrl-C
    does, too; finished work is then in ``checkpoint`` (default: beside ``model``), and ``resume=True`` goes on from there.

    Returns an object with ``model`` and ``report``.
    """
    on_cpu(device)
    given = typed(kind, options, keywords)
    data = train_data(
        kind, X, Y, validation, label_names, label_features, instance_weights, label_costs, text_fields
    )
    owner = Folder() if model is None else None
    path = owner.inside(TEMPORARY) if model is None else place(model)
    vectors = owner.inside("vectors.txt") if owner is not None else None
    folders = {
        "model": path, "checkpoint": path_of(checkpoint), "vectors": vectors, "refit": place(refit),
        "resume": bool(resume), "restart": bool(restart),
    }
    watch = Watch(progress, callbacks, f"xc {kind}")
    run = running(seed, threads, max_memory, watch)
    is_kept = model is not None or checkpoint is not None
    report = followed(watch, is_kept, lambda: _native.train(kind, data, given, folders, run))
    report["notes"] = watch.notes
    return Trained(Model(_opened(report["model"]), owner=owner), report)


def plan(kind, X, Y=None, *, validation=None, label_names=None, label_features=None, instance_weights=None,
         label_costs=None, seed=0, threads=None, max_memory=None, text_fields=None, options=None, **keywords):
    """What :func:`train` would do, as ``xc train --explain`` says it: every option with its value and where that comes
    from, and the memory that is needed."""
    given = typed(kind, options, keywords)
    data = train_data(
        kind, X, Y, validation, label_names, label_features, instance_weights, label_costs, text_fields
    )
    folders = {"model": "model", "checkpoint": None, "vectors": None, "refit": None, "resume": False, "restart": False}
    watch = Watch(False, (), f"xc {kind}")
    said = _native.explain(kind, data, given, folders, running(seed, threads, max_memory, watch))
    return Report(said, notes=watch.notes)


def tune(
    kind, X, Y, *, budget=None, trials=None, metric="P@1", output=None, train_model=True, validation=None,
    label_names=None, label_features=None, instance_weights=None, label_costs=None, seed=0, threads=None,
    max_memory=None, resume=False, restart=False, progress=None, callbacks=(), text_fields=None, options=None,
    **keywords,
):
    """Searches for settings that predict held-out rows best, within ``budget`` ("20min", "1h30m") or a number of
    ``trials``, and trains a model with them. ``output`` is the folder of the search; ``resume=True`` goes on with one.
    Settings that are given hold for every trial.
    """
    given = typed(kind, options, keywords)
    data = train_data(
        kind, X, Y, validation, label_names, label_features, instance_weights, label_costs, text_fields
    )
    owner = Folder() if output is None else None
    path = owner.inside("search") if output is None else place(output)
    folders = {
        "model": path, "checkpoint": None, "vectors": None, "refit": None, "resume": bool(resume),
        "restart": bool(restart),
    }
    watch = Watch(progress, callbacks, f"xc tune {kind}")
    run = running(seed, threads, max_memory, watch)
    trials, metric = _given.count("trials", trials, 0), _given.text("metric", metric, "a metric such as 'P@1'")
    search = {
        "budget": None if budget is None else str(budget), "trials": trials, "metric": metric,
        "train_model": bool(train_model),
    }
    done = followed(watch, output is not None, lambda: _native.tune(kind, data, given, folders, run, search))
    done["found"]["notes"] = watch.notes
    model = Model(_opened(done["report"]["model"]), owner=owner) if done["report"] else None
    return Tuned(done["found"], model, done["report"])


def fitted_rows(X, Y, model, held_out, unknown_rows, text_fields):
    """Rows that models are fitted to."""
    return {
        "x": rows(X, "X", text_fields),
        "y": labels(Y, "Y", model.labels, model.n_labels, append=True),
        "held_out": bool(held_out),
        "unknown_rows": bool(unknown_rows),
    }


def blend(
    members, X, Y, *, held_out=False, refits=None, output=None, unknown_rows=False, seed=0, threads=None, max_memory=None,
    progress=None, callbacks=(), text_fields=None, **options,
):
    """Blends models into one, fitted to rows that none of them was trained on; ``held_out=True`` leaves out those that
    were. ``refits`` are the members trained again on all rows. ``xc.settings("blend")`` lists further options. Returns an
    object with ``model`` and ``report``."""
    given = typed("blend", None, options)
    members = list(members)
    if not members:
        raise OptionError("members: at least two models are expected")
    refits = None if refits is None else list(refits)
    for name, models in (("members", members), ("refits", refits or [])):
        for model in models:
            if not isinstance(model, Model):
                raise TypeError(f"{name}: a {type(model).__name__}; models are expected, as xc.load opens them")
            # They are opened again, from their folders.
            model._check_folder()
    data = fitted_rows(X, Y, members[0], held_out, unknown_rows, text_fields)
    owner = Folder() if output is None else None
    path = owner.inside(TEMPORARY) if output is None else place(output)
    watch = Watch(progress, callbacks, "xc blend")
    refits = None if refits is None else [model._native for model in refits]
    run = running(seed, threads, max_memory, watch)
    natives = [model._native for model in members]
    report = followed(watch, False, lambda: _native.blend(natives, refits, data, given, path, run))
    report["notes"] = watch.notes
    return Fitted(Model(_opened(path), owner=owner), report)


def calibrate(
    model, X, Y, *, held_out=False, output=None, unknown_rows=False, seed=0, threads=None, max_memory=None, progress=None,
    callbacks=(), text_fields=None, **options,
):
    """Fits probabilities and thresholds of a model's scores to rows that it was not trained on. The calibrated model is
    saved in ``output``, by default in the model's own folder, which ``model`` then answers from. Returns an object with
    ``model`` and ``report``. ``xc.settings("calibrate")`` lists further options."""
    given = typed("calibrate", None, options)
    model._check_folder()
    data = fitted_rows(X, Y, model, held_out, unknown_rows, text_fields)
    path = model.folder if output is None else place(output)
    watch = Watch(progress, callbacks, "xc calibrate")
    run = running(seed, threads, max_memory, watch)
    report = followed(watch, False, lambda: _native.calibrate(model._native, data, given, path, run))
    report["notes"] = watch.notes
    if output is not None:
        return Fitted(Model(_opened(path)), report)
    model._take(_opened(path, *model._options))
    return Fitted(model, report)


class Fitted:
    """A model that was fitted to held-out rows, and the report of the fit."""

    def __init__(self, model, report):
        self.model, self.report = model, Report(report)

    def __repr__(self):
        return f"<xc.Fitted {self.model!r}: {self.report['instances']} rows>"

    def _repr_svg_(self):
        return self.report._repr_svg_() if "charts" in self.report else None


