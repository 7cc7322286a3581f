//! What a checkpoint says, field by field, in the order of the struct.

use std::io::{self, Write};
use std::time::Duration;

use steinflow::Arrays;
use steinflow::run::{Checkpoint, Learnt, Past, Saved, TraceRow};
use steinflow::{Matrix, Real};

use super::bytes::{Damage, Eye, Pen};
use super::{Collected, SavedRun};

pub(super) fn write<T: Real>(run: &SavedRun<'_, T>, out: impl Write) -> io::Result<()> {
    let mut pen = Pen(out);
    pen.count(size_of::<T>() as u64)?;
    pen.count(run.checkpoint.step)?;
    pen.text(&run.config)?;
    pen.text(&run.inputs)?;
    write_checkpoint(&run.checkpoint, &mut pen)?;
    pen.count(run.trace.len() as u64)?;
    for row in run.trace.iter() {
        pen.count(row.step)?;
        pen.count(row.gradients)?;
        for x in [row.bandwidth, row.stein_discrepancy] {
            pen.count(u64::from(x.is_some()))?;
            pen.float(x.unwrap_or_default())?;
        }
        for x in [row.mean_log_density, row.velocity_norm, row.step_size, row.seconds] {
            pen.float(x)?;
        }
    }
    write_collected(run.samples.as_ref(), &mut pen)?;
    write_collected(run.frames.as_ref(), &mut pen)
}

/// What stands before the numbers of the run.
pub(super) struct Opening<'a> {
    /// Bytes of a number of the run: 4 or 8.
    pub(super) precision: u64,
    pub(super) step: u64,
    pub(super) config: &'a str,
    pub(super) inputs: &'a str,
}

pub(super) fn read_opening<'a>(eye: &mut Eye<'a>) -> Result<Opening<'a>, Damage> {
    let (precision, step) = (eye.count()?, eye.count()?);
    if ![4, 8].contains(&precision) {
        return Err(format!("has numbers of {precision} bytes"));
    }
    Ok(Opening { precision, step, config: eye.text()?, inputs: eye.text()? })
}

pub(super) fn read<T: Real>(payload: &[u8]) -> Result<SavedRun<'static, T>, Damage> {
    let mut eye = Eye(payload);
    let opening = read_opening(&mut eye)?;
    if opening.precision != size_of::<T>() as u64 {
        return Err(format!("is not in {}", T::NAME));
    }
    let (config, inputs) = (opening.config.to_owned(), opening.inputs.to_owned());
    let checkpoint = read_checkpoint(&mut eye)?;
    if checkpoint.step != opening.step {
        return Err(format!("is of step {} and of {}", opening.step, checkpoint.step));
    }
    let rows = eye.length(80)?;
    let trace: Vec<TraceRow> = (0..rows).map(|_| read_row(&mut eye)).collect::<Result<_, _>>()?;
    let (samples, frames) = (read_collected(&mut eye)?, read_collected(&mut eye)?);
    if !eye.0.is_empty() {
        return Err(format!("has {} bytes too many", eye.0.len()));
    }
    Ok(SavedRun { config, inputs, checkpoint, trace: trace.into(), samples, frames })
}

fn read_row(eye: &mut Eye<'_>) -> Result<TraceRow, Damage> {
    let (step, gradients) = (eye.count()?, eye.count()?);
    let mut optional = || {
        let (is_there, x) = (eye.count()? != 0, eye.float()?);
        Ok::<_, Damage>(is_there.then_some(x))
    };
    let (bandwidth, stein_discrepancy) = (optional()?, optional()?);
    Ok(TraceRow {
        step,
        gradients,
        bandwidth,
        stein_discrepancy,
        mean_log_density: eye.float()?,
        velocity_norm: eye.float()?,
        step_size: eye.float()?,
        seconds: eye.float()?,
    })
}

fn write_collected<T: Real>(
    collected: Option<&Collected<'_, T>>,
    pen: &mut Pen<impl Write>,
) -> io::Result<()> {
    pen.count(u64::from(collected.is_some()))?;
    if let Some(Collected { chains, steps, values }) = collected {
        pen.count(*chains as u64)?;
        pen.counts(steps)?;
        pen.reals(values)?;
    }
    Ok(())
}

fn read_collected<T: Real>(eye: &mut Eye<'_>) -> Result<Option<Collected<'static, T>>, Damage> {
    Ok(match eye.count()? {
        0 => None,
        _ => Some(Collected {
            chains: eye.index()?,
            steps: eye.counts()?.into(),
            values: eye.reals()?.into(),
        }),
    })
}

fn write_checkpoint<T: Real>(at: &Checkpoint<T>, pen: &mut Pen<impl Write>) -> io::Result<()> {
    pen.count(at.step)?;
    pen.count(at.phase as u64)?;
    pen.float(at.time)?;
    pen.float(at.step_size_factor)?;
    pen.count(u64::from(at.shrinks))?;
    pen.count(at.gradients)?;
    pen.counts(&at.frozen.iter().map(|&i| i as u64).collect::<Vec<_>>())?;
    pen.floats(&at.squared_speeds)?;
    write_saved(&at.particles, pen)?;
    pen.floats(&at.integrator)?;
    pen.count(at.past.len() as u64)?;
    for past in &at.past {
        pen.count(past.step)?;
        pen.count(past.phase as u64)?;
        write_saved(&past.particles, pen)?;
        pen.floats(&past.integrator)?;
    }
    pen.count(at.elapsed.as_secs())?;
    pen.count(u64::from(at.elapsed.subsec_nanos()))?;
    pen.count(at.learnt.as_slice().len() as u64)?;
    for (name, values) in at.learnt.as_slice() {
        pen.text(name)?;
        pen.floats(values)?;
    }
    Ok(())
}

fn read_checkpoint<T: Real>(eye: &mut Eye<'_>) -> Result<Checkpoint<T>, Damage> {
    let small = |n: u64| u32::try_from(n).map_err(|_| format!("has the number {n} too large"));
    Ok(Checkpoint {
        step: eye.count()?,
        phase: eye.index()?,
        time: eye.float()?,
        step_size_factor: eye.float()?,
        shrinks: small(eye.count()?)?,
        gradients: eye.count()?,
        frozen: {
            let index = |n| usize::try_from(n).map_err(|_| format!("freezes particle {n}"));
            eye.counts()?.into_iter().map(index).collect::<Result<_, _>>()?
        },
        squared_speeds: eye.floats()?,
        particles: read_saved(eye)?,
        integrator: eye.floats()?,
        past: {
            // Ten numbers at the least.
            let count = eye.length(80)?;
            let past = |_| {
                Ok(Past {
                    step: eye.count()?,
                    phase: eye.index()?,
                    particles: read_saved(eye)?,
                    integrator: eye.floats()?,
                })
            };
            (0..count).map(past).collect::<Result<_, Damage>>()?
        },
        elapsed: Duration::from_secs(eye.count()?)
            .saturating_add(Duration::from_nanos(u64::from(small(eye.count()?)?))),
        learnt: {
            // A name and its numbers have a length each.
            let count = eye.length(16)?;
            let array = |_| Ok((eye.text()?.to_owned(), eye.floats()?));
            Arrays::new((0..count).map(array).collect::<Result<_, Damage>>()?)
        },
    })
}

fn write_saved<T: Real>(saved: &Saved<T>, pen: &mut Pen<impl Write>) -> io::Result<()> {
    for matrix in [&saved.state, &saved.score] {
        pen.count(matrix.rows() as u64)?;
        pen.count(matrix.cols() as u64)?;
        pen.reals(matrix.as_slice())?;
    }
    pen.reals(&saved.log_density)?;
    pen.count(saved.batches)?;
    pen.count(u64::from(saved.preconditioner.is_some()))?;
    if let Some(learnt) = &saved.preconditioner {
        pen.floats(&learnt.moments)?;
        pen.float(learnt.weight)?;
        pen.count(learnt.seen)?;
    }
    pen.floats(&saved.field)
}

fn read_saved<T: Real>(eye: &mut Eye<'_>) -> Result<Saved<T>, Damage> {
    let mut matrix = || {
        let (rows, cols) = (eye.index()?, eye.index()?);
        Matrix::from_vec(eye.reals()?, rows, cols)
            .ok_or_else(|| format!("has a matrix that is not {rows} × {cols}"))
    };
    Ok(Saved {
        state: matrix()?,
        score: matrix()?,
        log_density: eye.reals()?,
        batches: eye.count()?,
        preconditioner: match eye.count()? {
            0 => None,
            _ => Some(Learnt { moments: eye.floats()?, weight: eye.float()?, seen: eye.count()? }),
        },
        field: eye.floats()?,
    })
}
