//! Random orders of rows: Fisher and Yates's shuffle, which with a Mersenne Twister repeats NumPy's
//! legacy `permutation`.

use rand_mt::Mt;

/// The numbers 0 … n − 1 in random order; n is at most 2³², which no table reaches.
///
/// An index up to `last` is drawn as the low bits of a word, again until it is in range. That, and the
/// walk from the end, is what NumPy's legacy generator does, so the same words give the same order.
pub(super) fn permutation(n: usize, mut next_word: impl FnMut() -> u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for last in (1..n).rev() {
        let mask = u32::MAX >> (last as u32).leading_zeros();
        let index = loop {
            let index = (next_word() & mask) as usize;
            if index <= last {
                break index;
            }
        };
        order.swap(last, index);
    }
    order
}

/// What `numpy.random.seed(1)` and then `numpy.random.permutation(n)`, again and again, would give.
pub(super) fn numpy_permutations(n: usize) -> impl Iterator<Item = Vec<usize>> {
    const SEED: u32 = 1;
    let mut generator = Mt::new(SEED);
    std::iter::repeat_with(move || permutation(n, || generator.next_u32()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `numpy.random.RandomState(1).permutation(10)`, as its users know it.
    #[test]
    fn a_short_permutation_is_numpys() {
        let first = numpy_permutations(10).next().unwrap();
        assert_eq!(first, [2, 9, 6, 4, 0, 3, 1, 7, 8, 5]);
    }

    #[test]
    fn every_number_occurs_once() {
        for n in [0, 1, 2, 3, 64, 65, 1000] {
            let mut order = numpy_permutations(n).nth(2).unwrap();
            order.sort_unstable();
            assert!(order.into_iter().eq(0..n));
        }
    }
}
