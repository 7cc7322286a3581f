//! How long a run takes on this machine's processor and on a GPU: what `--device auto` compares.
//!
//! Fitted to single steps on a machine with 16 threads and one H200 (`benches/runs/2026-11-17-h200`); the tests below ask
//! that the rows of that file are met within a factor of 2.5, and say which two kinds are left out. A step is so many
//! moves; with N particles, D numbers in a particle's state, d coordinates and T threads, in seconds,
//!
//! ```text
//! processor   15e-6 a move + 0.25e-9 min(N², 1.5e5)(D + 33) a step + 0.065e-9 N²(D + 60)/T a move
//! GPU         14e-6 a move + 1e-6 min(N/300, 1)(15 + min(d, 60)) a move + 0.029e-12 N²(D + 10) a move
//! ```
//!
//! of which the second term of the processor is the median. Double precision takes twice as long on the processor,
//! and sums 7 times on the GPU. What that file has no row for is an estimate, and says so.

use std::thread::available_parallelism;

/// How much there is to do in a run.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "four facts about a run that have nothing to do with each other"
)]
pub(crate) struct Work {
    pub steps: u64,
    /// Velocities in a step.
    pub moves: usize,
    pub particles: usize,
    /// Coordinates of the target.
    pub dim: usize,
    /// Blocks of that many numbers in a particle's state.
    pub blocks: usize,
    /// Rows of data that a gradient reads.
    pub rows: usize,
    pub is_f32: bool,
    /// Whether particles feel each other.
    pub interacts: bool,
    /// Whether there is noise.
    pub is_random: bool,
    /// Whether a GPU has to ask the processor for gradients.
    pub is_hosts: bool,
}

/// Seconds that opening a GPU and compiling for it take.
const OPENING: f64 = 1.35;

/// Pairs from which on the processor looks at a sample of them for its median, about.
const MEDIAN_PAIRS: f64 = 1.5e5;

impl Work {
    /// Whether a GPU is faster than this machine's processor.
    pub(crate) fn is_for_gpu(self) -> bool {
        let threads = available_parallelism().map_or(1, std::num::NonZero::get);
        self.on_gpu(threads) < self.on_processor(threads)
    }

    /// Seconds on a processor with so many threads.
    fn on_processor(self, threads: usize) -> f64 {
        let threads = threads as f64;
        let mut step = self.moves() * 15e-6;
        if self.interacts {
            step += self.pairs().min(MEDIAN_PAIRS) * (self.width() + 33.0) * 0.25e-9;
            step += self.moves() * self.pairs() * (self.width() + 60.0) * 0.065e-9 / threads;
        }
        // That file has no row without sums: of two other cores, 6.6 ns for a number with noise in f32 and 7.5 in f64,
        // where sums took 2.3 times as long in f64.
        let each = if self.is_random { 7e-9 } else { 2e-9 };
        let passes = self.moves() * self.numbers() * each / threads;
        let precision = if self.is_f32 { 1.0 } else { 2.0 };
        self.steps as f64 * (precision * step + passes + self.gradient_on_processor(threads))
    }

    /// Seconds on a GPU, with what opening it takes, beside a processor with so many threads.
    fn on_gpu(self, threads: usize) -> f64 {
        let mut step = self.moves() * 14e-6;
        if self.interacts {
            let filled = (self.particles as f64 / 300.0).min(1.0);
            let precision = if self.is_f32 { 1.0 } else { 7.0 };
            let sums = self.pairs() * (self.width() + 10.0) * 0.029e-12 * precision;
            step += self.moves() * (filled * (15.0 + (self.dim as f64).min(60.0)) * 1e-6 + sums);
        }
        // Estimates: ten passes through the state at 2 TB/s, and to the host and back at 10 GB/s.
        let bytes = self.numbers() * if self.is_f32 { 4.0 } else { 8.0 };
        step += self.moves() * 10.0 * bytes / 2e12;
        if self.is_hosts {
            step += self.gradient_on_processor(threads as f64) + 2.0 * bytes / 10e9;
        } else {
            step += self.gradient() / 15e12;
        }
        OPENING + self.steps as f64 * step
    }

    fn gradient_on_processor(self, threads: f64) -> f64 {
        self.gradient() / 12e9 / threads
    }

    /// Operations of a gradient.
    fn gradient(self) -> f64 {
        self.particles as f64 * self.rows as f64 * self.dim as f64 * 6.0
    }

    fn moves(self) -> f64 {
        self.moves as f64
    }

    fn pairs(self) -> f64 {
        (self.particles as f64).powi(2)
    }

    /// D.
    fn width(self) -> f64 {
        (self.dim * self.blocks) as f64
    }

    fn numbers(self) -> f64 {
        self.particles as f64 * self.width()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{OPENING, Work};

    /// What was measured: the work of a step, threads, and medians in seconds.
    struct Row {
        work: Work,
        threads: usize,
        processor: Option<f64>,
        gpu: f64,
    }

    fn measured() -> Vec<Row> {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../benches/runs/2026-11-17-h200/steinflow.jsonl"
        );
        let text = std::fs::read_to_string(file).unwrap();
        let rows = text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap());
        rows.filter_map(|row: Value| {
            let seconds = |name: &str| {
                let sorted = row[name].as_array()?;
                Some(sorted[sorted.len() / 2].as_f64()? * 1e-3)
            };
            let count = |name: &str| usize::try_from(row[name].as_u64()?).ok();
            let (particles, dim) = (count("particles")?, count("dim")?);
            let is_network = row["work"].as_str()?.starts_with("network");
            let rows = match row["work"].as_str()? {
                work if work.starts_with("logistic") => 1000,
                _ if is_network => 100,
                _ => 0,
            };
            // Short products are no setting that `auto` is asked about, and the score of this one was made faster
            // after it was timed.
            if row["precision"] == "tf32" || (rows, dim) == (0, 4653) {
                return None;
            }
            let (moves, blocks) = if is_network { (3, 2) } else { (1, 1) };
            let work = Work {
                steps: 1,
                moves,
                particles,
                dim,
                blocks,
                rows,
                is_f32: row["precision"] == "f32",
                interacts: true,
                is_random: false,
                is_hosts: false,
            };
            let gpu = seconds("gpu_ms")?;
            Some(Row { work, threads: count("threads")?, processor: seconds("cpu_ms"), gpu })
        })
        .collect()
    }

    #[test]
    fn it_says_what_was_measured() {
        let rows = measured();
        let timed = rows.iter().filter(|row| row.processor.is_some()).count();
        assert!(rows.len() >= 26 && timed >= 17, "{} rows, {timed} of both", rows.len());
        for Row { work, threads, processor, gpu } in rows {
            let both = [
                ("processor", processor, work.on_processor(threads)),
                ("GPU", Some(gpu), work.on_gpu(threads) - OPENING),
            ];
            for (where_to, measured, said) in both {
                let Some(measured) = measured else { continue };
                let ratio = said / measured;
                assert!((0.4..2.5).contains(&ratio), "{where_to}: {ratio:.2} of {work:?}");
            }
        }
    }

    #[test]
    fn it_chooses_what_was_faster() {
        let mut choices = [0, 0];
        for Row { work, threads, processor, gpu } in measured() {
            let Some(processor) = processor else { continue };
            for steps in [100_u32, 1000, 10_000, 100_000] {
                let work = Work { steps: steps.into(), ..work };
                let (here, there) =
                    (processor * f64::from(steps), OPENING + gpu * f64::from(steps));
                // Where they differ by so little, either is right.
                if (0.5..2.0).contains(&(there / here)) {
                    continue;
                }
                assert_eq!(
                    work.on_gpu(threads) < work.on_processor(threads),
                    there < here,
                    "{work:?}"
                );
                choices[usize::from(there < here)] += 1;
            }
        }
        assert!(choices.iter().all(|&count| count > 10), "{choices:?}");
    }

    #[test]
    fn noise_precision_and_the_hosts_gradients_count() {
        let many = Work {
            steps: 2000,
            moves: 1,
            particles: 1000,
            dim: 54,
            blocks: 1,
            rows: 100_000,
            is_f32: true,
            interacts: false,
            is_random: true,
            is_hosts: false,
        };
        let goes = |work: Work| work.on_gpu(16) < work.on_processor(16);
        // Gradients on many rows are no faster where the processor makes them.
        assert!(goes(many) && !goes(Work { is_hosts: true, ..many }));
        // A diffusion of many particles is work, too.
        let diffusion = Work { rows: 0, particles: 1_000_000, ..many };
        assert!(goes(diffusion) && !goes(Work { particles: 100, ..diffusion }));
        // Double precision costs a GPU more.
        let sums = Work {
            interacts: true,
            is_random: false,
            particles: 16_384,
            steps: 20_000,
            ..diffusion
        };
        let ratio = |work: Work| work.on_gpu(16) / work.on_processor(16);
        assert!(ratio(Work { is_f32: false, ..sums }) > 2.0 * ratio(sums));
    }
}
