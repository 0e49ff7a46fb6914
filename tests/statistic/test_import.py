import subprocess
import sys

CODE = """
import sys
from medassay.statistic import bootstrap_mean, wilson_interval
bootstrap_mean([0.0, 1.0, 1.0], seed=1)
import scipy.special
assert "numpy.f2py.crackfortran" not in sys.modules
import numpy
assert callable(numpy.f2py.run_main)
assert "numpy.f2py.crackfortran" in sys.modules
"""


def test_an_interval_loads_no_translator_of_fortran_and_numpy_still_has_it():
    ended = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
