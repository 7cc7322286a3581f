//! What a message costs between ranks: seconds by bytes, for the model in `experiments/ranks`.
//!
//! ```text
//! mpirun -n 2 target/release/examples/link > link.csv
//! ```
//!
//! A round trip goes from rank 0 to rank 1 and back. A broadcast goes from rank 0 to all, until the last of them has said
//! so. Of many, the fastest and the median: the fastest is what the link can do, also on a machine that others use.

use std::time::Instant;

use mpi::traits::{
    Communicator as _, CommunicatorCollectives as _, Destination as _, Root as _, Source as _,
};

/// Seconds for every size.
const LONG: f64 = 0.7;
const FEWEST: usize = 20;

fn main() {
    let Some(universe) = mpi::initialize() else { return };
    let world = universe.world();
    let (rank, last) = (world.rank(), world.size() - 1);
    if rank == 0 {
        println!("kind,ranks,bytes,fastest,median");
    }
    for power in (0..=22).step_by(2) {
        let mut numbers = vec![0.0_f64; 1 << power];
        let mut measure = |kind: &str, once: &mut dyn FnMut(&mut [f64])| {
            let mut times = Vec::new();
            let begun = Instant::now();
            loop {
                world.barrier();
                let start = Instant::now();
                once(&mut numbers);
                times.push(start.elapsed().as_secs_f64());
                let mut goes_on = [times.len() < FEWEST || begun.elapsed().as_secs_f64() < LONG];
                world.process_at_rank(0).broadcast_into(&mut goes_on[..]);
                if !goes_on[0] {
                    break;
                }
            }
            times.sort_by(f64::total_cmp);
            if rank == 0 {
                let (fastest, median) = (times[0], times[times.len() / 2]);
                println!("{kind},{},{},{fastest:.3e},{median:.3e}", last + 1, 8 << power);
            }
        };
        measure("round trip", &mut |numbers| match rank {
            0 => {
                world.process_at_rank(1).send(numbers);
                world.process_at_rank(1).receive_into(numbers);
            }
            1 => {
                world.process_at_rank(0).receive_into(numbers);
                world.process_at_rank(0).send(numbers);
            }
            _ => {}
        });
        measure("broadcast", &mut |numbers| {
            world.process_at_rank(0).broadcast_into(numbers);
            world.barrier();
        });
    }
}
