//! How much memory there is, so that what does not fit is refused with a number instead of ended by the
//! system.

use std::fs;

use crate::Result;

/// Precision, covariance, and a factor of each.
const DENSE: u64 = 4;

/// Refuses a Gaussian whose matrices of `dim` × `dim` numbers do not fit.
pub(crate) fn check_dense(dim: usize) -> Result<()> {
    let needed = (dim as u64).saturating_pow(2).saturating_mul(8 * DENSE);
    match available() {
        Some(free) if needed > free => {
            let remedy = format!(
                "a dense covariance of that size takes about {} of memory, and {} are free; take \
                 fewer coordinates",
                show(needed),
                show(free)
            );
            Err(steinflow::Error::setting("dimension", dim, remedy).into())
        }
        _ => Ok(()),
    }
}

/// Bytes that can be had before the system begins to swap or to kill; none where it does not say.
pub fn available() -> Option<u64> {
    let free = meminfo(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    // A container's own limit, which for none has no number.
    let versions = [
        ("/sys/fs/cgroup/memory.", "max", "current", "file "),
        ("/sys/fs/cgroup/memory/memory.", "limit_in_bytes", "usage_in_bytes", "cache "),
    ];
    let own = versions.into_iter().find_map(|(at, most, used, cache)| {
        let (most, used) = (number(&format!("{at}{most}"))?, number(&format!("{at}{used}"))?);
        // Cached files make room when asked to.
        let statistics = fs::read_to_string(format!("{at}stat")).unwrap_or_default();
        let cached = statistics.lines().find_map(|line| line.strip_prefix(cache)?.parse().ok());
        Some(most.saturating_sub(used.saturating_sub(cached.unwrap_or(0))))
    });
    Some([own, address_space()].into_iter().flatten().fold(free, u64::min))
}

/// What a limit on the address space (`ulimit -v`) leaves. Half of it: allocators and threads reserve
/// addresses that they do not use.
fn address_space() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let most = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    // A number, or `unlimited`.
    let most: u64 = most.split_whitespace().next()?.parse().ok()?;
    let used = kibibytes(&status, "VmSize:")?.saturating_mul(1024);
    Some(most.saturating_sub(used) / 2)
}

fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

/// `MemAvailable` and free swap, in bytes.
fn meminfo(text: &str) -> Option<u64> {
    let free = kibibytes(text, "MemAvailable:")? + kibibytes(text, "SwapFree:").unwrap_or(0);
    Some(free.saturating_mul(1024))
}

/// In the unit that fits.
pub fn show(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let unit = units.into_iter().find(|(_, shift)| bytes >> shift > 0);
    unit.map_or_else(
        || format!("{bytes} bytes"),
        |(name, shift)| format!("{:.1} {name}", bytes as f64 / f64::from(1_u32 << shift)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_read() {
        let text = "MemTotal:       24000000 kB\nMemAvailable:    1000 kB\nSwapFree:  24 kB\n";
        assert_eq!(meminfo(text), Some(1024 * 1024));
        assert_eq!(meminfo("nothing"), None);
        assert_eq!((show(3 << 29), show(512)), ("1.5 GiB".to_owned(), "512 bytes".to_owned()));
    }
}
