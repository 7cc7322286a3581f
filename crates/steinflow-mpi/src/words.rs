//! What ranks say to one another: requests with their sizes, answers and text.

use std::time::Duration;

use steinflow::Real;

use crate::wire::{Equivalence, broadcast, broadcast_words, receive, send};

/// A number that travels as it is.
pub trait Number: Real + Equivalence {}

impl Number for f32 {}
impl Number for f64 {}

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
    /// To take jobs: how many there are, which they are, and the bytes of what the jobs before have found.
    Jobs,
}

impl Kind {
    fn of(word: u64) -> Self {
        let all = [
            Self::Quit,
            Self::Begin,
            Self::End,
            Self::Evaluate,
            Self::Sums,
            Self::Batches,
            Self::Jobs,
        ];
        // Both ends are the same program.
        all.into_iter().find(|kind| *kind as u64 == word).unwrap_or(Self::Quit)
    }
}

/// A request with three sizes.
pub(crate) type Header = (Kind, [u64; 3]);

/// How long one who has nothing to do sleeps before it looks again: short beside a job, and long beside a look.
pub(crate) const PAUSE: Duration = Duration::from_millis(1);

/// Rank 0 says what comes next.
pub(crate) fn announce((kind, sizes): Header) {
    broadcast_words(&mut [kind as u64, sizes[0], sizes[1], sizes[2]], None);
}

/// The others hear it at once, as within a step.
pub(crate) fn hear() -> Header {
    hear_after(None)
}

/// The others hear it, and leave the processor to somebody else meanwhile.
pub(crate) fn hear_patiently() -> Header {
    hear_after(Some(PAUSE))
}

fn hear_after(pause: Option<Duration>) -> Header {
    let mut header = [0; 4];
    broadcast_words(&mut header, pause);
    (Kind::of(header[0]), [header[1], header[2], header[3]])
}

/// Text of so many bytes from rank 0.
pub(crate) fn hear_text(length: u64) -> String {
    let mut text = vec![0_u8; length as usize];
    broadcast(&mut text);
    String::from_utf8_lossy(&text).into_owned()
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
