//! All that is `unsafe` here: handing work to the driver.

#![expect(
    unsafe_code,
    reason = "a kernel's arguments can not be checked by the compiler; each block says why it is right"
)]

use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaFunction, CudaStream, DriverError, LaunchConfig, PushKernelArg as _,
};

/// What a kernel is given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Argument {
    /// The address of a buffer, or 0.
    Address(u64),
    /// An `int`.
    Int(i32),
    /// A `double`.
    Double(f64),
    /// An unsigned 64-bit number.
    Wide(u64),
}

impl From<usize> for Argument {
    /// Counts and sizes, which the engine has checked to fit.
    fn from(value: usize) -> Self {
        Self::Int(value as i32)
    }
}

impl From<f64> for Argument {
    fn from(value: f64) -> Self {
        Self::Double(value)
    }
}

impl From<bool> for Argument {
    fn from(value: bool) -> Self {
        Self::Int(i32::from(value))
    }
}

/// Whether the driver is installed.
pub(crate) fn has_driver() -> bool {
    // SAFETY: loads the driver's library, whose initialisers are NVIDIA's own, as any CUDA program does.
    unsafe { cudarc::driver::sys::is_culib_present() }
}

/// Whether the run-time compiler is installed.
pub(crate) fn has_compiler() -> bool {
    // SAFETY: loads NVRTC's library, which has no initialisers of note.
    unsafe { cudarc::nvrtc::sys::is_culib_present() }
}

/// Lets `cudarc` keep no events for buffers.
pub(crate) fn use_one_stream(context: &CudaContext) {
    // SAFETY: a run has one stream for everything, so that the order of calls is the order of work, and no buffer
    // is seen by two runs.
    unsafe { context.disable_event_tracking() };
}

/// Starts a kernel on the stream.
///
/// Callers pass what the kernel's signature in `kernels/` says, and buffers that are as long as it says there.
pub(crate) fn launch(
    stream: &Arc<CudaStream>,
    function: &CudaFunction,
    config: LaunchConfig,
    arguments: &[Argument],
) -> Result<(), DriverError> {
    let mut builder = stream.launch_builder(function);
    for argument in arguments {
        match argument {
            Argument::Address(value) | Argument::Wide(value) => builder.arg(value),
            Argument::Int(value) => builder.arg(value),
            Argument::Double(value) => builder.arg(value),
        };
    }
    // SAFETY: number and types of the arguments are those of the kernel's signature; every thread checks its
    // indices against the counts it is given; buffers belong to whoever launches, and are freed in stream order.
    unsafe { builder.launch(config) }.map(drop)
}
