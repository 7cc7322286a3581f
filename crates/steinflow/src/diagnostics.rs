//! How far particles are from what they should be.

mod energy_distance;

pub use energy_distance::EnergyDistance;
