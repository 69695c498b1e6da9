"""What all tests share: the package as it is installed, and the program to compare it with."""

import pathlib
import signal

import pytest
import xc

import program

SOURCE = pathlib.Path(__file__).resolve().parent.parent

# Nothing here may be true of the source tree alone: `pytest`, and not `python -m pytest` in `python/`, runs these tests.
if SOURCE in pathlib.Path(xc.__file__).resolve().parents:
    raise pytest.UsageError(f"xc is imported from {SOURCE}; an installed wheel is expected")

# A shell that does not talk to a person has those in its background ignore Ctrl-C, and so do their children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter):
    """Says what was not tested, and why, without being asked."""
    reasons = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[reason] = reasons.get(reason, 0) + 1
    for reason, n in sorted(reasons.items()):
        terminalreporter.write_line(f"NOT TESTED: {n} tests: {reason.removeprefix('Skipped: ')}", yellow=True, bold=True)


@pytest.fixture(scope="session")
def run():
    """The program: a function of its arguments. Without one, whoever asks is skipped."""
    if program.PATH is None:
        pytest.skip("no program to compare with: XC_PROGRAM=/path/to/xc names one")
    return program.run


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """The same instances as arrays and in files."""
    return program.Data(tmp_path_factory.mktemp("data"))
