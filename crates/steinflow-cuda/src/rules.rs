//! What particles move by, and what follows from it: the shapes of sums, and the text of the kernels of a move.

use std::ops::Range;

use steinflow::dynamics::Structure;
use steinflow::kernel::{Kernel, Radial};

use crate::affine;
use crate::device::Source;
use crate::dynamics::{self, Repulsion, groups};
use crate::matrix;
use crate::sums::{Factor, Profile, Shape};

/// How particles move.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Field {
    /// GSVGD, with the part of M that repels, and in units of λ if that is held.
    Stein { kernel: Kernel, repulsion: Repulsion, is_fast: bool, is_held: bool },
    /// Along M(∇log π + u), with u by Blob or by a kernel density.
    Ratio { kernel: Kernel, repulsion: Repulsion, is_blob: bool, is_fast: bool },
    /// Drift, with noise or without.
    Diffusion { is_random: bool },
}

impl Field {
    /// The kernel, the part of M that repels, and whether sums are fast, of a field that interacts.
    pub(crate) fn interaction(&self) -> Option<(&Kernel, Repulsion, bool)> {
        match self {
            Self::Stein { kernel, repulsion, is_fast, .. }
            | Self::Ratio { kernel, repulsion, is_fast, .. } => {
                Some((kernel, *repulsion, *is_fast))
            }
            Self::Diffusion { .. } => None,
        }
    }
}

/// What particles move by: all that is the same in every move of a run.
pub(crate) struct Rules {
    pub field: Field,
    pub structure: Structure,
    /// What varies from particle to particle, as text.
    pub locals: Option<String>,
    /// Whether there is a preconditioner.
    pub is_scaled: bool,
    pub count: usize,
    /// Bytes of a number.
    pub size: usize,
    /// What time is in units of, beside N: λ, or 1.
    pub eigenvalue: f64,
}

impl Rules {
    /// What sums over particles are multiplied by.
    pub(crate) fn share(&self) -> f64 {
        1.0 / (self.count as f64 * self.eigenvalue)
    }

    /// Whether particles are so few that a move is one kernel.
    pub(crate) fn are_few(&self) -> bool {
        let most = if self.size == 4 { MOST_FEW } else { MOST_FEW / 2 };
        let Field::Stein { kernel, .. } = &self.field else { return false };
        kernel.affine == 0.0 && (2..=most).contains(&self.count)
    }

    /// Whether K is stored, which takes less than the particles do.
    pub(crate) fn store_kernel(&self) -> bool {
        let Field::Stein { kernel, .. } = &self.field else { return false };
        let (count, dim) = (self.count, self.structure.dim());
        kernel.radial == Radial::SquaredExponential
            && self.size == 4
            && !self.are_few()
            && count > MOST_FEW
            && count <= matrix::MOST.min(2 * dim)
            && dim >= matrix::LEAST_DIM
    }

    /// The blocks that the kernel sees, as bits.
    pub(crate) fn seen(&self) -> u32 {
        let Some((kernel, ..)) = self.field.interaction() else { return 0 };
        let of_block = groups(kernel, self.structure.blocks());
        let seen = of_block.iter().enumerate().filter(|(_, group)| group.is_some());
        seen.fold(0, |bits, (block, _)| bits | 1 << block)
    }

    /// Parts that squared distances of few particles come in, and the bytes of all of them.
    pub(crate) fn parts_of_few(&self) -> (usize, usize) {
        let groups = self.field.interaction().map_or(0, |(kernel, ..)| {
            groups(kernel, self.structure.blocks())
                .iter()
                .flatten()
                .max()
                .map_or(0, |last| last + 1)
        });
        let parts = self.structure.dim().div_ceil(FEW_COLUMNS).min(MOST_PARTS);
        (parts, parts * groups * self.count * (self.count - 1) / 2 * self.size)
    }
}

/// The most particles of `kernels/few.cu` in single precision, which fit the shared memory of a block.
const MOST_FEW: usize = 32;
const FEW_COLUMNS: usize = 16;
const MOST_PARTS: usize = 128;

/// Slopes of all factors at once, and of none: what `kernels/flow.cu` is told.
pub(crate) const ALL_GROUPS: i32 = -2;
pub(crate) const NO_GROUP: i32 = -3;
/// The affine part of the kernel.
pub(crate) const AFFINE: i32 = -4;

/// The shapes of the sums of a velocity, each with whether the drift is in it and whose slope it has.
pub(crate) fn shapes(
    field: &Field,
    structure: &Structure,
    moving: usize,
    count: usize,
    size: usize,
) -> Vec<(Shape, bool, i32)> {
    let Some((kernel, _, is_fast)) = field.interaction() else { return Vec::new() };
    let dim = structure.dim();
    let groups = columns(kernel, structure);
    let seen = groups.last().map_or(0, |columns| columns.end);
    let width = match field {
        Field::Ratio { is_blob, .. } => seen * (1 + usize::from(*is_blob)) + usize::from(*is_blob),
        _ => (moving + dynamics::varying(structure)) * dim,
    };
    let is_ratio = matches!(field, Field::Ratio { .. });
    let shape = |factors| Shape { count, width, factors, size, is_fast };
    // κ = Σ k needs no right-hand side: one column of zeros.
    let kappa = |factors| (Shape { width: 1, ..shape(factors) }, true, NO_GROUP);
    match kernel.radial {
        // Products of exponentials are one, of scaled points.
        Radial::SquaredExponential => {
            let factors = || vec![Factor { end: seen, profile: Profile::SquaredExponential }];
            if is_ratio {
                vec![kappa(factors()), (shape(factors()), false, ALL_GROUPS)]
            } else {
                vec![(shape(factors()), true, ALL_GROUPS)]
            }
        }
        Radial::InverseMultiquadric => {
            let factors = |slope: Option<usize>| {
                let profile = |group| match slope {
                    Some(own) if own == group => Profile::MultiquadricSlope,
                    _ => Profile::InverseMultiquadric,
                };
                let ends = groups.iter().enumerate();
                ends.map(|(g, columns)| Factor { end: columns.end, profile: profile(g) }).collect()
            };
            let slopes = (0..groups.len()).map(|g| (shape(factors(Some(g))), false, g as i32));
            let value = factors(None);
            let first = if is_ratio { kappa(value) } else { (shape(value), true, NO_GROUP) };
            std::iter::once(first).chain(slopes).collect()
        }
    }
}

/// Columns of the state that the kernel sees, and of the right-hand side of its affine part, where it has one.
pub(crate) fn affine_shape(
    field: &Field,
    structure: &Structure,
    moving: usize,
) -> Option<(usize, usize)> {
    let (kernel, ..) = field.interaction().filter(|(kernel, ..)| kernel.affine > 0.0)?;
    let seen = columns(kernel, structure).last().map_or(0, |columns| columns.end);
    Some((seen, moving * structure.dim()))
}

/// Bytes of the affine part.
pub(crate) fn affine_bytes(
    field: &Field,
    structure: &Structure,
    moving: usize,
    count: usize,
    size: usize,
) -> u64 {
    affine_shape(field, structure, moving)
        .map_or(0, |(seen, width)| affine::bytes(count, seen, width, size))
}

/// The columns of the state that every factor of the kernel sees.
pub(crate) fn columns(kernel: &Kernel, structure: &Structure) -> Vec<Range<usize>> {
    let (dim, of_block) = (structure.dim(), groups(kernel, structure.blocks()));
    let last = of_block.iter().flatten().max().copied().unwrap_or(0);
    let of_group = |group| {
        let blocks = || (0..of_block.len()).filter(|&block| of_block[block] == Some(group));
        blocks().min().unwrap_or(0) * dim..(blocks().max().unwrap_or(0) + 1) * dim
    };
    (0..=last).map(of_group).collect()
}

/// The source of `kernels/flow.cu` for a move.
pub(crate) fn source(rules: &Rules, moving: &[usize]) -> Source {
    let Rules { field, structure, locals, is_scaled, count, size, .. } = rules;
    let plain = Kernel::default();
    let (kernel, repulsion, _) = field.interaction().unwrap_or((&plain, Repulsion::All, false));
    let text = dynamics::text(structure, repulsion, locals.as_deref());
    let names: Vec<String> = moving.iter().map(ToString::to_string).collect();
    let of_block = groups(kernel, structure.blocks());
    let group_of =
        of_block.iter().enumerate().rev().fold("-1".to_owned(), |rest, (block, group)| {
            let group = group.map_or(-1, |group| group as i32);
            format!("((b) == {block} ? {group} : {rest})")
        });
    let text = format!("{text}{}", include_str!("../kernels/flow.cu"));
    let (text, is_blob) = match field {
        Field::Ratio { is_blob, .. } => {
            (format!("{text}{}", include_str!("../kernels/ratio.cu")), u8::from(*is_blob))
        }
        _ if rules.are_few() => (format!("{text}{}", include_str!("../kernels/few.cu")), 0),
        _ => (text, 0),
    };
    let source = Source::new(&text, *size);
    let source = if rules.are_few() {
        let groups = of_block.iter().flatten().max().map_or(0, |last| last + 1);
        source
            .with("COUNT", count)
            .with("PARTS", rules.parts_of_few().0)
            .with("GROUPS", groups)
            .with("RADIAL", profile_of(kernel.radial) as u8)
    } else {
        source
    };
    source
        .with("PRECONDITIONED", u8::from(*is_scaled))
        .with("IS_BLOB", is_blob)
        .with("IS_STARRED", u8::from(repulsion == Repulsion::Diffusion))
        .with("SEEN_BLOCKS", of_block.iter().flatten().count())
        .with("BLOCKS", structure.blocks())
        .with("DIMENSION", structure.dim())
        .with("MOVING_LIST", names.join(","))
        .with("VARIES", dynamics::varying(structure))
        .with("GROUP_OF(b)", group_of)
        .with("ALL_GROUPS", ALL_GROUPS)
        .with("AFFINE", AFFINE)
        .with("UNIT", format!("{:?}", dynamics::unit(kernel.radial)))
        .with("SLOPE", format!("{:?}", kernel.radial.slope_ratio(0.0)))
}

fn profile_of(radial: Radial) -> Profile {
    match radial {
        Radial::SquaredExponential => Profile::SquaredExponential,
        Radial::InverseMultiquadric => Profile::InverseMultiquadric,
    }
}
