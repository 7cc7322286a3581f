//! Every model against an independent answer: differences, quadrature, reference vectors, algebra.

mod catalogue;
mod csv_errors;
mod exact_answers;
mod reference;
mod reference_vectors;
mod regressions;
mod scores;
mod support;
