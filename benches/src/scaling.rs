//! How time and memory grow with particles and dimensions.
use std::path::Path;

use crate::Result;

pub fn run(_out: &Path, _quick: bool) -> Result<()> {
    Ok(())
}
