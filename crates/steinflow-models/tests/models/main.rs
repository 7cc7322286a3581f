//! Every model against an independent answer: differences, quadrature, reference vectors, algebra.

mod catalogue;
mod csv_errors;
mod data_sets;
mod density;
mod exact_answers;
mod false_alarms;
mod families;
mod fits;
mod gibbs;
mod groups;
mod lags;
mod long_runs;
#[path = "../shared/metropolis.rs"]
mod metropolis;
mod mixtures;
mod processes;
mod reference;
mod reference_vectors;
mod regression_data;
mod regressions;
mod scores;
mod splits;
mod support;
mod survival;
mod tables;
mod verdicts;
