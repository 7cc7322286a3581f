//! How far particles are from what they should be.

mod energy_distance;
mod stein_discrepancy;

pub use energy_distance::EnergyDistance;
pub use stein_discrepancy::{Statistic, squared_stein_discrepancy};
