"""The compiled half of the package."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BuiltIn",
    "Checkpoint",
    "Config",
    "Interrupt",
    "LawBroken",
    "SamplingError",
    "State",
    "Stepper",
    "__version__",
    "bandwidth",
    "check_dynamics",
    "command",
    "diagnose",
    "diagnose_draws",
    "distances",
    "kernel_sums",
    "ksd_test",
    "methods",
    "minibatch",
    "model_options",
    "models",
    "report_page",
    "run",
    "settings",
    "squared_ksd",
    "velocity",
    "write_parquet",
]

__version__: str

class SamplingError(RuntimeError): ...
class LawBroken(ValueError): ...

@final
class BuiltIn:
    def __new__(cls, name: str, **options: Any) -> BuiltIn: ...
    @property
    def name(self) -> str: ...
    @property
    def dim(self) -> int: ...
    @property
    def data_rows(self) -> int: ...
    @property
    def parameter_names(self) -> list[str]: ...
    @property
    def coordinate_names(self) -> list[str]: ...
    @property
    def notes(self) -> list[str]: ...
    def show(self, theta: NDArray[np.float64]) -> NDArray[np.float64] | None: ...
    @property
    def window(self) -> list[tuple[float, float]] | None: ...
    def start(self, count: int, seed: int) -> NDArray[np.float64]: ...
    def exact_moments(self) -> tuple[list[float], NDArray[np.float64]] | None: ...
    def observed(self) -> dict[str, NDArray[np.float64]]: ...
    def log_likelihood(self, shown: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]: ...
    def predict(self, shown: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]: ...
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
class Config:
    @staticmethod
    def resolve(
        settings: Mapping[str, Any],
        target: Any,
        *,
        init: NDArray[Any] | None = None,
        centre: Sequence[float] | None = None,
        sd: float = 1.0,
        posterior: bool = False,
        dynamics: Any = None,
        field: Any = None,
        window: Sequence[tuple[float, float]] | None = None,
    ) -> Config: ...
    def longer(self, more_steps: int, budget: float | None = None) -> Config: ...
    @property
    def toml(self) -> str: ...
    @property
    def identity(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def particles(self) -> int: ...
    @property
    def is_deterministic(self) -> bool: ...

@final
class Interrupt:
    def __new__(cls) -> Interrupt: ...
    def raise_flag(self) -> bool: ...

@final
class State:
    def __new__(cls, state: NDArray[Any], dim: int, seed: int, rest: tuple[Any, ...]) -> State: ...
    @property
    def seed(self) -> int: ...
    @property
    def state(self) -> NDArray[Any]: ...
    def block(self, index: int) -> NDArray[Any]: ...
    @property
    def step(self) -> int: ...

@final
class Stepper:
    def __new__(cls, config: Config) -> Stepper: ...
    def blocks(self, dim: int) -> list[str]: ...
    def init(self, theta: NDArray[Any], seed: int) -> State: ...
    def step(self, state: State, answer: Any) -> State: ...
    def finish(self, state: State, answer: Any) -> State: ...
    def velocity(self, state: State, answer: Any) -> NDArray[Any]: ...

def methods() -> list[tuple[str, str, list[str], str, bool]]: ...
def settings() -> list[tuple[str, str, str]]: ...
def model_options() -> list[tuple[str, str, str]]: ...
def models() -> list[tuple[str, str, str, str]]: ...
def run(
    target: Any,
    config: Config,
    *,
    init: NDArray[Any] | None = None,
    interrupt: Interrupt | None = None,
    progress: Callable[..., None] | None = None,
    callback: Callable[[dict[str, Any]], Any] | None = None,
    checkpoint: Checkpoint | None = None,
    save: Any = None,
) -> dict[str, Any]: ...
def minibatch(seed: int, number: int, rows: int, size: int) -> tuple[NDArray[Any], float]: ...
def velocity(
    state: NDArray[Any],
    score: NDArray[Any],
    log_density: Sequence[float] | None,
    config: Config,
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
    config: Config,
    *,
    log_densities: Sequence[float],
    discrepancies: Sequence[float],
    gradients: int = 0,
    draws: NDArray[Any] | None = None,
    stop_rule: Mapping[str, Any] | None = None,
    warm_up: Mapping[str, Any] | None = None,
    search_modes: bool = True,
) -> dict[str, Any]: ...
def diagnose_draws(
    target: Any,
    draws: NDArray[Any],
    *,
    chains: int | None = None,
    resting: bool = False,
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
def check_dynamics(dynamics: Any, states: NDArray[np.float64], dim: int) -> None: ...
def command(arguments: Sequence[str]) -> int: ...
def report_page(
    shown: Mapping[str, Any],
    model: tuple[BuiltIn, Config, NDArray[Any], int] | None = None,
) -> str: ...
def bandwidth(particles: NDArray[Any], rule: str) -> float: ...
def write_parquet(
    path: str | PathLike[str], names: Sequence[str], columns: Mapping[str, NDArray[Any]]
) -> None: ...
