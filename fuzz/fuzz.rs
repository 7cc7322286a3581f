//! A mutational fuzzer that runs on stable, as part of the tests: good inputs, made worse.
//!
//! Included by the `fuzz` tests of the crates that have parsers. `cargo xtask fuzz` runs them with a
//! million inputs each; `cargo test` with a few thousand.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Instant;

/// Panics so far, also those that a parser catches itself.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// Gives a parser inputs that were made from the files of `fuzz/corpus/NAME`. `parse` says whether it
/// took one for good; a panic fails the test and leaves the input beside the corpus.
pub fn fuzz(name: &str, words: &[&str], mut parse: impl FnMut(&[u8]) -> bool) {
    // Panics are counted for the whole process, so that parsers take turns.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let inputs = setting("STEINFLOW_FUZZ_INPUTS", 5_000);
    let seed = setting("STEINFLOW_FUZZ_SEED", 1);
    count_panics();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let corpus = corpus(&folder.join("corpus").join(name));
    let (begun, before) = (Instant::now(), PANICS.load(Ordering::Relaxed));
    let (mut dice, mut accepted) = (Dice(seed), 0_u64);
    for number in 0..inputs {
        let input = match corpus.get(number as usize) {
            // As they are, first.
            Some(good) => good.clone(),
            None => mutate(&corpus, words, &mut dice),
        };
        let Ok(good) = catch_unwind(AssertUnwindSafe(|| parse(&input))) else {
            let path = folder.join(format!("{name}-{number}.panicked"));
            let _ = fs::write(&path, &input);
            panic!("{name}: input {number} of seed {seed} panicked: {}", path.display());
        };
        accepted += u64::from(good);
    }
    let caught = PANICS.load(Ordering::Relaxed) - before;
    println!(
        "| {name} | {} | {inputs} | {accepted} | 0 | {caught} | {:.0} |",
        corpus.len(),
        begun.elapsed().as_secs_f64()
    );
    assert!(accepted > 0, "{name}: not even the corpus is good");
}

/// A folder in memory where there is such a place: a million files wear a disk.
pub fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Counts panics and keeps them quiet, but for those of the tests themselves.
fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let is_own = info.location().is_some_and(|at| at.file().ends_with("fuzz.rs"));
            if is_own {
                usual(info);
            } else {
                PANICS.fetch_add(1, Ordering::Relaxed);
            }
        }));
    });
}

/// The files of a folder, by name, so that the same seed gives the same inputs everywhere.
fn corpus(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// A good input with one to six things wrong.
fn mutate(corpus: &[Vec<u8>], words: &[&str], dice: &mut Dice) -> Vec<u8> {
    const NUMBERS: [u64; 8] = [0, 1, 255, 1 << 16, 1 << 32, 1 << 53, u64::MAX >> 1, u64::MAX];
    let mut bytes = dice.pick(corpus).clone();
    for _ in 0..=dice.below(6) {
        let at = dice.below(bytes.len() + 1);
        let end = (at + dice.below(32)).min(bytes.len());
        match dice.below(10) {
            0 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            1 if at < bytes.len() => bytes[at] = dice.below(256) as u8,
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let copy = bytes[at..end].to_vec();
                let to = dice.below(bytes.len() + 1);
                drop(bytes.splice(to..to, copy));
            }
            5 => {
                let other = dice.pick(corpus);
                let from = dice.below(other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            6 if at + 8 <= bytes.len() => {
                bytes[at..at + 8].copy_from_slice(&dice.pick(&NUMBERS).to_le_bytes());
            }
            7 | 8 if !words.is_empty() => {
                let word = dice.pick(words).as_bytes().to_vec();
                drop(bytes.splice(at..end.min(at + dice.below(8)), word));
            }
            _ => {
                let noise: Vec<u8> = (0..dice.below(9)).map(|_| dice.below(256) as u8).collect();
                drop(bytes.splice(at..at, noise));
            }
        }
    }
    bytes
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.roll() % end.max(1) as u64) as usize
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}
