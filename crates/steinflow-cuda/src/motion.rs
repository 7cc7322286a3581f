//! One move of some blocks on the device: bandwidths, right-hand sides, sums, and the step itself.

use std::ops::Range;

use cudarc::driver::{CudaFunction, CudaGraph};
use steinflow::Result;
use steinflow::dynamics::Structure;
use steinflow::kernel::{Kernel, Radial};

use crate::bandwidth::Bandwidths;
use crate::device::{Buffer, Device, NOTHING, Source};
use crate::dynamics::{self, Repulsion, Varying, groups};
use crate::launch::Argument;
use crate::sums::{Factor, Profile, Shape, Sums};

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

/// Slopes of all factors at once, and of none: what `kernels/flow.cu` is told.
const ALL_GROUPS: i32 = -2;
const NO_GROUP: i32 = -3;

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
    mean: Buffer,
    velocity: Buffer,
    parts: Vec<Part>,
    centre: CudaFunction,
    prepare: CudaFunction,
    combine: CudaFunction,
}

enum Action {
    Stein(Box<Interaction>),
    Ratio(Box<Interaction>),
    Diffusion { diffuse: CudaFunction, is_random: bool },
}

/// The plan of a move of some blocks.
pub(crate) struct Motion {
    action: Action,
    set_move: CudaFunction,
    pub(crate) speeds: Buffer,
    pub(crate) blocks: usize,
    /// What was recorded of it, once it has run.
    graph: Option<CudaGraph>,
    runs: u64,
}

/// All that a move works on.
pub(crate) struct World<'b> {
    pub state: &'b Buffer,
    pub score: &'b Buffer,
    pub moved: &'b Buffer,
    pub fault: &'b Buffer,
    pub count: usize,
    pub seed: u64,
}

/// Which step a move is of, and how long it is.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    pub dt: f64,
    pub step: u64,
    pub draw: usize,
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
pub(crate) fn source(
    field: &Field,
    structure: &Structure,
    varying: Option<&Varying>,
    moving: &[usize],
    size: usize,
) -> Result<Source> {
    let plain = Kernel::default();
    let (kernel, repulsion, _) = field.interaction().unwrap_or((&plain, Repulsion::All, false));
    let text = dynamics::text(structure, repulsion, varying)?;
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
        _ => (text, 0),
    };
    Ok(Source::new(&text, size)
        .with("IS_BLOB", is_blob)
        .with("IS_STARRED", u8::from(repulsion == Repulsion::Diffusion))
        .with("SEEN_BLOCKS", of_block.iter().flatten().count())
        .with("BLOCKS", structure.blocks())
        .with("DIMENSION", structure.dim())
        .with("MOVING_LIST", names.join(","))
        .with("VARIES", u8::from(varying.is_some()))
        .with("GROUP_OF(b)", group_of)
        .with("ALL_GROUPS", ALL_GROUPS)
        .with("UNIT", format!("{:?}", dynamics::unit(kernel.radial)))
        .with("SLOPE", format!("{:?}", kernel.radial.slope_ratio(0.0))))
}

/// Brings bandwidths and centre up to date.
fn choose(
    device: &Device,
    structure: &Structure,
    world: &World<'_>,
    field: &Interaction,
) -> Result<()> {
    let size = structure.blocks() * structure.dim();
    field.bandwidths.choose(device, world.state, world.count, size)?;
    let arguments = [world.state.arg(), world.count.into(), size.into(), field.mean.arg()];
    device.launch(&field.centre, (size.div_ceil(32), 1), (32, 32), 0, &arguments)
}

impl Motion {
    pub(crate) fn new(
        device: &Device,
        field: &Field,
        structure: &Structure,
        varying: Option<&Varying>,
        moving: &[usize],
        count: usize,
        size: usize,
    ) -> Result<Self> {
        let dim = structure.dim();
        let source = source(field, structure, varying, moving, size)?;
        let action = match field {
            Field::Diffusion { is_random } => Action::Diffusion {
                diffuse: device.kernel(&source, "diffuse")?,
                is_random: *is_random,
            },
            Field::Stein { kernel, .. } | Field::Ratio { kernel, .. } => {
                let columns = columns(kernel, structure);
                let shapes = shapes(field, structure, varying.is_some(), moving.len(), count, size);
                let parts = shapes.into_iter().map(|(shape, drifts, slope_group)| {
                    Ok(Part { sums: Sums::new(device, shape)?, drifts, slope_group })
                });
                let parts = parts.collect::<Result<Vec<Part>>>()?;
                let is_ratio = matches!(field, Field::Ratio { .. });
                // Sums of several parts: of what moves, or of u in all blocks.
                let blocks = if is_ratio { structure.blocks() } else { moving.len() };
                let velocity = if parts.len() > 1 { count * blocks * dim * size } else { 0 };
                let (prepare, combine) = if is_ratio {
                    ("prepare_ratio", "combine_ratio")
                } else {
                    ("prepare", "combine")
                };
                let interaction = Box::new(Interaction {
                    bandwidths: Bandwidths::new(device, &kernel.bandwidth, count, columns, size)?,
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
        let blocks = (count * dim).div_ceil(THREADS).min(MOST_BLOCKS);
        let speeds = device.zeros(moving.len() * blocks * 8)?;
        let set_move = device.kernel(&source, "set_move")?;
        Ok(Self { action, set_move, speeds, blocks, graph: None, runs: 0 })
    }

    /// Moves. The second time, the work is recorded; from then on it is replayed as a whole.
    pub(crate) fn run(
        &mut self,
        device: &Device,
        structure: &Structure,
        world: &World<'_>,
        at: Address,
    ) -> Result<()> {
        let arguments =
            [world.moved.arg(), Argument::Double(at.dt), Argument::Wide(at.step), at.draw.into()];
        device.launch(&self.set_move, (1, 1), (1, 1), 0, &arguments)?;
        self.runs += 1;
        if self.runs == 1 {
            return self.start(device, structure, world);
        }
        if self.graph.is_none() {
            self.graph = device.capture(|| self.start(device, structure, world))?;
        }
        match &self.graph {
            Some(graph) => graph.launch().map_err(crate::device::failed),
            None => self.start(device, structure, world),
        }
    }

    fn start(&mut self, device: &Device, structure: &Structure, world: &World<'_>) -> Result<()> {
        let World { state, score, moved, fault, count, seed } = *world;
        let n = Argument::from(count);
        let grid = (self.blocks, 1);
        let threads = (THREADS as u32, 1);
        match &mut self.action {
            Action::Diffusion { diffuse, is_random } => {
                let arguments = [
                    state.arg(),
                    score.arg(),
                    n,
                    Argument::Wide(seed),
                    (*is_random).into(),
                    moved.arg(),
                    self.speeds.arg(),
                    fault.arg(),
                ];
                device.launch(diffuse, grid, threads, 0, &arguments)
            }
            Action::Ratio(field) => {
                choose(device, structure, world, field)?;
                Self::move_by_ratio(device, structure, world, field, (self.blocks, &self.speeds))
            }
            Action::Stein(field) => {
                choose(device, structure, world, field)?;
                let Interaction { bandwidths, mean, velocity, parts, prepare, combine, .. } =
                    &mut **field;
                let last = parts.len() - 1;
                for (place, Part { sums, drifts, slope_group }) in parts.iter_mut().enumerate() {
                    let [points, point_stride] = sums.points();
                    let [rhs, rhs_stride] = sums.rhs();
                    let arguments = [
                        state.arg(),
                        score.arg(),
                        mean.arg(),
                        bandwidths.h.arg(),
                        n,
                        (*drifts).into(),
                        Argument::Int(*slope_group),
                        points,
                        point_stride,
                        rhs,
                        rhs_stride,
                    ];
                    let all = (count * structure.dim()).div_ceil(THREADS);
                    device.launch(prepare, (all, 1), threads, 0, &arguments)?;
                    sums.run(device)?;
                    let arguments = [
                        state.arg(),
                        mean.arg(),
                        bandwidths.h.arg(),
                        n,
                        Argument::Int(*slope_group),
                        sums.partial.arg(),
                        sums.splits.into(),
                        velocity.arg(),
                        (place == 0).into(),
                        (place == last).into(),
                        moved.arg(),
                        self.speeds.arg(),
                        fault.arg(),
                    ];
                    device.launch(combine, grid, threads, 0, &arguments)?;
                }
                Ok(())
            }
        }
    }

    /// κ first, then every slope's part of u.
    fn move_by_ratio(
        device: &Device,
        structure: &Structure,
        world: &World<'_>,
        field: &mut Interaction,
        (blocks, speeds): (usize, &Buffer),
    ) -> Result<()> {
        let World { state, score, moved, fault, count, .. } = *world;
        let Interaction { bandwidths, mean, velocity, parts, prepare, combine, .. } = field;
        let (n, threads) = (Argument::from(count), (THREADS as u32, 1));
        let all = ((count * structure.dim()).div_ceil(THREADS), 1);
        let Some((kappa, slopes)) = parts.split_first_mut() else { return Ok(()) };
        let last = slopes.len().saturating_sub(1);
        let written = |sums: &Sums, group: i32, kappa: [Argument; 2]| {
            let ([points, point_stride], [rhs, rhs_stride]) = (sums.points(), sums.rhs());
            let [own, splits] = kappa;
            let head =
                [state.arg(), mean.arg(), bandwidths.h.arg(), n, Argument::Int(group), own, splits];
            [&head[..], &[points, point_stride, rhs, rhs_stride]].concat()
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
                moved.arg(),
                speeds.arg(),
                fault.arg(),
            ];
            device.launch(combine, (blocks, 1), threads, 0, &arguments)?;
        }
        Ok(())
    }

    /// The bandwidths of the last move.
    pub(crate) fn bandwidths(&self, device: &Device) -> Result<Vec<f64>> {
        match &self.action {
            Action::Stein(field) | Action::Ratio(field) => {
                device.get(&field.bandwidths.h, field.bandwidths.groups)
            }
            Action::Diffusion { .. } => Ok(Vec::new()),
        }
    }

    /// Mean |v|² of the block at a place of those that move.
    pub(crate) fn squared_speed(&self, device: &Device, place: usize, count: usize) -> Result<f64> {
        let sums: Vec<f64> = device.get(&self.speeds, (place + 1) * self.blocks)?;
        Ok(sums[place * self.blocks..].iter().sum::<f64>() / count as f64)
    }
}
