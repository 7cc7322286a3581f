//! Few particles in many dimensions move in strips of coordinates: as they do all at once, and with the same bits
//! whoever does the work.

use steinflow::dynamics::{Dynamics, Evaluated, Langevin, Sghmc, Sgnht, THETA};
use steinflow::field::{CurlForm, Field, Stein, TimeUnit};
use steinflow::integrator::{StepSize, SymmetricSplitting};
use steinflow::kernel::{Bandwidth, Kernel, Radial, View};
use steinflow::precondition::RootMeanSquare;
use steinflow::target::PerParticle;
use steinflow::testing::random_states;
use steinflow::{LogDensity, Matrix, Real, Result, Sampler, System};

/// A field that does not say how to have it by coordinate: its twin over all coordinates at once.
struct Whole(Stein);

impl<T: Real> Field<T> for Whole {
    fn velocity(
        &mut self,
        at: &Evaluated<'_, T>,
        moving: &[usize],
        velocity: &mut Matrix<T>,
    ) -> Result<()> {
        Field::<T>::velocity(&mut self.0, at, moving, velocity)
    }
}

/// log π(θ) = −Σᵢ sᵢθᵢ²/2 with scales that differ.
fn target<T: Real>(dim: usize) -> impl LogDensity<T> {
    PerParticle::new(dim, |theta: &[T], score: &mut [T]| {
        let mut sum = T::zero();
        for (i, (score, &x)) in score.iter_mut().zip(theta).enumerate() {
            let scale = T::of(0.5 + (i % 7) as f64);
            *score = -scale * x;
            sum += scale * x * x;
        }
        -T::of(0.5) * sum
    })
}

/// Blocks that move one after the other, and then together.
fn moves(blocks: usize) -> Vec<Vec<usize>> {
    (0..blocks).rev().map(|block| vec![block]).chain([(0..blocks).collect()]).collect()
}

/// Where particles are after some moves, and their velocity there.
fn moved<T: Real>(
    count: usize,
    dim: usize,
    dynamics: impl Dynamics<T>,
    field: impl Field<T>,
    precondition: bool,
) -> Result<(Matrix<T>, Matrix<T>, f64)> {
    let start: Matrix<T> = random_states(count, dim, 3).cast();
    let mut system = System::new(target(dim), dynamics, field, &start, 5)?;
    if precondition {
        system = system.with_preconditioner(RootMeanSquare::default())?;
    }
    let blocks = system.structure().blocks();
    for _ in 0..2 {
        for moving in moves(blocks) {
            system.advance(&moving, 0.05)?;
        }
    }
    let norm = system.velocity_norm();
    let all: Vec<usize> = (0..blocks).collect();
    let velocity = system.velocity(&all)?;
    Ok((system.state().copied(), velocity, norm))
}

fn compare(name: &str, found: &Matrix<f64>, expected: &Matrix<f64>) {
    let size = expected.as_slice().iter().fold(0.0_f64, |size, x| size.max(x.abs()));
    for (a, b) in found.as_slice().iter().zip(expected.as_slice()) {
        assert!((a - b).abs() <= 1e-11 * size, "{name}: {a} against {b}");
    }
}

fn kernels() -> Vec<Kernel> {
    let of = |radial, view| Kernel { radial, view, ..Kernel::default() };
    let fixed = Kernel { bandwidth: Bandwidth::fixed(900.0), ..Kernel::default() };
    let [se, imq] = Radial::ALL;
    vec![
        of(se, View::Joint),
        of(se, View::Product),
        of(se, View::Theta),
        of(imq, View::Joint),
        fixed,
    ]
}

#[test]
fn strips_move_as_all_coordinates_at_once_do() -> Result<()> {
    let sghmc = || Sghmc { friction: 0.7, variance: 1.5 };
    let sgnht = || Sgnht { friction: 0.7, variance: 1.5, thermostat_precision: 2.0 };
    // Strips that end with the coordinates, and ones that do not.
    for (count, dim) in [(2, 1024), (20, 2000), (20, 1792)] {
        for kernel in kernels() {
            let fields = [
                Stein::new(kernel.clone()),
                Stein::starred(kernel.clone()),
                Stein::new(kernel.clone()).time_unit(TimeUnit::Eigenvalue),
                Stein::new(kernel.clone()).curl(CurlForm::Symmetrised),
            ];
            for field in fields {
                for precondition in [false, true] {
                    let name =
                        format!("{count} × {dim}, {field:?}, preconditioned: {precondition}");
                    let whole = || Whole(field.clone());
                    let own = || field.clone();
                    let (p, n, d) = (precondition, count, dim);
                    let pairs = [
                        (
                            moved(n, d, Langevin::new(), own(), p)?,
                            moved(n, d, Langevin::new(), whole(), p)?,
                        ),
                        (moved(n, d, sghmc(), own(), p)?, moved(n, d, sghmc(), whole(), p)?),
                        (moved(n, d, sgnht(), own(), p)?, moved(n, d, sgnht(), whole(), p)?),
                    ];
                    for (found, expected) in pairs {
                        compare(&name, &found.0, &expected.0);
                        compare(&name, &found.1, &expected.1);
                        assert!((found.2 / expected.2 - 1.0).abs() < 1e-12, "{name}: {}", found.2);
                    }
                }
            }
        }
    }
    Ok(())
}

#[test]
fn strips_have_the_same_bits_for_any_number_of_threads() -> Result<()> {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.expect("a pool of threads").install(|| {
            let dynamics = Sgnht { friction: 0.7, variance: 1.5, thermostat_precision: 2.0 };
            moved::<f32>(20, 5000, dynamics, Stein::new(Kernel::default()), true)
        })
    };
    let alone = run(1)?;
    for threads in [2, 5] {
        assert_eq!(run(threads)?, alone, "{threads} threads");
    }
    Ok(())
}

#[test]
fn a_run_that_is_resumed_has_the_bits_of_one_that_is_not() -> Result<()> {
    // Who goes on sums all distances afresh; who does not has summed them on the way.
    let sampler = |steps| {
        let dynamics = Sgnht { friction: 0.7, variance: 1.5, thermostat_precision: 2.0 };
        Sampler::new(target::<f32>(1500), dynamics, Stein::new(Kernel::default()))
            .start_normal(20, &[0.0; 1500], 1.0)
            .phase(SymmetricSplitting, steps, StepSize::Constant(0.05))
    };
    let half = sampler(3).run()?;
    let resumed = sampler(6).resume_from(half.checkpoint).run()?;
    assert_eq!(resumed.state, sampler(6).run()?.state);
    Ok(())
}

#[test]
fn a_strip_that_is_not_finite_names_the_particle() -> Result<()> {
    let mut start = random_states(20, 1500, 3);
    start.row_mut(7)[1400] = 1e200;
    let field = Stein::new(Kernel { bandwidth: Bandwidth::fixed(1e3), ..Kernel::default() });
    let mut system = System::new(target(1500), Langevin::new(), field, &start, 0)?;
    system.begin_step(3, 1e200);
    let error = system.advance(&[THETA], 1e200).expect_err("it has left all numbers").to_string();
    assert!(error.contains("particle 7"), "{error}");
    Ok(())
}
