"""The compiled half of the package."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BuiltIn",
    "Checkpoint",
    "Interrupt",
    "SamplingError",
    "__version__",
    "bandwidth",
    "diagnose",
    "distances",
    "kernel_sums",
    "ksd_test",
    "methods",
    "models",
    "run",
    "squared_ksd",
    "standard_normal",
    "tune",
    "velocity",
    "write_parquet",
]

__version__: str

class SamplingError(RuntimeError): ...

@final
class BuiltIn:
    def __new__(
        cls,
        name: str,
        *,
        dim: int | None = None,
        data: str | PathLike[str] | None = None,
        target: str | None = None,
        prior_sd: float | None = None,
        noise_sd: float | None = None,
        condition: float | None = None,
    ) -> BuiltIn: ...
    @property
    def name(self) -> str: ...
    @property
    def dim(self) -> int: ...
    @property
    def data_rows(self) -> int: ...
    @property
    def parameter_names(self) -> list[str]: ...
    @property
    def window(self) -> list[tuple[float, float]] | None: ...
    def start(self, count: int, seed: int) -> NDArray[np.float64]: ...
    def exact_moments(self) -> tuple[list[float], NDArray[np.float64]] | None: ...
    def evaluate(self, theta: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]: ...

@final
class Checkpoint:
    @staticmethod
    def read(path: str | PathLike[str], dtype: str) -> Checkpoint: ...
    @property
    def config(self) -> str: ...
    @property
    def step(self) -> int: ...

@final
class Interrupt:
    def __new__(cls) -> Interrupt: ...
    def raise_flag(self) -> bool: ...

def methods() -> list[tuple[str, str, list[str], str, bool]]: ...
def models() -> list[tuple[str, str, str, str]]: ...
def run(
    target: Any,
    init: NDArray[Any],
    settings: Mapping[str, Any],
    *,
    interrupt: Interrupt | None = None,
    progress: Callable[[int, int, float], None] | None = None,
    callback: Callable[[dict[str, Any]], Any] | None = None,
    checkpoint: Checkpoint | None = None,
    save: Any = None,
) -> dict[str, Any]: ...
def tune(
    target: Any,
    init: NDArray[Any],
    settings: Mapping[str, Any],
    *,
    rungs: int,
    budget_steps: int | None = None,
    interrupt: Interrupt | None = None,
    progress: Callable[[int, int, float], None] | None = None,
) -> dict[str, Any]: ...
def standard_normal(count: int, dim: int, seed: int) -> NDArray[np.float64]: ...
def velocity(
    state: NDArray[Any],
    score: NDArray[Any],
    log_density: Sequence[float] | None,
    settings: Mapping[str, Any],
) -> NDArray[Any]: ...
def kernel_sums(
    particles: NDArray[Any], values: NDArray[Any], kernel: str, rule: str
) -> NDArray[Any]: ...
def squared_ksd(
    particles: NDArray[Any], score: NDArray[Any], kernel: str, rule: str, statistic: str
) -> float: ...
def diagnose(
    target: Any,
    state: NDArray[Any],
    settings: Mapping[str, Any],
    *,
    log_densities: Sequence[float],
    discrepancies: Sequence[float],
    draws: NDArray[Any] | None = None,
    search_modes: bool = True,
) -> dict[str, Any]: ...
def ksd_test(
    particles: NDArray[np.float64],
    score: NDArray[np.float64],
    kernel: str,
    rule: str,
    replicates: int,
    seed: int,
) -> tuple[float, float]: ...
def distances(
    x: NDArray[np.float64], y: NDArray[np.float64], directions: int, seed: int
) -> tuple[float, float, float]: ...
def bandwidth(particles: NDArray[Any], rule: str) -> float: ...
def write_parquet(
    path: str | PathLike[str], names: Sequence[str], columns: Mapping[str, NDArray[Any]]
) -> None: ...
