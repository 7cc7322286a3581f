//! The fields that have a name.

use super::{Parameter, Parameters};
use crate::field::Estimator;

/// How a method moves its particles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// Drift and noise; independent chains.
    Diffusion,
    /// De-randomised.
    Stein,
    /// De-randomised, repulsion by A alone.
    SteinStarred,
    /// Blob estimate of ∇log ρ.
    Blob,
    /// Blob, repulsion by A alone.
    BlobStarred,
    /// Kernel density estimate of ∇log ρ.
    Gfsd,
    /// ∇log ρ from smoothed functions: K⁻¹B.
    Gfsf,
    /// Stein gradient estimator: (K + ηI)⁻¹B.
    SteinGradient,
    /// Stein with the correlated noise that makes it exact.
    Product,
    /// Stein with independent noise: biased.
    Spos,
    /// SPOS with correlated and independent noise: exact.
    SposExact,
    /// Drift alone: modes, not samples.
    Drift,
    /// LAWGD: the inverse generator on a grid; one or two dimensions.
    Lawgd,
}

/// What the catalogue says of a field.
struct About {
    /// What it adds to the name of a dynamics.
    name: &'static str,
    title: &'static str,
    formula: &'static str,
    reference: &'static str,
    parameters: &'static [Parameter],
    has_kernel: bool,
    is_random: bool,
}

const PAPER: &str = "Shen, Heinonen & Kaski 2021";

impl FieldKind {
    /// All of them, in the order they are listed.
    pub const ALL: &[Self] = &[
        Self::Diffusion,
        Self::Stein,
        Self::SteinStarred,
        Self::Blob,
        Self::BlobStarred,
        Self::Gfsd,
        Self::Gfsf,
        Self::SteinGradient,
        Self::Product,
        Self::Spos,
        Self::SposExact,
        Self::Drift,
        Self::Lawgd,
    ];

    fn about(self) -> About {
        use Parameter::{
            Adapt, Cells, Curl, Interactions, NoiseStrength, Regulariser, Smoothing, SolveMemory,
            TimeUnit,
        };
        match self {
            Self::Diffusion => About {
                name: "diffusion",
                title: "Diffusions: independent chains with noise",
                formula: "dz = f dt + √(2A) dW",
                reference: PAPER,
                parameters: &[],
                has_kernel: false,
                is_random: true,
            },
            Self::Stein => About {
                name: "stein",
                title: "Stein (GSVGD): deterministic, interacting",
                formula: "v = E[k f + (A + C)∇₂k]",
                reference: PAPER,
                parameters: &[TimeUnit, Curl, Interactions],
                has_kernel: true,
                is_random: false,
            },
            Self::SteinStarred => About {
                name: "stein-alt",
                title: "Stein*: repulsion by A only; the particles never stop",
                formula: "v = E[k f + A∇₂k]",
                reference: PAPER,
                parameters: &[TimeUnit, Curl, Interactions],
                has_kernel: true,
                is_random: false,
            },
            Self::Blob => About {
                name: "blob",
                title: "Blob: deterministic, interacting",
                formula: "v = (A + C)(∇log π + u), u = Σⱼ∇₂k (1/κᵢ + 1/κⱼ)",
                reference: "Chen et al. 2018, Liu et al. 2019",
                parameters: &[],
                has_kernel: true,
                is_random: false,
            },
            Self::BlobStarred => About {
                name: "blob-alt",
                title: "Blob*: repulsion by A only; the particles never stop",
                formula: "v = (A + C)∇log π + ∇·C + A u, u = Σⱼ∇₂k (1/κᵢ + 1/κⱼ)",
                reference: "Chen et al. 2018, Liu et al. 2019",
                parameters: &[],
                has_kernel: true,
                is_random: false,
            },
            Self::Gfsd => About {
                name: "gfsd",
                title: "GFSD: smoothed density",
                formula: "v = (A + C)(∇log π + u), u = Σⱼ∇₂k/κᵢ",
                reference: "Liu et al. 2019",
                parameters: &[],
                has_kernel: true,
                is_random: false,
            },
            Self::Gfsf => About {
                name: "gfsf",
                title: "GFSF: smoothed functions, one N×N solve per velocity",
                formula: "v = (A + C)(∇log π + u), u = K⁻¹Σⱼ∇₂k",
                reference: "Liu et al. 2019",
                parameters: &[SolveMemory],
                has_kernel: true,
                is_random: false,
            },
            Self::SteinGradient => About {
                name: "sge",
                title: "Stein gradient estimator: GFSF with a regulariser",
                formula: "v = (A + C)(∇log π + u), u = (K + ηI)⁻¹Σⱼ∇₂k",
                reference: "Li & Turner 2018",
                parameters: &[Regulariser, SolveMemory],
                has_kernel: true,
                is_random: false,
            },
            Self::Product => About {
                name: "product",
                title: "Product space: Stein with the noise that makes it exact for every N",
                formula: "dz = E[k f + (A + C)∇₂k] dt + √(2Ã) dW, Ãᵢⱼ = kᵢⱼ(Aᵢ + Aⱼ)/2N",
                reference: PAPER,
                parameters: &[Adapt, Interactions],
                has_kernel: true,
                is_random: true,
            },
            Self::Spos => About {
                name: "spos",
                title: "SPOS: Stein with independent noise; biased",
                formula: "dz = (E[k f + ∇₂k] + σ²f) dt + √(2σ²) dW",
                reference: "Zhang et al. 2020",
                parameters: &[NoiseStrength, Interactions],
                has_kernel: true,
                is_random: true,
            },
            Self::SposExact => About {
                name: "spos-exact",
                title: "SPOS, corrected: exact for every N",
                formula: "dz = (E[k f + ∇₂k] + σ²f) dt + √(2K/N + 2σ²) dW",
                reference: PAPER,
                parameters: &[NoiseStrength, Adapt, Interactions],
                has_kernel: true,
                is_random: true,
            },
            Self::Drift => About {
                name: "drift",
                title: "Deep ensembles: independent descents to modes, not samples",
                formula: "dz = f dt",
                reference: "Lakshminarayanan et al. 2017",
                parameters: &[],
                has_kernel: false,
                is_random: false,
            },
            Self::Lawgd => About {
                name: "lawgd",
                title: "LAWGD: KL falls at the rate χ²; one or two dimensions",
                formula: "v = −M∇φ, −𝒜φ = ρ/π − 1, 𝒜g = (1/π)∇·(πM∇g)",
                reference: "Chewi et al. 2020",
                parameters: &[Cells, Smoothing],
                has_kernel: false,
                is_random: false,
            },
        }
    }

    /// Its own name: what it adds to that of a dynamics.
    pub fn name(self) -> &'static str {
        self.about().name
    }

    /// A heading for the methods of this field.
    pub fn title(self) -> &'static str {
        self.about().title
    }

    /// How f becomes a motion.
    pub fn formula(self) -> &'static str {
        self.about().formula
    }

    /// Where it comes from.
    pub(super) fn reference(self) -> &'static str {
        self.about().reference
    }

    /// The parameters it has.
    pub fn parameters(self) -> &'static [Parameter] {
        self.about().parameters
    }

    /// Whether particles feel each other through a kernel.
    pub fn has_kernel(self) -> bool {
        self.about().has_kernel
    }

    /// Whether there is noise.
    pub fn is_random(self) -> bool {
        self.about().is_random
    }

    /// What an N×N solve of the field takes, in bytes; 0 where there is none.
    pub fn solve_memory(self, parameters: &Parameters, particles: usize) -> u64 {
        let solves = self.parameters().contains(&Parameter::SolveMemory);
        let memory_limit = parameters.solve_memory;
        let estimator =
            Estimator::SteinGradient { regulariser: parameters.regulariser, memory_limit };
        if solves { estimator.bytes(particles) } else { 0 }
    }
}
