//! Words to the person at the terminal, beside the results.

/// Prints a line to standard error. As `eprintln!`, but a reader that has gone away is no reason to stop.
macro_rules! tell {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($words)*);
    }};
}
