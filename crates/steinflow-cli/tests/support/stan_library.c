/* A library with BridgeStan's C interface, as BridgeStan 2 would make one of this program:

     data { int N; vector[N] y; }
     parameters { real mu; real<lower=0> sigma; simplex[2] p; }
     transformed parameters { real twice = 2 * mu; }
     model { y ~ normal(mu, 1); sigma ~ exponential(1); p ~ dirichlet([2, 3]'); }

   so that mu is N(mean of y, 1/N), sigma exponential, and p[1] Beta(2, 3). Constants of the build: MAJOR, the
   version that it claims; INFO, what it says about threads; and REFUSE, to refuse every place. */

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef MAJOR
#define MAJOR 2
#endif
#ifndef INFO
#define INFO "STAN_THREADS=true"
#endif

const int bs_major_version = MAJOR;
const int bs_minor_version = 7;
const int bs_patch_version = 0;

typedef struct { double n, sum; } bs_model;

static void say(char **error, const char *text) {
    if (error) {
        *error = malloc(strlen(text) + 1);
        strcpy(*error, text);
    }
}

void bs_free_error_msg(char *message) { free(message); }

bs_model *bs_model_construct(const char *data, unsigned int seed, char **error) {
    (void)seed;
    if (!data || !*data || *data != '{') {
        say(error, !data || !*data ? "variable does not exist; processing stage=data initialization; "
                                     "variable name=y; base type=double"
                                   : "Error in JSON parsing at offset 0: Invalid value.");
        return NULL;
    }
    const char *place = strstr(data, "\"y\"");
    place = place ? strchr(place, '[') : NULL;
    if (!place) {
        say(error, "variable does not exist; processing stage=data initialization; variable name=y; base type=double");
        return NULL;
    }
    bs_model *model = calloc(1, sizeof *model);
    for (char *end; place++, *place && *place != ']'; place = end) {
        model->sum += strtod(place, &end);
        model->n += 1;
        end += strspn(end, " \n\t");
        if (*end != ',') break;
    }
    return model;
}

void bs_model_destruct(bs_model *model) { free(model); }
const char *bs_name(const bs_model *model) { (void)model; return "fixture"; }
const char *bs_model_info(const bs_model *model) { (void)model; return INFO; }

const char *bs_param_names(const bs_model *model, bool tp, bool gq) {
    (void)model; (void)gq;
    return tp ? "mu,sigma,p.1,p.2,twice" : "mu,sigma,p.1,p.2";
}
const char *bs_param_unc_names(const bs_model *model) { (void)model; return "mu,sigma,p.1"; }
int bs_param_num(const bs_model *model, bool tp, bool gq) { (void)model; (void)gq; return tp ? 5 : 4; }
int bs_param_unc_num(const bs_model *model) { (void)model; return 3; }

int bs_param_constrain(const bs_model *model, bool tp, bool gq, const double *theta, double *out, void *rng,
                       char **error) {
    (void)model; (void)gq; (void)rng; (void)error;
    out[0] = theta[0];
    out[1] = exp(theta[1]);
    out[2] = 1 / (1 + exp(-theta[2]));
    out[3] = 1 - out[2];
    if (tp) out[4] = 2 * theta[0];
    return 0;
}

int bs_param_unconstrain(const bs_model *model, const double *shown, double *theta, char **error) {
    (void)model;
    if (!(shown[1] > 0)) {
        say(error, "Variable is less than 0, but must be greater than or equal to 0");
        return -1;
    }
    theta[0] = shown[0];
    theta[1] = log(shown[1]);
    theta[2] = log(shown[2] / shown[3]);
    return 0;
}

int bs_log_density_gradient(const bs_model *model, bool propto, bool jacobian, const double *theta, double *value,
                            double *score, char **error) {
    double sigma = exp(theta[1]), p = 1 / (1 + exp(-theta[2]));
    if (!(sigma < 1e300)) {
        say(error, "exponential_lpdf: Random variable is inf, but must be nonnegative finite!");
        return -1;
    }
#ifdef REFUSE
    say(error, "Rejecting initial value: always");
    return -1;
#endif
    /* Anything else than what samplers need is a mistake of the caller. */
    if (!propto || !jacobian) abort();
    *value = model->sum * theta[0] - model->n * theta[0] * theta[0] / 2 - sigma + theta[1]
             + 2 * log(p) + 3 * log1p(-p);
    score[0] = model->sum - model->n * theta[0];
    score[1] = 1 - sigma;
    score[2] = 2 - 5 * p;
    return 0;
}
