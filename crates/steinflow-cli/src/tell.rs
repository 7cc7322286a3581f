//! Words to the person at the terminal, beside the results.

/// Prints a line to standard error, unless this is one of several processes and another one speaks for all. As
/// `eprintln!`, but a reader that has gone away is no reason to stop.
macro_rules! tell {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        if !steinflow_mpi::is_helper() {
            let _ = writeln!(std::io::stderr(), $($words)*);
        }
    }};
}
