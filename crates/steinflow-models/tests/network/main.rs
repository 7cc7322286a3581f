//! The Bayesian neural network and its predictions against independent answers.

mod bad_input;
mod classes;
mod closed_form;
mod gradients;
mod invariance;
mod learning;
mod long_runs;
#[path = "../shared/metropolis.rs"]
mod metropolis;
mod naive;
mod noise;
mod prediction;
mod start;
mod support;
