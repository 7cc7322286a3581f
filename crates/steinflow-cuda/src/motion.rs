//! One move of some blocks on the device: bandwidths, right-hand sides, sums, and the step itself.

use std::ops::Range;

use cudarc::driver::CudaFunction;
use steinflow::Result;
use steinflow::dynamics::Structure;
use steinflow::kernel::{Kernel, Radial};

use crate::affine::{self, Affine};
use crate::bandwidth::{Bandwidths, Cloud};
use crate::device::{Buffer, Device, NOTHING, Source};
use crate::dynamics::{self, Repulsion, Varying, groups};
use crate::launch::Argument;
use crate::matrix::{self, Pairwise};
use crate::sums::{Factor, Profile, Shape, Sums, split_source};

/// How particles move.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Field {
    /// GSVGD, with the part of M that repels.
    Stein { kernel: Kernel, repulsion: Repulsion, is_fast: bool },
    /// Along M(∇log π + u), with u by Blob or by a kernel density.
    Ratio { kernel: Kernel, repulsion: Repulsion, is_blob: bool, is_fast: bool },
    /// Drift, with noise or without.
    Diffusion { is_random: bool },
}

impl Field {
    /// The kernel, the part of M that repels, and whether sums are fast, of a field that interacts.
    fn interaction(&self) -> Option<(&Kernel, Repulsion, bool)> {
        match self {
            Self::Stein { kernel, repulsion, is_fast }
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
    pub varying: Option<Varying>,
    /// Whether there is a preconditioner.
    pub is_scaled: bool,
    pub count: usize,
    /// Bytes of a number.
    pub size: usize,
}

impl Rules {
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
const FEW_THREADS: u32 = 512;
const MOST_PARTS: usize = 128;

/// Slopes of all factors at once, and of none: what `kernels/flow.cu` is told.
const ALL_GROUPS: i32 = -2;
const NO_GROUP: i32 = -3;
/// The affine part of the kernel.
const AFFINE: i32 = -4;

/// Threads over particles and coordinates; sums of squares are added block by block.
const THREADS: usize = 256;
const MOST_BLOCKS: usize = 1024;

/// A sum of the velocity: a right-hand side and the kernel, or a slope of it, that multiplies it.
struct Part {
    sums: Sums,
    /// Whether the drift is in it; of a ratio, whether it is κ.
    drifts: bool,
    slope_group: i32,
}

struct Interaction {
    bandwidths: Bandwidths,
    affine: Option<Affine>,
    /// c of the affine part.
    strength: f64,
    /// Where K is stored; there are no other parts then.
    pairwise: Option<Pairwise>,
    mean: Buffer,
    velocity: Buffer,
    parts: Vec<Part>,
    centre: CudaFunction,
    prepare: CudaFunction,
    combine: CudaFunction,
}

#[expect(clippy::large_enum_variant, reason = "a run has a handful of plans")]
enum Action {
    Few { bandwidths: Bandwidths, squares: CudaFunction, advance: CudaFunction },
    Stein(Box<Interaction>),
    Ratio(Box<Interaction>),
    Diffusion { diffuse: CudaFunction, is_random: bool },
}

/// The plan of a move of some blocks.
pub(crate) struct Motion {
    action: Action,
    speeds: Buffer,
    blocks: usize,
}

/// All that a move works on.
#[derive(Clone, Copy)]
pub(crate) struct World<'b> {
    pub state: &'b Buffer,
    pub score: &'b Buffer,
    /// The preconditioner's, if there is one.
    pub scale: Option<&'b Buffer>,
    /// Squared distances. Of few particles: in two places, the present ones in the second if `is_second`. Where K is
    /// stored: of every block.
    pub squares: &'b [Buffer],
    pub is_second: bool,
    /// The blocks whose distances must be found first, as bits.
    pub stale: u32,
    pub moved: Argument,
    pub fault: &'b Buffer,
    pub seed: u64,
    /// Averages of a rule that rescales velocities, and its numbers.
    pub rescaling: [Argument; 4],
}

impl World<'_> {
    pub(crate) fn scale(&self) -> Argument {
        self.scale.map_or(NOTHING, Buffer::arg)
    }
}

/// The shapes of the sums of a velocity, each with whether the drift is in it and whose slope it has.
pub(crate) fn shapes(
    field: &Field,
    structure: &Structure,
    varies: bool,
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
        _ => (moving + usize::from(varies)) * dim,
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
fn columns(kernel: &Kernel, structure: &Structure) -> Vec<Range<usize>> {
    let (dim, of_block) = (structure.dim(), groups(kernel, structure.blocks()));
    let last = of_block.iter().flatten().max().copied().unwrap_or(0);
    let of_group = |group| {
        let blocks = || (0..of_block.len()).filter(|&block| of_block[block] == Some(group));
        blocks().min().unwrap_or(0) * dim..(blocks().max().unwrap_or(0) + 1) * dim
    };
    (0..=last).map(of_group).collect()
}

/// The source of `kernels/flow.cu` for a move.
pub(crate) fn source(rules: &Rules, moving: &[usize]) -> Result<Source> {
    let Rules { field, structure, varying, is_scaled, count, size } = rules;
    let plain = Kernel::default();
    let (kernel, repulsion, _) = field.interaction().unwrap_or((&plain, Repulsion::All, false));
    let text = dynamics::text(structure, repulsion, varying.as_ref())?;
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
    Ok(source
        .with("PRECONDITIONED", u8::from(*is_scaled))
        .with("IS_BLOB", is_blob)
        .with("IS_STARRED", u8::from(repulsion == Repulsion::Diffusion))
        .with("SEEN_BLOCKS", of_block.iter().flatten().count())
        .with("BLOCKS", structure.blocks())
        .with("DIMENSION", structure.dim())
        .with("MOVING_LIST", names.join(","))
        .with("VARIES", u8::from(varying.is_some()))
        .with("GROUP_OF(b)", group_of)
        .with("ALL_GROUPS", ALL_GROUPS)
        .with("AFFINE", AFFINE)
        .with("UNIT", format!("{:?}", dynamics::unit(kernel.radial)))
        .with("SLOPE", format!("{:?}", kernel.radial.slope_ratio(0.0))))
}

fn profile_of(radial: Radial) -> Profile {
    match radial {
        Radial::SquaredExponential => Profile::SquaredExponential,
        Radial::InverseMultiquadric => Profile::InverseMultiquadric,
    }
}

/// The particles, for those who measure distances.
fn cloud<'b>(rules: &Rules, world: &World<'b>) -> Cloud<'b> {
    let (structure, count) = (&rules.structure, rules.count);
    let scaled = if rules.is_scaled { structure.dim() } else { 0 };
    let scale = [world.scale(), scaled.into()];
    Cloud { state: world.state, scale, count, row: structure.blocks() * structure.dim() }
}

/// Brings bandwidths and centre up to date.
fn choose(device: &Device, rules: &Rules, world: &World<'_>, field: &Interaction) -> Result<()> {
    let (count, size) = (rules.count, rules.structure.blocks() * rules.structure.dim());
    field.bandwidths.choose(device, cloud(rules, world))?;
    let arguments = [world.state.arg(), count.into(), size.into(), field.mean.arg()];
    device.launch(&field.centre, (size.div_ceil(32), 1), (32, 32), 0, &arguments)
}

/// Squared distances of the blocks that the kernel sees, each with its group.
fn seen_squares(rules: &Rules, world: &World<'_>) -> [(Argument, usize); 3] {
    let kernel = rules.field.interaction().map(|(kernel, ..)| kernel);
    let of_block = kernel.map_or(Vec::new(), |kernel| groups(kernel, rules.structure.blocks()));
    [0, 1, 2].map(|block| match of_block.get(block).copied().flatten() {
        Some(group) => (world.squares[block].arg(), group),
        None => (NOTHING, 0),
    })
}

/// The same where K is stored: by the squared distances, those of blocks that moved found anew.
fn choose_stored(
    device: &Device,
    rules: &Rules,
    world: &World<'_>,
    field: &mut Interaction,
) -> Result<()> {
    let (count, size) = (rules.count, rules.structure.blocks() * rules.structure.dim());
    let arguments = [world.state.arg(), count.into(), size.into(), field.mean.arg()];
    device.launch(&field.centre, (size.div_ceil(32), 1), (32, 32), 0, &arguments)?;
    if let Some(pairwise) = &mut field.pairwise {
        for block in (0..rules.structure.blocks()).filter(|block| world.stale >> block & 1 != 0) {
            pairwise.find_squares(device, rules, world, &field.mean, block)?;
        }
    }
    let seen = seen_squares(rules, world);
    let of_group =
        |group: usize| seen.map(|(squares, own)| if own == group { squares } else { NOTHING });
    let known: Vec<[Argument; 3]> = (0..field.bandwidths.groups).map(of_group).collect();
    field.bandwidths.choose_known(device, count, &known)
}

impl Motion {
    pub(crate) fn new(device: &Device, rules: &Rules, moving: &[usize]) -> Result<Self> {
        let Rules { field, structure, varying, count, size, .. } = rules;
        let (count, size, dim) = (*count, *size, structure.dim());
        let source = source(rules, moving)?;
        let bandwidths = |kernel: &Kernel| {
            let columns = columns(kernel, structure);
            Bandwidths::new(device, &kernel.bandwidth, count, columns, size)
        };
        let action = match field {
            Field::Diffusion { is_random } => Action::Diffusion {
                diffuse: device.kernel(&source, "diffuse")?,
                is_random: *is_random,
            },
            Field::Stein { kernel, .. } if rules.are_few() => Action::Few {
                bandwidths: bandwidths(kernel)?,
                squares: device.kernel(&source, "few_squares")?,
                advance: device.kernel(&source, "few_move")?,
            },
            Field::Stein { kernel, .. } | Field::Ratio { kernel, .. } => {
                let shapes = shapes(field, structure, varying.is_some(), moving.len(), count, size);
                let parts = shapes.into_iter().map(|(shape, drifts, slope_group)| {
                    Ok(Part { sums: Sums::new(device, shape)?, drifts, slope_group })
                });
                let (parts, pairwise) = if rules.store_kernel() {
                    let is_fast = field.interaction().is_some_and(|(.., is_fast)| is_fast);
                    let split = split_source(is_fast, size);
                    let width = (moving.len() + usize::from(varying.is_some())) * dim;
                    (Vec::new(), Some(Pairwise::new(device, rules, width, is_fast, &split)?))
                } else {
                    (parts.collect::<Result<Vec<Part>>>()?, None)
                };
                let is_ratio = matches!(field, Field::Ratio { .. });
                // Sums of several parts: of what moves, or of u in all blocks.
                let blocks = if is_ratio { structure.blocks() } else { moving.len() };
                let affine = match affine_shape(field, structure, moving.len()) {
                    Some((seen, width)) if !is_ratio => {
                        Some(Affine::new(device, kernel.affine, (count, seen, width), size)?)
                    }
                    _ => None,
                };
                let is_sum = parts.len() > 1 || affine.is_some();
                let velocity = if is_sum { count * blocks * dim * size } else { 0 };
                let (prepare, combine) = if is_ratio {
                    ("prepare_ratio", "combine_ratio")
                } else {
                    ("prepare", "combine")
                };
                let strength = kernel.affine;
                let interaction = Box::new(Interaction {
                    bandwidths: bandwidths(kernel)?,
                    affine,
                    strength,
                    pairwise,
                    mean: device.zeros(structure.blocks() * dim * size)?,
                    velocity: device.zeros(velocity)?,
                    parts,
                    centre: device.kernel(&source, "centre")?,
                    prepare: device.kernel(&source, prepare)?,
                    combine: device.kernel(&source, combine)?,
                });
                if is_ratio { Action::Ratio(interaction) } else { Action::Stein(interaction) }
            }
        };
        let blocks = match action {
            Action::Few { .. } => rules.parts_of_few().0,
            _ => (count * dim).div_ceil(THREADS).min(MOST_BLOCKS),
        };
        let speeds = device.zeros(moving.len() * blocks * 8)?;
        Ok(Self { action, speeds, blocks })
    }

    /// Moves.
    pub(crate) fn run(&mut self, device: &Device, rules: &Rules, world: &World<'_>) -> Result<()> {
        let World { state, score, moved, fault, seed, .. } = *world;
        let (structure, count) = (&rules.structure, rules.count);
        let (n, share) = (Argument::from(count), Argument::Double(1.0 / count as f64));
        let grid = (self.blocks, 1);
        let threads = (THREADS as u32, 1);
        let [averages, keep_mean, keep_square, add_square] = world.rescaling;
        match &mut self.action {
            Action::Diffusion { diffuse, is_random } => {
                let arguments = [
                    state.arg(),
                    score.arg(),
                    world.scale(),
                    n,
                    Argument::Wide(seed),
                    (*is_random).into(),
                    averages,
                    keep_mean,
                    keep_square,
                    add_square,
                    moved,
                    self.speeds.arg(),
                    fault.arg(),
                ];
                device.launch(diffuse, grid, threads, 0, &arguments)
            }
            Action::Few { bandwidths, squares, advance } => {
                let [first, second] = world.squares else { return Ok(()) };
                let [before, after] =
                    if world.is_second { [second, first] } else { [first, second] };
                let threads = (FEW_THREADS, 1);
                if world.stale != 0 {
                    let arguments = [state.arg(), world.scale(), before.arg()];
                    device.launch(squares, grid, threads, 0, &arguments)?;
                }
                let [has_median, low, high, by_roots, divisor] = bandwidths.rule();
                let arguments = [
                    state.arg(),
                    score.arg(),
                    world.scale(),
                    before.arg(),
                    after.arg(),
                    has_median,
                    low,
                    high,
                    by_roots,
                    divisor,
                    bandwidths.h.arg(),
                    share,
                    averages,
                    keep_mean,
                    keep_square,
                    add_square,
                    moved,
                    self.speeds.arg(),
                    fault.arg(),
                ];
                device.launch(advance, grid, threads, 0, &arguments)
            }
            Action::Ratio(field) => {
                choose(device, rules, world, field)?;
                Self::move_by_ratio(device, rules, world, field, (self.blocks, &self.speeds))
            }
            Action::Stein(field) => {
                if field.pairwise.is_some() {
                    choose_stored(device, rules, world, field)?;
                } else {
                    choose(device, rules, world, field)?;
                }
                let Interaction {
                    bandwidths,
                    affine,
                    strength,
                    pairwise,
                    mean,
                    velocity,
                    parts,
                    prepare,
                    combine,
                    ..
                } = &mut **field;
                let strength = Argument::Double(*strength);
                let all = ((count * structure.dim()).div_ceil(THREADS), 1);
                let (means, h) = (mean.arg(), bandwidths.h.arg());
                let prepare_part =
                    |drifts: bool, slope, [points, stride]: [Argument; 2], rhs: [Argument; 2]| {
                        let group = Argument::Int(slope);
                        let arguments = [
                            state.arg(),
                            score.arg(),
                            world.scale(),
                            means,
                            h,
                            n,
                            drifts.into(),
                            group,
                            points,
                            stride,
                            rhs[0],
                            rhs[1],
                        ];
                        device.launch(prepare, all, threads, 0, &arguments)
                    };
                let speeds = self.speeds.arg();
                let combine_part = |slope, partial: &Buffer, splits: usize, is_first, is_last| {
                    let arguments = [
                        state.arg(),
                        world.scale(),
                        means,
                        h,
                        n,
                        Argument::Int(slope),
                        partial.arg(),
                        splits.into(),
                        velocity.arg(),
                        Argument::from(is_first),
                        Argument::from(is_last),
                        share,
                        strength,
                        averages,
                        keep_mean,
                        keep_square,
                        add_square,
                        moved,
                        speeds,
                        fault.arg(),
                    ];
                    device.launch(combine, grid, threads, 0, &arguments)
                };
                if let Some(affine) = affine {
                    prepare_part(true, NO_GROUP, [NOTHING, 0.into()], affine.rhs())?;
                    affine.run(device, cloud(rules, world))?;
                    combine_part(AFFINE, &affine.out, 1, true, false)?;
                }
                let has_affine = affine.is_some();
                if let Some(pairwise) = pairwise {
                    prepare_part(true, ALL_GROUPS, [NOTHING, 0.into()], pairwise.rhs())?;
                    let seen = seen_squares(rules, world);
                    let unit = dynamics::unit(Radial::SquaredExponential);
                    pairwise.run(device, seen, &bandwidths.h, unit)?;
                    return combine_part(ALL_GROUPS, &pairwise.out, 1, !has_affine, true);
                }
                let last = parts.len() - 1;
                for (place, Part { sums, drifts, slope_group }) in parts.iter_mut().enumerate() {
                    prepare_part(*drifts, *slope_group, sums.points(), sums.rhs())?;
                    sums.run(device)?;
                    let (is_first, is_last) = (place == 0 && !has_affine, place == last);
                    combine_part(*slope_group, &sums.partial, sums.splits, is_first, is_last)?;
                }
                Ok(())
            }
        }
    }

    /// κ first, then every slope's part of u.
    fn move_by_ratio(
        device: &Device,
        rules: &Rules,
        world: &World<'_>,
        field: &mut Interaction,
        (blocks, speeds): (usize, &Buffer),
    ) -> Result<()> {
        let World { state, score, moved, fault, .. } = *world;
        let [averages, keep_mean, keep_square, add_square] = world.rescaling;
        let (structure, count) = (&rules.structure, rules.count);
        let Interaction { bandwidths, mean, velocity, parts, prepare, combine, .. } = field;
        let (n, threads) = (Argument::from(count), (THREADS as u32, 1));
        let all = ((count * structure.dim()).div_ceil(THREADS), 1);
        let Some((kappa, slopes)) = parts.split_first_mut() else { return Ok(()) };
        let last = slopes.len().saturating_sub(1);
        let written = |sums: &Sums, group: i32, kappa: [Argument; 2]| {
            let ([points, point_stride], [rhs, rhs_stride]) = (sums.points(), sums.rhs());
            let [own, splits] = kappa;
            let head = [state.arg(), world.scale(), mean.arg(), bandwidths.h.arg(), n];
            let tail = [Argument::Int(group), own, splits, points, point_stride, rhs, rhs_stride];
            [&head[..], &tail].concat()
        };
        let arguments = written(&kappa.sums, NO_GROUP, [NOTHING, 0.into()]);
        device.launch(prepare, all, threads, 0, &arguments)?;
        kappa.sums.run(device)?;
        let kappa = [kappa.sums.partial.arg(), kappa.sums.splits.into()];
        for (place, Part { sums, slope_group, .. }) in slopes.iter_mut().enumerate() {
            device.launch(prepare, all, threads, 0, &written(sums, *slope_group, kappa))?;
            sums.run(device)?;
            let arguments = [
                state.arg(),
                score.arg(),
                world.scale(),
                mean.arg(),
                bandwidths.h.arg(),
                n,
                Argument::Int(*slope_group),
                kappa[0],
                kappa[1],
                sums.partial.arg(),
                sums.splits.into(),
                velocity.arg(),
                (place == 0).into(),
                (place == last).into(),
                averages,
                keep_mean,
                keep_square,
                add_square,
                moved,
                speeds.arg(),
                fault.arg(),
            ];
            device.launch(combine, (blocks, 1), threads, 0, &arguments)?;
        }
        Ok(())
    }

    /// The bandwidths of the last move.
    pub(crate) fn bandwidths(&self, device: &Device) -> Result<Vec<f64>> {
        let own = match &self.action {
            Action::Stein(field) | Action::Ratio(field) => &field.bandwidths,
            Action::Few { bandwidths, .. } => bandwidths,
            Action::Diffusion { .. } => return Ok(Vec::new()),
        };
        device.get(&own.h, own.groups)
    }

    /// Mean |v|² of the block at a place of those that move.
    pub(crate) fn squared_speed(&self, device: &Device, place: usize, count: usize) -> Result<f64> {
        let sums: Vec<f64> = device.get(&self.speeds, (place + 1) * self.blocks)?;
        Ok(sums[place * self.blocks..].iter().sum::<f64>() / count as f64)
    }
}
