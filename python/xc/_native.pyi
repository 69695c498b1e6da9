"""The extension module: what the package itself calls. Its functions take arrays and dicts that were made for it."""

import os
from typing import Any, Callable, Mapping, Sequence, Union

import numpy as np
import numpy.typing as npt

__version__: str

_Arrays = tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32], npt.NDArray[np.float32]]
_Path = Union[str, os.PathLike[str]]
_Ints = Union[npt.NDArray[np.int32], npt.NDArray[np.int64]]

class Input:
    @staticmethod
    def sparse(
        name: str, indptr: _Ints, indices: _Ints, data: npt.NDArray[Union[np.float32, np.float64]], columns: int
    ) -> Input: ...
    @staticmethod
    def dense(name: str, values: npt.NDArray[np.float32]) -> Input: ...
    @staticmethod
    def converted(
        name: str, rows: int, columns: int, convert: Callable[[int, int], npt.NDArray[np.float32]]
    ) -> Input: ...
    @staticmethod
    def texts(name: str, texts: Sequence[str]) -> Input: ...
    @staticmethod
    def utf8(name: str, pieces: Sequence[tuple[_Ints, npt.NDArray[np.uint8]]]) -> Input: ...
    def __len__(self) -> int: ...
    @property
    def is_sparse(self) -> bool: ...
    @property
    def columns(self) -> int: ...

class Labels:
    @staticmethod
    def sparse(
        name: str, indptr: _Ints, indices: _Ints, data: Union[npt.NDArray[np.float32], None], columns: int
    ) -> Labels: ...
    @staticmethod
    def lists(
        name: str, object: Any, names: Union[Sequence[str], None], n_labels: Union[int, None], append: bool
    ) -> Labels: ...
    def __len__(self) -> int: ...
    @property
    def n_labels(self) -> int: ...
    @property
    def names(self) -> Union[list[str], None]: ...

class Model:
    @staticmethod
    def open(
        path: _Path,
        in_memory: bool = False,
        use_index: bool = True,
        post_processor: Union[str, None] = None,
        repetitions: Union[Sequence[int], None] = None,
        verify: bool = False,
    ) -> tuple[Model, list[str]]: ...
    def describe(self) -> dict[str, Any]: ...
    def was_replaced(self) -> bool: ...
    def texts_taken(self) -> list[tuple[int, int, int]]: ...
    def texts_cut(self, before: Sequence[tuple[int, int, int]]) -> Union[str, None]: ...
    def label_names(self) -> Union[list[str], None]: ...
    def label_ids(self, labels: Sequence[Union[int, str]]) -> list[int]: ...
    def predict(
        self,
        rows: Input,
        top_k: int = 5,
        min_score: Union[float, None] = None,
        candidates: Any = None,
        exclude: Any = None,
        raw_scores: bool = False,
        threshold: Union[str, None] = None,
        threads: Union[int, None] = None,
        search: Union[_Settings, None] = None,
    ) -> tuple[_Arrays, Union[npt.NDArray[np.int64], None]]: ...
    def predict_one(
        self,
        query: Any,
        top_k: int = 5,
        min_score: Union[float, None] = None,
        candidates: Any = None,
        exclude: Any = None,
        raw_scores: bool = False,
        threshold: Union[str, None] = None,
        search: Union[_Settings, None] = None,
    ) -> list[tuple[Union[str, int], float]]: ...
    def explain(self, rows: Input, label: int, n_features: int, raw_scores: bool) -> dict[str, Any]: ...
    def save(self, path: _Path) -> None: ...

class Index:
    @staticmethod
    def build(
        vectors: Input,
        metric: str,
        fit_queries: Union[Input, None],
        options: Sequence[tuple[str, str]],
        with_: Mapping[str, Any],
    ) -> tuple[Index, dict[str, Any]]: ...
    @staticmethod
    def open(path: _Path, in_memory: bool = False) -> Index: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def metric(self) -> str: ...
    def search(
        self,
        queries: Input,
        top_k: int,
        filter: Union[npt.NDArray[np.int64], None] = None,
        search_width: Union[float, None] = None,
        cells: Union[int, None] = None,
        exact: bool = False,
        threads: Union[int, None] = None,
    ) -> _Arrays: ...
    def insert(self, vectors: Input, with_: Mapping[str, Any]) -> int: ...
    def delete(self, rows: Sequence[int]) -> int: ...
    def refresh(
        self,
        vectors: Input,
        fit_queries: Union[Input, None],
        policy: Union[str, None],
        with_: Mapping[str, Any],
    ) -> dict[str, Any]: ...
    def save(self, path: _Path) -> None: ...

class SparseIndex:
    @staticmethod
    def build(rows: Input, metric: str, with_: Mapping[str, Any]) -> tuple[SparseIndex, dict[str, Any]]: ...
    @staticmethod
    def open(path: _Path, in_memory: bool = False) -> SparseIndex: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def metric(self) -> str: ...
    def search(
        self,
        queries: Input,
        top_k: int,
        filter: Union[npt.NDArray[np.int64], None] = None,
        threads: Union[int, None] = None,
    ) -> _Arrays: ...
    def save(self, path: _Path) -> None: ...

class Embedder:
    @staticmethod
    def open(
        path: _Path, options: _Settings
    ) -> tuple[Embedder, list[str]]: ...
    @property
    def width(self) -> int: ...
    def embed(
        self, texts: Input, threads: Union[int, None] = None
    ) -> tuple[npt.NDArray[np.float32], Union[str, None]]: ...

class Vectorizer:
    @staticmethod
    def fit(
        texts: Input, options: Sequence[tuple[str, str]], with_: Mapping[str, Any]
    ) -> tuple[Vectorizer, tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]]: ...
    @staticmethod
    def open(path: _Path) -> Vectorizer: ...
    def save(self, path: _Path) -> None: ...
    @property
    def n_features(self) -> int: ...
    def terms(self) -> list[Union[str, None]]: ...
    def transform(
        self, texts: Input, threads: Union[int, None] = None
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]: ...

_Settings = Sequence[tuple[str, str]]
_Given = Mapping[str, Any]

def kinds() -> list[str]: ...
def settings(kind: str) -> list[dict[str, Any]]: ...
def train(kind: str, data: _Given, options: _Settings, folders: _Given, with_: _Given) -> dict[str, Any]: ...
def explain(kind: str, data: _Given, options: _Settings, folders: _Given, with_: _Given) -> dict[str, Any]: ...
def tune(
    kind: str, data: _Given, options: _Settings, folders: _Given, with_: _Given, search: _Given
) -> dict[str, Any]: ...
def blend(
    members: Sequence[Model],
    refits: Union[Sequence[Model], None],
    rows: _Given,
    options: Sequence[tuple[str, str]],
    output: _Path,
    with_: _Given,
) -> dict[str, Any]: ...
def calibrate(
    model: Model,
    rows: _Given,
    options: Sequence[tuple[str, str]],
    output: _Path,
    with_: _Given,
) -> dict[str, Any]: ...
def build_index(
    model: Model,
    queries: Union[Input, None],
    labels: Union[Labels, None],
    options: Sequence[tuple[str, str]],
    max_loss: Union[float, None],
    output: Union[_Path, None],
    with_: _Given,
) -> dict[str, Any]: ...
def evaluate(
    truth: Labels,
    answers: _Arrays,
    compare: Union[_Arrays, None],
    propensity_from: Union[Labels, None],
    wanted: _Given,
) -> dict[str, Any]: ...
def picture(title: str, x: str, charts: Sequence[tuple[str, Sequence[tuple[str, Sequence[tuple[float, float]]]]]]) -> str: ...
def convert(
    model: Model,
    options: _Settings,
    keep_labels: Union[Sequence[int], None],
    label_names: Union[Sequence[str], None],
    output: _Path,
) -> list[str]: ...
def import_model(
    format: str,
    source: _Path,
    options: _Settings,
    n_labels: Union[int, None],
    label_names: Union[Sequence[str], None],
    output: _Path,
) -> None: ...
def merge(
    parts: Sequence[_Path],
    output: _Path,
    n_labels: Union[int, None],
    label_names: Union[Sequence[str], None],
    with_: _Given,
) -> dict[str, Any]: ...
def inspect(path: _Path, verify: bool = False) -> dict[str, Any]: ...
