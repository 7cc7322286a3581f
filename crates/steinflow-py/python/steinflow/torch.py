"""The posterior over the weights of a network in PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from steinflow import _ensemble
from steinflow.adapters.torch import import_torch


@_ensemble.documented
class Ensemble(_ensemble.Ensemble):
    """Particles that are the parameters of a module, on the CPU.

    Parameters
    ----------
    module
        An `nn.Module`, whose parameters are drawn afresh for every particle by `reset_parameters` where
        its parts have it; or a list of modules, one for each particle. Buffers are shared.
    {parameters}
    """

    _backend = "torch"

    def __init__(
        self,
        module: Any,
        likelihood: Any,
        *,
        particles: int = 20,
        seed: int | None = None,
        **settings: Any,
    ) -> None:
        self._torch = torch = import_torch()
        modules = (
            list(module) if isinstance(module, Sequence) else fresh(torch, module, particles, seed)
        )
        self.module = modules[0]
        """The module that weights are put into."""
        weights = stacked(torch, [dict(one.named_parameters()) for one in modules])
        super().__init__(weights, likelihood, seed=seed, **settings)

    def _arrays(self, x: Any, y: Any) -> tuple[Any, Any]:
        return self._torch.as_tensor(x), self._torch.as_tensor(y)

    def _output(self, weights: Any, x: Any) -> Any:
        return self._torch.func.functional_call(self.module, weights, (x,))

    def _forward(self, weights: Any, x: Any) -> Any:
        torch = self._torch
        with torch.no_grad():
            return torch.func.vmap(self._output, (0, None))(weights, torch.as_tensor(x))

    def _log_probability(self, outputs: Any, targets: Any) -> Any:
        return -self._torch.nn.functional.cross_entropy(outputs, targets, reduction="none")

    def _squared_norm(self, weights: Any) -> Any:
        return sum((leaf**2).sum() for leaf in weights.values())

    def state_dicts(self) -> list[dict[str, Any]]:
        """The weights of every draw, as `module.load_state_dict` takes them."""
        buffers = {name: buffer.clone() for name, buffer in self.module.named_buffers()}
        return [
            {**{name: leaf[index].clone() for name, leaf in stack.items()}, **buffers}
            for stack in self.draws
            for index in range(len(next(iter(stack.values()))))
        ]

    def load_state_dicts(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Puts particles at these weights, with momenta drawn afresh; draws that were kept are gone."""
        names = [name for name, _ in self.module.named_parameters()]
        weights = stacked(self._torch, [{name: one[name] for name in names} for one in states])
        self.state = self._sampler.init(weights, seed=self.state.seed)
        self._kept.clear()


def stacked(torch: Any, weights: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Weights by name, with a leading axis of particles."""
    names = [list(one) for one in weights]
    if any(other != names[0] for other in names):
        raise ValueError(
            f"the modules have different parameters, {names[0]} and others: give modules of one kind"
        )
    return {name: torch.stack([one[name].detach() for one in weights]) for name in weights[0]}


def fresh(torch: Any, module: Any, count: int, seed: int | None) -> list[Any]:
    """Copies of a module, with parameters of their own."""
    reset: Callable[[Any], None] = lambda part: getattr(part, "reset_parameters", bool)()  # noqa: E731
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(torch.seed() if seed is None else seed)
        return [copy.deepcopy(module).apply(reset) for _ in range(count)]
