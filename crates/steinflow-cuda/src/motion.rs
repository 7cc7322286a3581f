//! One move of some blocks on the device: bandwidths, right-hand sides, sums, and the step itself.

use cudarc::driver::CudaFunction;
use steinflow::Result;
use steinflow::kernel::{Kernel, Radial};

use crate::affine::Affine;
use crate::bandwidth::{Bandwidths, Cloud};
use crate::device::{Buffer, Device, NOTHING};
use crate::dynamics::{self, groups};
use crate::launch::Argument;
use crate::matrix::Pairwise;
use crate::rules::{
    AFFINE, ALL_GROUPS, Field, NO_GROUP, Rules, affine_shape, columns, shapes, source,
};
use crate::sums::{Sums, split_source};

/// Of `kernels/few.cu`.
const FEW_THREADS: u32 = 512;

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
    pub log_density: &'b Buffer,
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
        let Rules { field, structure, count, size, .. } = rules;
        let (count, size, dim) = (*count, *size, structure.dim());
        let source = source(rules, moving);
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
                let shapes = shapes(field, structure, moving.len(), count, size);
                let parts = shapes.into_iter().map(|(shape, drifts, slope_group)| {
                    Ok(Part { sums: Sums::new(device, shape)?, drifts, slope_group })
                });
                let (parts, pairwise) = if rules.store_kernel() {
                    let is_fast = field.interaction().is_some_and(|(.., is_fast)| is_fast);
                    let split = split_source(is_fast, size);
                    let width = (moving.len() + dynamics::varying(structure)) * dim;
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
        let World { state, score, log_density, moved, fault, seed, .. } = *world;
        let (structure, count) = (&rules.structure, rules.count);
        let (n, share) = (Argument::from(count), Argument::Double(rules.share()));
        let grid = (self.blocks, 1);
        let threads = (THREADS as u32, 1);
        let [averages, keep_mean, keep_square, add_square] = world.rescaling;
        match &mut self.action {
            Action::Diffusion { diffuse, is_random } => {
                let arguments = [
                    state.arg(),
                    score.arg(),
                    log_density.arg(),
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
                    log_density.arg(),
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
                            log_density.arg(),
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
        let World { state, score, log_density, moved, fault, .. } = *world;
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
                log_density.arg(),
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
