"""The checks of scikit-learn, for every estimator."""

import warnings

import pytest

sklearn = pytest.importorskip("sklearn", "1.6")

from sklearn.utils.estimator_checks import check_estimator
from xc.sklearn import (
    AstraClassifier, DenseClassifier, LnsClassifier, MachClassifier, TextVectorizer, TreeClassifier, UniformClassifier,
)

EXPECTED_FAILURES = {}
"""Checks that an estimator does not pass, by its class and their name: the reason. Together at most six."""

SKIPPED = {
    "check_array_api_input": "scipy is asked for arrays of other libraries by an environment variable",
    "check_classifiers_multilabel_output_format_predict_proba": "there are probabilities only after a calibration",
}
"""Checks that scikit-learn leaves out by itself."""

ESTIMATORS = [
    # As they come: the checks have two or three hundred rows, for which the usual values are enough.
    (TreeClassifier(threads=1), 50),
    (MachClassifier(threads=1), 50),
    (DenseClassifier(threads=1), 50),
    (UniformClassifier(threads=1), 50),
    (LnsClassifier(threads=1), 50),
    (AstraClassifier(threads=1), 50),
    # Nearly all checks are of rows of numbers.
    (TextVectorizer(threads=1), 1),
]


@pytest.mark.parametrize("estimator, least", ESTIMATORS, ids=lambda of: type(of).__name__)
def test_checks(estimator, least):
    expected = EXPECTED_FAILURES.get(type(estimator), {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)
    by_status = {}
    for result in results:
        by_status.setdefault(result["status"], []).append(result["check_name"])
    wrong = [(r["check_name"], repr(r["exception"])[:300]) for r in results if r["status"] == "failed"]
    assert not wrong
    assert set(by_status.get("xfail", ())) == set(expected)
    assert set(by_status.get("skipped", ())) <= set(SKIPPED)
    assert len(by_status["passed"]) >= least
    print(f"{type(estimator).__name__}: {len(by_status['passed'])} passed, {len(expected)} expected failures")


def test_expected_failures_are_few():
    assert sum(map(len, EXPECTED_FAILURES.values())) <= 6
