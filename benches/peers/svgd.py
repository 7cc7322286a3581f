"""SVGD steps on a logistic regression: BlackJAX, NumPyro, and a JAX step in GEMM form."""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
from blackjax.vi.svgd import median_heuristic
from numpyro.contrib.einstein import SVGD, RBFKernel

from contender import Scan


def contenders(inputs, given):
    rows, target = jnp.asarray(inputs["rows"]), jnp.asarray(inputs["target"][:, 0])
    theta, step, prior_sd = jnp.asarray(inputs["theta"]), given["step"], given["prior_sd"]

    def log_density(w):
        logits = rows @ w
        return jnp.sum(target * logits - jnp.logaddexp(0.0, logits)) - 0.5 * jnp.sum((w / prior_sd) ** 2)

    return {
        "BlackJAX": black_jax(log_density, theta, step),
        "NumPyro": num_pyro(rows, target, prior_sd, theta, step),
        "JAX, GEMM form, no median": gemm_form(rows, target, prior_sd, theta, step),
    }


def black_jax(log_density, theta, step):
    svgd = blackjax.svgd(jax.grad(log_density), optax.sgd(step))
    # The bandwidth of the first step, as ours has it; later ones are BlackJAX's own business.
    start = svgd.init(theta, median_heuristic({"length_scale": 1.0}, theta))
    return Scan(svgd.step, start, lambda: jax.jit(svgd.step)(start).particles)


def num_pyro(rows, target, prior_sd, theta, step):
    def model():
        w = numpyro.sample("w", dist.Normal(jnp.zeros(rows.shape[1]), prior_sd).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=rows @ w).to_event(1), obs=target)

    svgd = SVGD(model, numpyro.optim.SGD(step), RBFKernel(), num_stein_particles=theta.shape[0])
    state = svgd.init(jax.random.key(0))
    # Its bandwidth rule is another one, so that its particles cannot be compared with ours.
    return Scan(lambda state: svgd.update(state)[0], state, lambda: None)


def gemm_form(rows, target, prior_sd, theta, step):
    def bandwidth(theta):
        count = theta.shape[0]
        squares = np.sum((theta[:, None] - theta[None]) ** 2, axis=-1)
        return np.median(np.sqrt(squares[np.tril_indices(count, -1)])) ** 2 / np.log(count)

    h = float(bandwidth(np.asarray(theta)))

    def move(theta):
        score = (target - jax.nn.sigmoid(theta @ rows.T)) @ rows - theta / prior_sd**2
        centred = theta - theta.mean(axis=0)
        norms = jnp.sum(centred**2, axis=1)
        kernel = jnp.exp((2.0 * centred @ centred.T - norms[:, None] - norms[None]) / h)
        pull = kernel @ (score - (2 / h) * centred)
        push = (2 / h) * centred * jnp.sum(kernel, axis=1, keepdims=True)
        return theta + step * (pull + push) / theta.shape[0]

    return Scan(move, theta, lambda: jax.jit(move)(theta))
