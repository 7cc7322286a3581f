"""Log densities of regressions and their gradients, as a user of JAX writes them: one particle, vmap, grad, jit."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp

from contender import Contender

PRIOR_SD = 2.5


def contenders(inputs, given):
    raw, target = inputs["rows"].astype(np.float64), inputs["target"][:, 0].astype(np.float64)
    rows = (raw - raw.mean(axis=0)) / raw.std(axis=0)
    if given["model"] != "ordinal-regression":
        rows = np.concatenate([np.ones((len(rows), 1)), rows], axis=1)
    base = 0.0
    if given["target"] == "count":
        base = np.log(target.mean())
    if given["target"] == "time":
        base = np.log(target).mean()
    if given["target"] == "number":
        target = (target - target.mean()) / target.std()
    x, y, theta = (jnp.asarray(a, jnp.float32) for a in (rows, target, inputs["theta"]))
    log_likelihood, lines = MODELS[given["model"]]
    count = lines * x.shape[1]

    def log_density(theta):
        coefficients, extras = theta[:count], theta[count:]
        eta = x @ coefficients.reshape(lines, -1).T + base if lines > 1 else x @ coefficients + base
        fit, prior = log_likelihood(eta, y, extras)
        return jnp.sum(fit) + prior - 0.5 * jnp.sum(coefficients**2) / PRIOR_SD**2

    both = jax.jit(jax.vmap(jax.value_and_grad(log_density)))
    return {"JAX, jit": Contender(lambda: jax.block_until_ready(both(theta)), lambda: both(theta)[1])}


def exponential(log):
    """Of the logarithm of a number under Exponential(1)."""
    return log - jnp.exp(log)


def linear(eta, y, extras):
    z = (y - eta) * jnp.exp(-extras[0])
    return -0.5 * z**2 - extras[0], exponential(extras[0])


def student_t(eta, y, extras):
    degrees = jnp.exp(extras[1])
    z = (y - eta) * jnp.exp(-extras[0])
    constant = gammaln((degrees + 1) / 2) - gammaln(degrees / 2) - 0.5 * extras[1] - extras[0]
    prior = exponential(extras[0]) + 2 * extras[1] - 0.1 * degrees
    return constant - (degrees + 1) / 2 * jnp.log1p(z**2 / degrees), prior


def mixture(eta, y, extras):
    gap, log_noises, logits = extras[0], extras[1:3], jnp.stack([0.0, extras[3]])
    shifts = jnp.stack([0.0, jnp.exp(gap)])
    log_weights = logits - logsumexp(logits)
    z = (y[:, None] - eta[:, None] - shifts) * jnp.exp(-log_noises)
    fit = logsumexp(log_weights - log_noises - 0.5 * z**2, axis=1)
    prior = exponential(gap) - 0.5 * jnp.sum((log_noises - jnp.log(0.5)) ** 2) / 0.75**2
    return fit, prior + 2 * jnp.sum(log_weights)


def logistic(eta, y, extras):
    return y * eta - jnp.logaddexp(0.0, eta), 0.0


def multinomial(eta, y, extras):
    eta = jnp.concatenate([jnp.zeros((len(y), 1)), eta], axis=1)
    seen = jnp.take_along_axis(eta, y.astype(int)[:, None], axis=1)[:, 0]
    return seen - logsumexp(eta, axis=1), 0.0


def ordinal(eta, y, extras):
    cuts = extras[0] + jnp.concatenate([jnp.zeros(1), jnp.cumsum(jnp.exp(extras[1:]))])
    low, high = cuts[0] - eta, cuts[1] - eta
    middle = jax.nn.log_sigmoid(high) + jax.nn.log_sigmoid(-low) + jnp.log(-jnp.expm1(low - high))
    fit = jnp.where(y == 0, jax.nn.log_sigmoid(low), jnp.where(y == 1, middle, jax.nn.log_sigmoid(-high)))
    return fit, -0.5 * extras[0] ** 2 / 25 + jnp.sum(exponential(extras[1:]))


def poisson(eta, y, extras):
    return y * eta - jnp.exp(eta), 0.0


def negative_binomial(eta, y, extras):
    r, ratio = jnp.exp(-extras[0]), eta + extras[0]
    fit = gammaln(y + r) - gammaln(r) + y * ratio - (y + r) * jnp.logaddexp(0.0, ratio)
    return fit, exponential(extras[0])


def weibull(eta, y, extras):
    u = (jnp.log(y) - eta) * jnp.exp(-extras[0])
    return u - jnp.exp(u) - extras[0], exponential(extras[0])


MODELS = {
    "linear-regression": (linear, 1),
    "student-t-regression": (student_t, 1),
    "mixture-regression": (mixture, 1),
    "logistic-regression": (logistic, 1),
    "multinomial-regression": (multinomial, 2),
    "ordinal-regression": (ordinal, 1),
    "poisson-regression": (poisson, 1),
    "negative-binomial-regression": (negative_binomial, 1),
    "weibull-regression": (weibull, 1),
}
