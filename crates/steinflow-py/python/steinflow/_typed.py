"""What `sample` and `model` take by keyword: written by `python -m steinflow._settings`."""

from collections.abc import Sequence
from os import PathLike
from typing import TypedDict


class RunSettings(TypedDict, total=False):
    friction: float | None
    sigma: float | None
    mu: float | None
    gamma: float | None
    sigma_u: float | None
    metric_scale: float | None
    metric_offset: float | None
    metric_sign: str | None
    regulariser: float | None
    solve_memory: int | None
    time_unit: str | None
    curl: str | None
    interactions: int | None
    noise_strength: float | None
    adapt: int | None
    cells: int | None
    smoothing: float | None
    method: str | None
    particles: int | None
    effective: int | None
    gradients: int | None
    warm_up: bool | None
    kernel: str | None
    kernel_on: str | None
    bandwidth: float | str | Sequence[float] | None
    affine: float | None
    steps: int | None
    step_size: float | str | None
    eta: float | None
    alpha: float | None
    integrator: str | None
    phases: Sequence[tuple[str | None, int, float | str | None]] | None
    precondition: str | None
    precondition_hold: int | None
    resample_every: int | None
    resample_time: float | None
    accept: bool | None
    collect_from: int | None
    collect_every: int | None
    points: bool | None
    batch_size: int | None
    seed: int | None
    precision: str | None
    device: str | None
    start_mean: float | Sequence[float] | None
    start_sd: float | None
    non_finite: str | None
    check_gradient: bool | None
    budget: float | None
    tolerance: float | None
    trace_every: int | None


class ModelOptions(TypedDict, total=False):
    dim: int | None
    condition: float | None
    density: str | None
    support: str | Sequence[str] | None
    program: str | PathLike[str] | None
    data: str | PathLike[str] | None
    data_dir: str | PathLike[str] | None
    target: str | None
    formula: str | None
    features: str | Sequence[str] | None
    drop: str | Sequence[str] | None
    categorical: str | Sequence[str] | None
    order: str | Sequence[str] | None
    missing: str | None
    lags: int | None
    components: int | None
    prior_sd: float | None
    prior: str | None
    noise_sd: float | None
    noise_column: str | None
    groups: str | Sequence[str] | None
    slopes: str | Sequence[str] | None
    offset: str | None
    event: str | None
    hidden: Sequence[int] | None
    activation: str | None
    residual: bool | None
    noise: str | None
    noise_precision: float | None
    noise_rate: float | None
    weight_precision: float | None
    test_fraction: float | None
    split_seed: int | None
    split: int | None
    split_file: str | PathLike[str] | None
