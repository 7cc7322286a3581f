"""SGHMC-Stein with symmetric splitting on a neural network, by hand in JAX."""

import jax
import jax.numpy as jnp
import numpy as np

from contender import Scan

UNITS = 50


def contenders(inputs, given):
    rows, targets = jnp.asarray(inputs["rows"]), jnp.asarray(inputs["targets"][:, 0])
    state, batch = jnp.asarray(inputs["state"]), given["batch"]
    friction, dt = given["friction"], given["step"]
    count, dim = state.shape[0], state.shape[1] // 2
    features = rows.shape[1]
    below = np.tril_indices(count, -1)

    def log_density(theta, x, y, scale):
        first = theta[: UNITS * features].reshape(UNITS, features)
        at = UNITS * features
        hidden = jax.nn.relu(x @ first.T + theta[at : at + UNITS])
        output = hidden @ theta[at + UNITS : at + 2 * UNITS] + theta[at + 2 * UNITS]
        weights, log_gamma, log_lambda = theta[:-2], theta[-2], theta[-1]
        fit = 0.5 * len(y) * log_gamma - 0.5 * jnp.exp(log_gamma) * jnp.sum((y - output) ** 2)
        prior = 0.5 * len(weights) * log_lambda - 0.5 * jnp.exp(log_lambda) * jnp.sum(weights**2)
        # Gamma(1, 0.1) of γ and λ, with the Jacobians of their logarithms.
        gammas = log_gamma - 0.1 * jnp.exp(log_gamma) + log_lambda - 0.1 * jnp.exp(log_lambda)
        return scale * fit + prior + gammas

    score = jax.vmap(jax.grad(log_density), in_axes=(0, None, None, None))

    def kernel(state):
        centred = state - state.mean(axis=0)
        norms = jnp.sum(centred**2, axis=1)
        squares = jnp.maximum(norms[:, None] + norms[None] - 2.0 * centred @ centred.T, 0.0)
        h = jnp.median(jnp.sqrt(squares[below])) ** 2 / jnp.log(count)
        return jnp.exp(-squares / h), 2.0 / h

    def repulsion(k, rate, x):
        return rate * (x * jnp.sum(k, axis=1, keepdims=True) - k @ x)

    def move_momentum(theta, r, scores, dt):
        k, rate = kernel(jnp.concatenate([theta, r], axis=1))
        drift = k @ (scores - friction * r)
        return r + dt / count * (drift + repulsion(k, rate, theta + friction * r))

    def move_position(theta, r, dt):
        k, rate = kernel(jnp.concatenate([theta, r], axis=1))
        return theta + dt / count * (k @ r - repulsion(k, rate, r))

    def step(theta, r, scores, x, y, scale):
        r = move_momentum(theta, r, scores, 0.5 * dt)
        theta = move_position(theta, r, dt)
        scores = score(theta, x, y, scale)
        return theta, move_momentum(theta, r, scores, 0.5 * dt), scores

    def answer():
        theta, r = state[:, :dim], state[:, dim:]
        x, y = rows[:batch], targets[:batch]
        theta, r, _ = jax.jit(step, static_argnums=5)(theta, r, score(theta, x, y, 1.0), x, y, 1.0)
        return jnp.concatenate([theta, r], axis=1)

    def with_minibatch(carry):
        theta, r, scores, order, at = carry
        # Batches of a fixed shuffle: cheaper than drawing afresh, as ours does.
        own = jax.lax.dynamic_slice(order, (at,), (batch,))
        theta, r, scores = step(theta, r, scores, rows[own], targets[own], len(targets) / batch)
        return theta, r, scores, order, (at + batch) % (len(order) - batch)

    order = jnp.asarray(np.tile(np.random.default_rng(0).permutation(len(targets)), 10))
    theta, r = state[:, :dim], state[:, dim:]
    start = (theta, r, score(theta, rows[:batch], targets[:batch], 1.0), order, jnp.asarray(0))
    return {"JAX, jit and scan": Scan(with_minibatch, start, answer)}
