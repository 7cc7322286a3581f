//! Messages: headers, words and numbers between rank 0 and the others.

use std::sync::atomic::{AtomicBool, Ordering};

use mpi::Threading;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, Destination as _, Equivalence, Root as _, Source as _};

static JOINED: AtomicBool = AtomicBool::new(false);

/// Whether this process is one of several.
pub(crate) fn has_joined() -> bool {
    JOINED.load(Ordering::Relaxed)
}

/// Numbers in a message: MPI counts them by a C `int`.
const PIECE: usize = 1 << 27;

/// What rank 0 asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Kind {
    /// To go home.
    Quit,
    /// To get ready for a run: the bytes of its description, and the threads to take.
    Begin,
    /// To forget that run.
    End,
    /// log π and its score: particles, coordinates, rows of a minibatch.
    Evaluate,
    /// Rows of kernel sums over all pairs.
    Sums,
    /// Kernel sums within batches.
    Batches,
}

impl Kind {
    fn of(word: u64) -> Self {
        let all = [Self::Quit, Self::Begin, Self::End, Self::Evaluate, Self::Sums, Self::Batches];
        // Both ends are the same program.
        all.into_iter().find(|kind| *kind as u64 == word).unwrap_or(Self::Quit)
    }
}

/// A request with three sizes.
pub(crate) type Header = (Kind, [u64; 3]);

/// The processes that were started together.
pub struct World {
    _universe: Universe,
}

impl World {
    /// Joins them; none where this process was started alone, or by something else than MPI.
    pub fn join() -> Option<Self> {
        // Open MPI, and MPICH with its kin.
        let variables = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];
        let is_one_of_many = variables
            .iter()
            .filter_map(|name| std::env::var(name).ok()?.parse::<usize>().ok())
            .any(|size| size > 1);
        if !is_one_of_many {
            return None;
        }
        // Calls come from whichever thread has the run, one at a time.
        let (universe, _) = mpi::initialize_with_threading(Threading::Serialized)?;
        JOINED.store(true, Ordering::Relaxed);
        Some(Self { _universe: universe })
    }

    /// The number of this process; 0 leads.
    pub fn rank(&self) -> usize {
        rank()
    }

    /// How many there are.
    pub fn size(&self) -> usize {
        size()
    }
}

pub(crate) fn rank() -> usize {
    usize::try_from(SimpleCommunicator::world().rank()).unwrap_or(0)
}

pub(crate) fn size() -> usize {
    usize::try_from(SimpleCommunicator::world().size()).unwrap_or(1)
}

/// From rank 0 to all.
pub(crate) fn broadcast<N: Equivalence>(numbers: &mut [N]) {
    let world = SimpleCommunicator::world();
    for piece in numbers.chunks_mut(PIECE) {
        world.process_at_rank(0).broadcast_into(piece);
    }
}

/// Rank 0 says what comes next.
pub(crate) fn announce((kind, sizes): Header) {
    broadcast(&mut [kind as u64, sizes[0], sizes[1], sizes[2]]);
}

/// The others hear it.
pub(crate) fn hear() -> Header {
    let mut header = [0; 4];
    broadcast(&mut header);
    (Kind::of(header[0]), [header[1], header[2], header[3]])
}

/// A rank as MPI counts it.
fn number(rank: usize) -> i32 {
    i32::try_from(rank).unwrap_or(0)
}

pub(crate) fn send<N: Equivalence>(to: usize, numbers: &[N]) {
    let world = SimpleCommunicator::world();
    for piece in numbers.chunks(PIECE) {
        world.process_at_rank(number(to)).send(piece);
    }
}

pub(crate) fn receive<N: Equivalence>(from: usize, numbers: &mut [N]) {
    let world = SimpleCommunicator::world();
    for piece in numbers.chunks_mut(PIECE) {
        world.process_at_rank(number(from)).receive_into(piece);
    }
}

/// Whether something was done, or why not.
pub(crate) fn send_answer(to: usize, answer: &Result<(), String>) {
    let message = answer.as_ref().err().map_or(&[][..], String::as_bytes);
    send(to, &[u64::from(answer.is_err()), message.len() as u64]);
    send(to, message);
}

pub(crate) fn receive_answer(from: usize) -> Result<(), String> {
    let mut head = [0_u64; 2];
    receive(from, &mut head);
    let mut message = vec![0_u8; head[1] as usize];
    receive(from, &mut message);
    if head[0] == 0 { Ok(()) } else { Err(String::from_utf8_lossy(&message).into_owned()) }
}
