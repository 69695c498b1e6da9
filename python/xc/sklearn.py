"""Estimators of scikit-learn over the kinds of models, and the text pipeline as a transformer.

They go into ``Pipeline``, ``clone``, ``cross_val_score`` and ``GridSearchCV`` as any classifier does. ``X`` is a sparse or
dense matrix, or a list of texts; ``y`` is a sparse or dense matrix of 0 and 1, one class a row, or a list of label names a
row (scikit-learn's own splits of these are asked for by an object, ``cv=KFold(3)``, since a number looks at ``y``). Parameters
are those of :func:`xc.train`, all by keyword; None leaves the program's value.
"""

from ._estimators import (
    AstraClassifier,
    DenseClassifier,
    LnsClassifier,
    MachClassifier,
    TextVectorizer,
    TreeClassifier,
    UniformClassifier,
)

__all__ = [
    "AstraClassifier", "DenseClassifier", "LnsClassifier", "MachClassifier", "TextVectorizer", "TreeClassifier",
    "UniformClassifier",
]
