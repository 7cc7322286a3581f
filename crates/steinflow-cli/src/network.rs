//! What is particular to a run on a neural network: predictions, their scores, and what is kept so
//! that others can be made later.

mod predictions;
mod record;
mod report;
mod theta;

pub use predictions::{LEVELS, Predictions};
pub use record::Record;
pub use report::{Report, print};
pub use theta::{Theta, thinned};
