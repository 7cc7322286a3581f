//! What is read from files may be anything: checkpoints, Parquet tables, journals.

#[path = "../../../fuzz/fuzz.rs"]
mod fuzz;

use std::fs;
use std::path::{Path, PathBuf};

use fuzz::{fuzz, scratch};
use sha2::{Digest as _, Sha256};
use steinflow::Sampler;
use steinflow::dynamics::Langevin;
use steinflow::field::ProductSpace;
use steinflow::integrator::{Euler, StepSize};
use steinflow::kernel::Kernel;
use steinflow::precondition::RootMeanSquare;
use steinflow::run::{NonFinitePolicy, Samples};
use steinflow::target::PerParticle;
use steinflow_io::{CheckpointFile, Collected, Journal, SavedRun, read_parquet};

/// The sampler that the corpus was made with.
fn sampler() -> Sampler<'static, f64> {
    let normal = PerParticle::new(2, |theta: &[f64], score: &mut [f64]| {
        score.copy_from_slice(&[-theta[0], -theta[1]]);
        -0.5 * (theta[0].powi(2) + theta[1].powi(2))
    });
    Sampler::new(normal, Langevin::new(), ProductSpace::new(Kernel::default(), 3))
        .start_normal(3, &[0.5, 0.5], 1.0)
        .phase(Euler, 9, StepSize::Constant(0.1))
        .precondition(RootMeanSquare::default())
        .on_non_finite(NonFinitePolicy::Shrink)
}

/// Takes up a run that passed for good, as the command does.
fn resume(run: SavedRun<'_, f64>) -> bool {
    if let Some(Collected { chains, steps, values }) = run.samples {
        let rows = steps.len().saturating_mul(chains);
        let columns = values.len().checked_div(rows).unwrap_or(0);
        let theta = steinflow::Matrix::from_vec(values.to_vec(), rows, columns);
        if theta.is_none_or(|theta| Samples::resume(1, 1, chains, steps.to_vec(), theta).is_err()) {
            return false;
        }
    }
    sampler().resume_from(run.checkpoint).run().is_ok()
}

#[test]
fn checkpoints() {
    fuzz("checkpoint", &[], |bytes| {
        let path = Path::new("checkpoint-1");
        let is_whole = CheckpointFile::parse(path, bytes.to_vec()).is_ok();
        // The checksum keeps nearly everything out; with a right one, what is behind it must hold too.
        let head = b"steinflow checkpoint 4\n".len() + 8;
        let Some(payload) = bytes.len().checked_sub(32).and_then(|end| bytes.get(head..end)) else {
            return is_whole;
        };
        let length = (payload.len() as u64).to_le_bytes();
        let mut sealed = [b"steinflow checkpoint 4\n", &length[..], payload].concat();
        sealed.extend_from_slice(&Sha256::digest(&sealed));
        let file = CheckpointFile::parse(path, sealed);
        file.is_ok_and(|file| {
            let _ = file.decode::<f32>();
            file.decode::<f64>().is_ok_and(resume)
        })
    });
}

/// A file that is overwritten by every input.
fn in_file(folder: &tempfile::TempDir, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join("input");
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn parquet_tables() {
    let folder = scratch();
    fuzz("parquet", &[], |bytes| read_parquet(in_file(&folder, bytes)).is_ok());
}

#[test]
fn journals() {
    let folder = scratch();
    let words = ["{", "}", "\n", "\"job\":", "\"settings\":", "1e999", "null", "\\u0000", "[["];
    fuzz("journal", &words, |bytes| {
        let journal = Journal::open(in_file(&folder, bytes), "steps = 10");
        journal.is_ok_and(|journal| journal.find::<f64>("seed 1").is_some())
    });
}

/// `cargo test -p steinflow-io --test fuzz -- --ignored` makes the binary part of the corpus again,
/// after the format of checkpoints has changed.
#[test]
#[ignore = "writes into the repository"]
fn make_the_corpus() {
    use steinflow::run::Trace;
    use steinflow_io::{Column, Values, write_checkpoint, write_parquet};
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let (mut trace, mut samples) = (Trace::new(4), Samples::new(1, 5));
    let outcome = sampler().observe(trace.observer()).observe(samples.observer()).run().unwrap();
    let run = SavedRun {
        config: "model = 'standard-normal'\n".to_owned(),
        inputs: "steinflow 0.1.0".to_owned(),
        checkpoint: outcome.checkpoint,
        trace: trace.rows().into(),
        samples: Some(Collected::from(&samples)),
        frames: Some(Collected {
            chains: 1,
            steps: vec![0, 8].into(),
            values: vec![0.5, -1.0, 2.0, 0.25].into(),
        }),
    };
    let plain = SavedRun { samples: None, frames: None, trace: Vec::new().into(), ..run.clone() };
    for (name, run) in [("whole", run), ("plain", plain)] {
        let file = fs::File::create(corpus.join("checkpoint").join(name)).unwrap();
        write_checkpoint(&run, file).unwrap();
    }
    let column = |name: &str, values| Column { name: name.to_owned(), values };
    let tables = [
        ("floats", vec![column("x", Values::F64(vec![0.5, -1.0, f64::NAN]))]),
        (
            "mixed",
            vec![
                column("step", Values::U64(vec![0, 7, u64::MAX])),
                column("y", Values::F32(vec![1.0, 2.0, 3.0])),
            ],
        ),
    ];
    for (name, columns) in tables {
        let file =
            fs::File::create(corpus.join("parquet").join(format!("{name}.parquet"))).unwrap();
        write_parquet(&columns, file).unwrap();
    }
}
