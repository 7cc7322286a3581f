//! JSON whose bytes depend on the value alone.

use std::io::Write;

use serde::Serialize;

use crate::Result;

/// Writes `value` as indented JSON with a newline at the end.
///
/// Keys are sorted by name, so that a hash map and a struct give the same bytes every time. JSON
/// has no word for NaN and infinities: they are written as `null`.
///
/// ```
/// let mut bytes = Vec::new();
/// let summary = std::collections::HashMap::from([("steps", 600.0), ("ksd", f64::NAN)]);
/// steinflow_io::write_json(&summary, &mut bytes)?;
/// assert_eq!(bytes, b"{\n  \"ksd\": null,\n  \"steps\": 600.0\n}\n");
/// # Ok::<(), steinflow_io::Error>(())
/// ```
pub fn write_json(value: &(impl Serialize + ?Sized), mut writer: impl Write) -> Result<()> {
    let mut tree = serde_json::to_value(value)?;
    // Another crate of the build may switch on serde_json's `preserve_order`; sort in any case.
    tree.sort_all_objects();
    serde_json::to_writer_pretty(&mut writer, &tree)?;
    writer.write_all(b"\n")?;
    writer.flush()?;
    Ok(())
}
