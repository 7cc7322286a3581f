//! The dynamics that have a name: a line each here, all else in their own files.

use super::{Parameter, Parameters};
use crate::Real;
use crate::dynamics::metric::EnergyMetric;
use crate::dynamics::{
    Dynamics, Langevin, Riemannian, Sghmc, Sgnht, Sgrhmc, Structure, ThirdOrder,
};

/// What the catalogue says of a dynamics; it stands beside (A, C) in the dynamics' file.
pub(crate) struct About {
    /// The name of its diffusion.
    pub name: &'static str,
    /// f, in the paper's symbols.
    pub drift: &'static str,
    /// Where it comes from.
    pub reference: &'static str,
    /// The name and source of its de-randomised form, where that has its own.
    pub derandomised: Option<(&'static str, &'static str)>,
    /// The parameters it has.
    pub parameters: &'static [Parameter],
}

/// A dynamics of the catalogue.
pub(crate) trait Catalogued: Sized {
    const ABOUT: About;

    /// (A, C) with these parameters.
    fn with(parameters: &Parameters) -> Self;
}

macro_rules! catalogue {
    ($($(#[$doc:meta])* $kind:ident: $dynamics:ty,)*) => {
        /// Which dynamics (A, C) a method has.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum DynamicsKind {
            $($(#[$doc])* $kind,)*
        }

        impl DynamicsKind {
            /// All of them, in the order they are listed.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            pub(super) fn about(self) -> About {
                match self { $(Self::$kind => <$dynamics>::ABOUT,)* }
            }

            /// (A, C) with these parameters.
            pub fn build<T: Real>(self, parameters: &Parameters) -> Box<dyn Dynamics<T>> {
                match self { $(Self::$kind => Box::new(<$dynamics>::with(parameters)),)* }
            }
        }
    };
}

catalogue! {
    /// A = I.
    Langevin: Langevin,
    /// A = G⁻¹(θ).
    Riemannian: Riemannian<EnergyMetric>,
    /// Momentum with friction.
    Sghmc: Sghmc,
    /// Momentum in a metric.
    Sgrhmc: Sgrhmc<EnergyMetric>,
    /// Momentum with a thermostat.
    Sgnht: Sgnht,
    /// Momentum of momentum.
    ThirdOrder: ThirdOrder,
}

impl DynamicsKind {
    /// The name of its diffusion.
    pub fn name(self) -> &'static str {
        self.about().name
    }

    /// f, in the paper's symbols.
    pub fn drift(self) -> &'static str {
        self.about().drift
    }

    /// The parameters it has.
    pub fn parameters(self) -> &'static [Parameter] {
        self.about().parameters
    }

    /// The blocks of A and C, of which only the numbers depend on parameters and dimension.
    pub(super) fn structure(self) -> Structure {
        self.build::<f64>(&Parameters::default()).structure(1)
    }

    /// Whether there are auxiliary variables, and so something to split and to resample.
    pub fn has_momentum(self) -> bool {
        self.structure().blocks() > 1
    }
}
