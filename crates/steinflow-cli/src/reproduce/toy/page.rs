//! The words of the page; whatever they say of results is computed from them.

use std::fmt::Write as _;

use super::Toy;
use super::tally::{Tally, markdown};

/// Title, command and target.
pub fn opening(name: &str, toy: &Toy) -> String {
    let seed = toy.seed;
    let quick = if toy.quick { " --quick" } else { "" };
    format!(
        "# The paper's toy: three crescents\n\n\
         Shen, Heinonen and Kaski, [De-randomizing MCMC dynamics with the diffusion Stein \
         operator](https://arxiv.org/abs/2110.03768) (2021), compare their samplers on a density of \
         three crescents, with all particles started in the middle one. This page and everything \
         beside it comes from one command (steinflow {version}, {system}, f64, any number of threads):\n\n\
         ```sh\nsteinflow reproduce {name} --seed {seed}{quick}\n```\n\n\
         The target is π(x, y) ∝ ⅓ Σᵢ exp(−x⁴/10 − ½(4(y − zᵢ) − x²)²) with z ∈ {{−2, 0, 2}}; a barrier \
         of 7.3 nats lies between neighbours. As printed in the paper the square has no minus sign and \
         zᵢ multiplies y, which cannot be normalised; this is the crescent of Ma, Chen and Fox (2015), \
         whom the paper follows, once for every zᵢ. Particles start at N(0, 0.01 I) and the metric is \
         G⁻¹ = 1.5 √|U + 0.5|, both as in the paper, with U = −log π. The kernel is squared exponential \
         on all of the state with h = med²/log N. The paper's text on the toy gives neither step sizes \
         nor frictions nor the number of particles.\n",
        version = env!("CARGO_PKG_VERSION"),
        system = format_args!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
    )
}

/// The section about final particles; `others` are variants and exact samples.
pub fn samples(
    toy: &Toy,
    seeds: &[u64],
    found: f64,
    reference: usize,
    methods: &[Tally],
    others: &[Tally],
) -> String {
    let (first, last) = (seeds.first().unwrap_or(&0), seeds.last().unwrap_or(&0));
    let mut text = format!(
        "\n## Final particles\n\n\
         ![final particles of every method](samples.png)\n\n\
         **Run.** [`methods.toml`](methods.toml), {particles} particles; the figure shows seed {first}, \
         the tables are over seeds {first} to {last}: mean (least–largest) of the share of particles in \
         each crescent. “All three” counts seeds in which every crescent holds at least {least:.0} %, \
         “only the middle” those in which no particle is elsewhere. The energy distance is to \
         {reference} exact samples. [`samples.csv`](samples.csv) has the particles of the figure, \
         [`samples-seeds.csv`](samples-seeds.csv) every seed. Beyond the paper stand Blob, SGNHT-Stein, \
         SVGD-product (the product-space sampler: SVGD with the noise that makes it exact) and LAWGD \
         (the inverse generator on a grid).\n\n\
         **The paper.** “While all methods explore the mode nearest to initialization, only RHMC \
         explores all three modes.”\n\n\
         **What we see.**\n\n{table}\n",
        particles = toy.methods.particles,
        least = 100.0 * found,
        table = markdown(methods),
    );
    let paper: Vec<&Tally> = methods.iter().filter(|tally| tally.in_paper).collect();
    let count =
        |tally: &Tally| format!("{} in {} of {} seeds", tally.label, tally.found_all, tally.runs);
    let (explorers, others_of_paper): (Vec<&Tally>, Vec<&Tally>) =
        paper.iter().partition(|tally| tally.is_explorer());
    let holds = explorers.iter().all(|tally| tally.always_finds_all())
        && others_of_paper.iter().all(|tally| tally.always_stays());
    let counts: Vec<String> = paper.iter().map(|tally| count(tally)).collect();
    let _ = writeln!(
        text,
        "Of the paper's methods, all three crescents are found by {}. With these settings the paper's \
         claim {}.\n",
        counts.join(", "),
        if holds { "holds in every seed" } else { "holds in part only" },
    );
    let _ = write!(
        text,
        "**Where we differ.** The settings above were searched for, so that the claim could be seen. The \
         same methods with other steps or frictions, and chains with noise ([`samples.toml`](samples.toml), \
         same seeds):\n\n{}\n",
        markdown(others)
    );
    let escapes: Vec<String> = others
        .iter()
        .filter(|tally| tally.found_all > 0 && !tally.is_explorer() && tally.is_deterministic())
        .map(count)
        .collect();
    let misses: Vec<String> = others
        .iter()
        .filter(|tally| tally.is_explorer() && !tally.always_finds_all())
        .map(count)
        .collect();
    if !misses.is_empty() {
        let _ = writeln!(
            text,
            "- **SGRHMC-Stein needs its settings.** All three crescents are found by: {}.",
            misses.join("; ")
        );
    }
    if !escapes.is_empty() {
        let _ = writeln!(
            text,
            "- **Other methods find all three as well**, with other steps or less friction: {}.",
            escapes.join("; ")
        );
    }
    if !(misses.is_empty() || escapes.is_empty()) {
        text.push_str(
            "- Which method crosses is therefore a matter of step size, friction and number of \
             particles, not of geometry alone.\n",
        );
    }
    text.push_str(
        "- As many exact samples as particles show what energy distance to expect of perfect ones; a \
         set below it is more even than chance.\n",
    );
    text
}
