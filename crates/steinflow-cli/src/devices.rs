//! `steinflow devices`: where particles can be kept.

use std::io::Write as _;
use std::process::ExitCode;

use serde_json::json;
use steinflow_cuda::{DeviceInfo, devices};

use crate::error::Result;

/// Bytes of a GiB.
const GIB: f64 = (1_u64 << 30) as f64;

pub fn command(as_json: bool) -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    let found = devices();
    if as_json {
        let gpu = |device: &DeviceInfo| {
            json!({
                "name": format!("cuda:{}", device.ordinal),
                "title": device.name,
                "compute_capability": format!("{}.{}", device.capability.0, device.capability.1),
                "free_bytes": device.memory.0,
                "total_bytes": device.memory.1,
            })
        };
        let gpus = found.as_deref().unwrap_or_default().iter().map(gpu);
        let all: Vec<_> = std::iter::once(json!({ "name": "cpu" })).chain(gpus).collect();
        steinflow_io::write_json(&all, &mut out)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "  {:<10} {} threads", "cpu", rayon::current_num_threads())?;
    match found {
        Ok(gpus) => {
            for gpu in gpus {
                let (free, total) = (gpu.memory.0 as f64 / GIB, gpu.memory.1 as f64 / GIB);
                let (name, (major, minor)) = (format!("cuda:{}", gpu.ordinal), gpu.capability);
                writeln!(
                    out,
                    "  {name:<10} {}, compute capability {major}.{minor}, {free:.1} of {total:.1} GiB free",
                    gpu.name
                )?;
            }
        }
        Err(why) => writeln!(out, "  {:<10} {why}", "no GPU")?,
    }
    Ok(ExitCode::SUCCESS)
}
