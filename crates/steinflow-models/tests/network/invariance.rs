//! What must not change the answer: threads, tiles, the order of particles, the cut into minibatches.

use steinflow::{LogDensity, Matrix, Minibatch, Real};
use steinflow_models::Describe;
use steinflow_models::network::{Activation, Bnn};

use crate::support::{at, data, disagreement, learned, model};

fn all_at_once<T: Real>(model: &Bnn<T>, theta: &Matrix<T>) -> (Vec<T>, Matrix<T>) {
    let (mut values, mut score) =
        (vec![T::zero(); theta.rows()], Matrix::zeros(theta.rows(), model.dim()));
    model.evaluate(theta.as_ref(), None, &mut values, score.as_mut()).unwrap();
    (values, score)
}

#[test]
fn the_bits_do_not_depend_on_the_threads() {
    // More rows than a block.
    let model = model::<f32>(&[20, 8], Activation::Relu, &data(1500, 5), learned());
    let theta: Matrix<f32> = model.start_sample(33, 1).unwrap().cast();
    let with_threads = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| all_at_once(&model, &theta))
    };
    assert_eq!(with_threads(1), with_threads(4));
}

#[test]
fn a_particle_does_not_see_the_others() {
    let model = model::<f64>(&[10], Activation::Tanh, &data(200, 3), learned());
    let theta = model.start_sample(9, 1).unwrap();
    let (values, scores) = all_at_once(&model, &theta);
    for i in 0..9 {
        assert_eq!(at(&model, theta.row(i), None), (values[i], scores.row(i).to_vec()));
    }
}

#[test]
fn minibatches_of_a_partition_average_to_the_whole() {
    let rows = 1400;
    let model = model::<f64>(&[9], Activation::Relu, &data(rows, 3), learned());
    let theta = model.start_sample(1, 4).unwrap().row(0).to_vec();
    let (value, score) = at(&model, &theta, None);
    let batches = 7;
    let (mut mean, mut mean_score) = (0.0, vec![0.0; theta.len()]);
    for batch in 0..batches {
        // Strided and reversed, so that order and place do not matter.
        let indices = (0..rows / batches).rev().map(|i| i * batches + batch).collect();
        let batch = Minibatch { indices, scale: batches as f64 };
        let (value, batch_score) = at(&model, &theta, Some(&batch));
        assert!(disagreement(&batch_score, &score) > 1e-3, "a part is not the whole");
        mean += value / batches as f64;
        for (mean, s) in mean_score.iter_mut().zip(batch_score) {
            *mean += s / batches as f64;
        }
    }
    assert!((mean - value).abs() < 1e-11 * value.abs());
    assert!(disagreement(&mean_score, &score) < 1e-11);
}

/// Batches of every size around the width of a register and of a tile, one after the other on one
/// model, so that leftovers of a larger one would show.
#[test]
fn no_size_of_batch_reads_what_another_left_behind() {
    let data = data(300, 3);
    let warm = model::<f64>(&[6, 5], Activation::Tanh, &data, learned());
    let theta = warm.start_sample(1, 4).unwrap().row(0).to_vec();
    for size in [300, 1, 15, 16, 17, 100, 127, 128, 129, 2, 257, 0] {
        let batch = Minibatch { indices: (0..size).collect(), scale: 3.0 };
        let fresh = model::<f64>(&[6, 5], Activation::Tanh, &data, learned());
        assert_eq!(at(&warm, &theta, Some(&batch)), at(&fresh, &theta, Some(&batch)));
        let singles = (0..size).map(|row| {
            let batch = Minibatch { indices: vec![row], scale: 3.0 };
            at(&fresh, &theta, Some(&batch)).0
        });
        let prior = at(&fresh, &theta, Some(&Minibatch { indices: vec![], scale: 3.0 })).0;
        let sum = prior + singles.map(|value| value - prior).sum::<f64>();
        let value = at(&warm, &theta, Some(&batch)).0;
        assert!((value - sum).abs() < 1e-10 * sum.abs().max(1.0), "{size}: {value} and {sum}");
    }
}

#[test]
fn a_copy_gives_the_same_answers() {
    let model = model::<f64>(&[6], Activation::Relu, &data(40, 2), learned());
    let theta = model.start_sample(1, 4).unwrap().row(0).to_vec();
    assert_eq!(at(&model, &theta, None), at(&model.clone(), &theta, None));
}
