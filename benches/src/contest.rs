//! One work, all contenders, turn about.

use std::fmt::Write as _;
use std::time::Instant;

use serde::Serialize;
use serde_json::Value;

use crate::peers::Peers;
use crate::work::{FLOOR, Make};
use crate::{Result, inputs};

/// A turn lasts about this long, so that clocks and pipes do not count.
const TURN_SECONDS: f64 = 0.3;

/// What came of a work.
#[derive(Serialize)]
pub struct Contest {
    pub name: String,
    pub given: Value,
    pub goals: Vec<(String, f64)>,
    /// Floating-point operations of one repetition, where they say something.
    pub flops: Option<f64>,
    pub contenders: Vec<Contender>,
}

#[derive(Serialize)]
pub struct Contender {
    pub name: String,
    /// The largest difference of its answer from ours, over the largest entry of ours.
    pub difference: Option<f64>,
    pub repeats: usize,
    /// Seconds of one repetition, by round.
    pub seconds: Vec<f64>,
}

impl Contender {
    fn median(&self) -> f64 {
        median(&self.seconds)
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    }
}

impl Contest {
    pub fn hold(make: &Make, mut peers: Option<&mut Peers>, rounds: usize) -> Result<Self> {
        eprintln!("{} …", make.name);
        let folder = std::env::temp_dir().join(format!("steinflow-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let mut ours = (make.ours)(&folder)?;
        let names = match &mut peers {
            Some(peers) => peers.prepare(make.kind, &folder, &make.given)?,
            None => Vec::new(),
        };
        let begun = Instant::now();
        let reference = ours.answer()?;
        let answered = begun.elapsed().as_secs_f64();

        let mut contenders = vec![Contender {
            name: "steinflow".to_owned(),
            difference: None,
            repeats: if make.is_long { 1 } else { repeats(|n| time_ours(|| ours.repeat(), n))? },
            // What takes so long needs no second turn: the answer is the first.
            seconds: if make.is_long { vec![answered] } else { Vec::new() },
        }];
        if ours.floor()? {
            let repeats = repeats(|n| time_ours(|| ours.floor().map(drop), n))?;
            let (name, seconds) = (FLOOR.to_owned(), Vec::new());
            contenders.push(Contender { name, difference: None, repeats, seconds });
        }
        for name in names {
            let Some(peers) = &mut peers else { break };
            let begun = Instant::now();
            peers.answer(&name)?;
            let answered = begun.elapsed().as_secs_f64();
            let path = folder.join(format!("{name}.answer"));
            // A peer that does another computation has no answer to compare.
            let difference = if path.exists() {
                let theirs = inputs::read(&path)?;
                let difference = largest_difference(&reference, &theirs)?;
                if !(difference <= make.tolerance) {
                    return Err(format!(
                        "{}: {name} computes something else: it differs by {difference:.1e}, more \
                         than {:.0e}",
                        make.name, make.tolerance
                    )
                    .into());
                }
                Some(difference)
            } else {
                None
            };
            let (mut repeated, mut seconds) = (1, Vec::new());
            if !make.is_long {
                repeated = repeats(|n| peers.time(&name, n))?;
            } else if difference.is_some() {
                seconds.push(answered);
            } else {
                seconds.push(peers.time(&name, 1)?);
            }
            contenders.push(Contender { name, difference, repeats: repeated, seconds });
        }
        for _ in 0..if make.is_long { 0 } else { rounds } {
            for contender in &mut contenders {
                let repeats = contender.repeats;
                let total = match (&mut peers, contender.name.as_str()) {
                    (_, FLOOR) => time_ours(|| ours.floor().map(drop), repeats)?,
                    (Some(peers), name) if name != "steinflow" => peers.time(name, repeats)?,
                    _ => time_ours(|| ours.repeat(), repeats)?,
                };
                contender.seconds.push(total / contender.repeats as f64);
            }
        }
        std::fs::remove_dir_all(&folder)?;
        let (name, given) = (make.name.clone(), make.given.clone());
        Ok(Self { name, given, goals: make.goals.clone(), flops: make.flops, contenders })
    }

    /// Their time over ours, round by round: median, smallest and largest.
    fn ratios(&self, contender: &Contender) -> [f64; 3] {
        let ours = &self.contenders[0].seconds;
        let ratios: Vec<f64> =
            contender.seconds.iter().zip(ours).map(|(theirs, ours)| theirs / ours).collect();
        let smallest = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        [median(&ratios), smallest, ratios.into_iter().fold(0.0, f64::max)]
    }

    pub fn markdown(&self) -> String {
        let mut text = format!("### {}\n\n", self.name);
        text.push_str(
            "| contender | time | their time / ours (range over rounds) | goal | Gflop/s | answer differs by |\n\
             |---|---|---|---|---|---|\n",
        );
        for contender in &self.contenders {
            let [ratio, low, high] = self.ratios(contender);
            let goal = self.goals.iter().find(|(name, _)| *name == contender.name);
            let goal = goal.map_or(String::new(), |(_, goal)| {
                format!("≥ {goal}: {}", if ratio >= *goal { "met" } else { "missed" })
            });
            let rate = self
                .flops
                .map_or(String::new(), |flops| format!("{:.0}", flops / contender.median() / 1e9));
            let difference = contender.difference.map_or(String::new(), |x| format!("{x:.0e}"));
            let _ = writeln!(
                text,
                "| {} | {} | {ratio:.2} ({low:.2}–{high:.2}) | {goal} | {rate} | {difference} |",
                contender.name,
                in_words(contender.median()),
            );
        }
        text
    }
}

fn in_words(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.1} µs", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

fn time_ours(mut once: impl FnMut() -> Result<()> + Send, repeats: usize) -> Result<f64> {
    // On a thread of the pool, as a run is.
    rayon::scope(|_| {
        let begun = Instant::now();
        for _ in 0..repeats {
            once().map_err(|error| error.to_string())?;
        }
        Ok(begun.elapsed().as_secs_f64())
    })
    .map_err(|error: String| error.into())
}

/// How many repetitions fill a turn; the first are for warming up.
fn repeats(mut time: impl FnMut(usize) -> Result<f64>) -> Result<usize> {
    let first = time(1)?;
    let once = if first > TURN_SECONDS { first } else { time(3)? / 3.0 };
    Ok((TURN_SECONDS / once).ceil().clamp(1.0, 20_000.0) as usize)
}

fn largest_difference(ours: &[f32], theirs: &[f32]) -> Result<f64> {
    if ours.len() != theirs.len() {
        return Err(format!("{} numbers against {}", ours.len(), theirs.len()).into());
    }
    let largest = ours.iter().map(|x| f64::from(x.abs())).fold(0.0, f64::max);
    let pairs = ours.iter().zip(theirs);
    let difference = pairs.map(|(a, b)| f64::from((a - b).abs()));
    // A NaN must not be lost in a maximum.
    Ok(difference.fold(0.0, |most, x| if x <= most { most } else { x }) / largest)
}
