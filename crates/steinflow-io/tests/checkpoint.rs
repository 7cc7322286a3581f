//! Checkpoint files come back to the same bits, and damaged ones are never taken for good.

use std::fs;
use std::path::Path;

use steinflow::dynamics::Langevin;
use steinflow::field::ProductSpace;
use steinflow::integrator::{Euler, StepSize};
use steinflow::kernel::Kernel;
use steinflow::precondition::RootMeanSquare;
use steinflow::run::{NonFinitePolicy, Samples, Trace};
use steinflow::target::PerParticle;
use steinflow::{Real, Sampler};
use steinflow_io::{CheckpointFile, Collected, Error, SavedRun, Unfinished, write_checkpoint};

/// A run with something in every field of its checkpoint.
fn saved<T: Real>() -> SavedRun<'static, T> {
    let walled = PerParticle::new(2, |theta: &[T], score: &mut [T]| {
        let far = theta.iter().any(|x| x.as_f64().abs() > 3.0);
        score[0] = if far { T::nan() } else { -theta[0] };
        score[1] = -theta[1];
        T::of(-0.5 * theta.iter().map(|x| x.as_f64().powi(2)).sum::<f64>())
    });
    let (mut trace, mut samples) = (Trace::new(1), Samples::new(1, 2));
    let outcome = Sampler::new(walled, Langevin::new(), ProductSpace::new(Kernel::default(), 3))
        .start_normal(5, &[0.5, 0.5], 1.0)
        .phase(Euler, 7, StepSize::Constant(9.0))
        .precondition(RootMeanSquare::default())
        .on_non_finite(NonFinitePolicy::Shrink)
        .observe(trace.observer())
        .observe(samples.observer())
        .run()
        .unwrap();
    let checkpoint = outcome.checkpoint;
    assert!(checkpoint.shrinks > 0 && !checkpoint.past.is_empty());
    assert!(!checkpoint.particles.field.is_empty());
    let collected = Collected::from(&samples);
    SavedRun {
        config: "model = 'ring'\n# θ\n".to_owned(),
        inputs: "data.csv 0a1b\n".to_owned(),
        checkpoint,
        trace: trace.rows().to_vec().into(),
        samples: Some(Collected {
            chains: collected.chains,
            steps: collected.steps.into_owned().into(),
            values: collected.values.into_owned().into(),
        }),
        frames: Some(Collected {
            chains: 2,
            steps: vec![0, 4].into(),
            values: vec![0.5, -0.0, f32::MIN_POSITIVE, 1e30].into(),
        }),
    }
}

fn bytes<T: Real>(run: &SavedRun<'_, T>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_checkpoint(run, &mut bytes).unwrap();
    bytes
}

fn parse(bytes: Vec<u8>) -> Result<CheckpointFile, Error> {
    CheckpointFile::parse(Path::new("checkpoint-1"), bytes)
}

fn comes_back<T: Real>() {
    let run = saved::<T>();
    let bare = SavedRun { samples: None, frames: None, ..run.clone() };
    for run in [run, bare] {
        let file = parse(bytes(&run)).unwrap();
        assert_eq!((file.config(), file.inputs()), (run.config.as_str(), run.inputs.as_str()));
        assert_eq!(file.step(), 7);
        // By way of text, which tells −0 from 0.
        assert_eq!(format!("{:?}", file.decode::<T>().unwrap()), format!("{run:?}"));
    }
}

#[test]
fn both_precisions_come_back_to_the_same_bits() {
    comes_back::<f64>();
    comes_back::<f32>();
    let error = parse(bytes(&saved::<f32>())).unwrap().decode::<f64>().unwrap_err();
    assert!(error.to_string().contains("is not in f64"), "{error}");
}

#[test]
fn damage_of_any_kind_is_found() {
    let good = bytes(&saved::<f64>());
    for length in 0..good.len() {
        assert!(parse(good[..length].to_vec()).is_err(), "cut to {length}");
    }
    for place in 0..good.len() {
        for bit in [0, 3, 7] {
            let mut bad = good.clone();
            bad[place] ^= 1 << bit;
            assert!(parse(bad).is_err(), "bit {bit} of byte {place}");
        }
    }
    assert!(parse([&good[..], b"\0"].concat()).is_err());
    let name = b"steinflow checkpoint ".len();
    let newer = [&good[..name], b"9", &good[name + 1..]].concat();
    let error = parse(newer).unwrap_err();
    assert!(error.to_string().contains("version `9`"), "{error}");
}

/// A run that has begun.
fn begun(place: &Path) -> Unfinished {
    let mut folder = Unfinished::open(place).unwrap();
    folder.begin(b"seed = 1\n", None).unwrap();
    folder
}

#[test]
fn an_unfinished_run_appears_with_its_settings_or_not_at_all() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path().join("a");
    let mut folder = Unfinished::open(&place).unwrap();
    assert!(!Unfinished::path_of(&place).exists() && Unfinished::find(&place).unwrap().is_none());
    // Two may be about to begin; the second finds that the first has.
    let mut second = Unfinished::open(&place).unwrap();
    folder.begin(b"seed = 1\n", Some((3, b"bytes"))).unwrap();
    assert!(matches!(second.begin(b"seed = 2\n", None), Err(Error::RunInUse { .. })));
    drop(second);
    let names = |path: &Path| {
        let entries = fs::read_dir(path).unwrap().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let all = [".steinflow-unfinished", "checkpoint-000000000003", "config.toml"];
    assert_eq!(names(folder.path()), all);
    assert_eq!(names(scratch.path()), ["a.unfinished"]);
    drop(folder);

    // Another run in the same place has none of the first one's checkpoints.
    let mut folder = Unfinished::find(&place).unwrap().unwrap();
    folder.begin(b"seed = 2\n", None).unwrap();
    assert_eq!(fs::read(folder.config().unwrap()).unwrap(), b"seed = 2\n");
    assert!(folder.checkpoints().is_empty());
    drop(folder);
    // It was found, so it stays, whatever became of who found it.
    assert!(Unfinished::find(&place).unwrap().is_some());
}

#[test]
fn what_is_not_an_unfinished_run_of_that_name_is_never_touched() {
    let scratch = tempfile::tempdir().unwrap();
    let (place, taken) = (scratch.path().join("a"), scratch.path().join("a.unfinished"));
    let refused = |words: &str| {
        for error in [Unfinished::open(&place).unwrap_err(), Unfinished::find(&place).unwrap_err()]
        {
            assert!(matches!(error, Error::NotUnfinished { .. }) && error.is_usage(), "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
        assert!(!Unfinished::exists(&place));
        Unfinished::discard(&place);
    };
    fs::create_dir(&taken).unwrap();
    fs::write(taken.join("config.toml"), b"mine").unwrap();
    fs::write(taken.join("checkpoint-000000000001"), b"mine").unwrap();
    refused("without its mark");
    assert_eq!(fs::read(taken.join("config.toml")).unwrap(), b"mine");
    assert_eq!(fs::read_dir(&taken).unwrap().count(), 2);

    // One that was renamed is of another run.
    fs::rename(&taken, scratch.path().join("elsewhere")).unwrap();
    let other = begun(&scratch.path().join("other"));
    other.write_checkpoint(1, |file| write_checkpoint(&saved::<f64>(), file)).unwrap();
    let path = other.path().to_owned();
    drop(other);
    fs::rename(&path, &taken).unwrap();
    refused("another run");
    assert_eq!(fs::read_dir(&taken).unwrap().count(), 3);
    fs::rename(&taken, &path).unwrap();

    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&path, &taken).unwrap();
        refused("a symbolic link");
        assert_eq!(fs::read_dir(&path).unwrap().count(), 3);
        fs::remove_file(&taken).unwrap();
    }
    fs::write(&taken, b"mine").unwrap();
    refused("a file");
    assert_eq!(fs::read(&taken).unwrap(), b"mine");
}

#[test]
fn the_two_newest_are_kept_and_a_damaged_one_is_passed_over() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path().join("runs/a");
    let folder = begun(&place);
    let mut run = saved::<f64>();
    for step in [5, 10, 100] {
        run.checkpoint.step = step;
        folder.write_checkpoint(step, |file| write_checkpoint(&run, file)).unwrap();
    }
    let steps: Vec<u64> = folder.checkpoints().into_iter().map(|(step, _)| step).collect();
    assert_eq!(steps, [100, 10]);
    let (newest, wrong) = folder.newest();
    assert_eq!((newest.unwrap().step(), wrong.len()), (100, 0));

    let path = folder.checkpoints()[0].1.clone();
    let mut bad = fs::read(&path).unwrap();
    bad[200] ^= 4;
    fs::write(&path, bad).unwrap();
    let (newest, wrong) = folder.newest();
    assert_eq!(newest.unwrap().step(), 10);
    assert!(wrong[0].to_string().contains("checkpoint-000000000100"), "{}", wrong[0]);
    assert!(Unfinished::exists(&place));
    folder.remove();
    assert!(!Unfinished::exists(&place));
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[test]
fn a_failed_write_keeps_what_was_there() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = begun(&scratch.path().join("a"));
    let run = saved::<f64>();
    folder.write_checkpoint(7, |file| write_checkpoint(&run, file)).unwrap();
    let full = || std::io::Error::from(std::io::ErrorKind::StorageFull);
    let error = folder
        .write_checkpoint(9, |file| {
            std::io::Write::write_all(file, b"half")?;
            Err(full())
        })
        .unwrap_err();
    assert!(error.to_string().contains("free some space"), "{error}");
    assert_eq!(folder.newest().0.unwrap().step(), 7);
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert_eq!(names.len(), 3, "the mark, the settings and the checkpoint: {names:?}");
}

#[test]
fn a_run_has_one_writer_at_a_time() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path().join("new/a");
    let first = begun(&place);
    let error = Unfinished::open(&place).unwrap_err();
    assert!(matches!(error, Error::RunInUse { .. }) && error.is_usage(), "{error}");
    drop(first);
    // Without a checkpoint nothing is worth keeping.
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    drop(begun(&place));

    let first = begun(&place);
    first.write_checkpoint(1, |file| write_checkpoint(&saved::<f64>(), file)).unwrap();
    drop(first);
    assert!(Unfinished::exists(&place));
    let again = Unfinished::open(&place).unwrap();
    // What somebody else has put there stays.
    fs::write(again.path().join("notes.txt"), b"mine").unwrap();
    let path = again.path().to_owned();
    again.remove();
    assert_eq!(fs::read_dir(path).unwrap().count(), 1);
}
