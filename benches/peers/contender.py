"""What every contender does."""

import functools

import jax


class Contender:
    """A function of no arguments, repeated."""

    def __init__(self, once, answer):
        self.once, self.answer = once, answer

    def warm_up(self, repeats):
        pass

    def repeat(self, repeats):
        for _ in range(repeats):
            self.once()


class Scan:
    """A JAX step that is compiled into a loop, as its users would: no Python between steps."""

    def __init__(self, step, start, answer):
        self.step, self.state, self.answer = step, start, answer
        self.compiled = {}

    def warm_up(self, repeats):
        if repeats not in self.compiled:
            step = self.step

            def loop(state):
                return jax.lax.scan(lambda carry, _: (step(carry), None), state, length=repeats)[0]

            self.compiled[repeats] = jax.jit(loop).lower(self.state).compile()

    def repeat(self, repeats):
        self.state = jax.block_until_ready(self.compiled[repeats](self.state))
