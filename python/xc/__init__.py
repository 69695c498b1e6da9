"""Extreme multi-label classification: train, ask and judge models with up to a hundred million labels.

>>> import xc
>>> t = xc.train("tree", texts, labels)
>>> t.model.predict(["a new text"]).names()
"""

from ._change import convert, evaluate, inspect, load_index, merge
from ._embed import Embedder
from ._errors import DataError, DefectError, MemoryLimitError, ModelError, OptionError, XcError, XcWarning
from ._index import Index, SparseIndex, index
from ._model import Model, load
from ._native import __version__
from ._ranked import Ranked
from ._report import Evaluation, Report, Trained, TrainingReport, Tuned
from ._settings import settings
from ._train import Fitted, blend, calibrate, plan, train, tune

__all__ = [
    "DataError", "DefectError", "Embedder", "Evaluation", "Fitted", "Index", "MemoryLimitError", "Model", "ModelError", "OptionError",
    "Ranked", "Report", "SparseIndex", "Trained", "TrainingReport", "Tuned", "XcError", "XcWarning", "__version__", "blend", "calibrate",
    "convert", "evaluate", "index", "inspect", "load", "load_index", "merge", "plan", "settings", "train", "tune",
]
