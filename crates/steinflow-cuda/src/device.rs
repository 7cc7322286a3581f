//! A device: its kernels, compiled when they are first needed, and its memory.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use cudarc::driver::sys::{
    CUdevice_attribute, CUfunction_attribute, CUgraphInstantiate_flags, CUstreamCaptureMode,
};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaGraph, CudaModule, CudaSlice, CudaStream, DevicePtr as _,
    DriverError, LaunchConfig,
};
use cudarc::nvrtc::{CompileError, CompileOptions, compile_ptx_with_opts};
use steinflow::{Error, Real, Result};

use crate::launch::{self, Argument};

/// What `steinflow devices` lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its number: the `1` of `cuda:1`.
    pub ordinal: usize,
    /// As the driver calls it.
    pub name: String,
    /// Major and minor number of what it can compute.
    pub capability: (i32, i32),
    /// Bytes that are free, and all.
    pub memory: (u64, u64),
}

/// The GPUs of this machine. An error says what is missing.
pub fn devices() -> Result<Vec<DeviceInfo>> {
    if !launch::has_driver() {
        return Err(missing("no NVIDIA driver is installed here"));
    }
    let count = CudaContext::device_count().map_err(|error| missing(&trouble_of(error)))?;
    (0..usize::try_from(count).unwrap_or(0))
        .map(|ordinal| Device::info(context(ordinal)?.as_ref()))
        .collect()
}

fn missing(why: &str) -> Error {
    Error::setting("device", "cuda", format!("{why}; run with device cpu"))
}

/// What is opened or compiled once lasts as long as the process: the next run starts at once.
#[derive(Default)]
struct Kept {
    contexts: HashMap<usize, Arc<CudaContext>>,
    modules: HashMap<(usize, Source), Arc<CudaModule>>,
}

static KEPT: LazyLock<Mutex<Kept>> = LazyLock::new(Mutex::default);

fn context(ordinal: usize) -> Result<Arc<CudaContext>> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = kept.contexts.get(&ordinal) {
        return Ok(Arc::clone(known));
    }
    let opened = CudaContext::new(ordinal).map_err(|error| missing(&trouble_of(error)))?;
    launch::use_one_stream(&opened);
    kept.contexts.insert(ordinal, Arc::clone(&opened));
    Ok(opened)
}

fn trouble_of(error: DriverError) -> String {
    let text = error.error_string().map(|text| text.to_string_lossy().into_owned());
    text.unwrap_or_else(|_| format!("{error:?}"))
}

/// A failed call of the driver, as the library's error.
pub(crate) fn failed(error: DriverError) -> Error {
    Error::User(format!("the GPU failed: {}", trouble_of(error)).into())
}

/// Memory on the device. Numbers are of the run's precision, unless a kernel says otherwise.
pub(crate) struct Buffer {
    bytes: CudaSlice<u8>,
    address: u64,
}

impl Buffer {
    /// Its address, as a kernel's argument.
    pub(crate) fn arg(&self) -> Argument {
        Argument::Address(self.address)
    }

    /// The address of what stands so many bytes into it.
    pub(crate) fn at(&self, bytes: usize) -> Argument {
        Argument::Address(self.address + bytes as u64)
    }
}

/// No buffer, where a kernel takes none.
pub(crate) const NOTHING: Argument = Argument::Address(0);

/// A kernel's source and the macros that it is compiled with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    /// The text of one file in `kernels/`, and whatever it needs before it.
    pub text: String,
    /// Macros, `NAME=VALUE`.
    pub macros: Vec<String>,
}

impl Source {
    /// A file of `kernels/` in a precision, `size` bytes a number.
    pub(crate) fn new(text: &str, size: usize) -> Self {
        let (name, is_double) = if size == 8 { ("double", 1) } else { ("float", 0) };
        let text = format!("{}{text}", include_str!("../kernels/prelude.cu"));
        Self { text, macros: vec![format!("REAL={name}"), format!("IS_DOUBLE={is_double}")] }
    }

    /// Adds a macro.
    pub(crate) fn with(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.macros.push(format!("{name}={value}"));
        self
    }

    /// Compiles it for an architecture, as PTX.
    pub(crate) fn compile(&self, arch: &'static str) -> Result<cudarc::nvrtc::Ptx> {
        if !launch::has_compiler() {
            return Err(missing(
                "the run-time compiler NVRTC is not installed here (`pip install nvidia-cuda-nvrtc` has it)",
            ));
        }
        let mut options = vec!["--std=c++17".to_owned()];
        options.extend(self.macros.iter().map(|text| format!("-D{text}")));
        let options = CompileOptions { options, arch: Some(arch), ..CompileOptions::default() };
        compile_ptx_with_opts(&self.text, options).map_err(|error| {
            let log = match &error {
                CompileError::CompileError { log, .. } => log.to_string_lossy().into_owned(),
                other => other.to_string(),
            };
            Error::User(format!("a kernel did not compile: {log}").into())
        })
    }
}

/// A GPU with one stream of work.
#[derive(Clone)]
pub struct Device {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    arch: &'static str,
    /// Multiprocessors.
    pub(crate) processors: usize,
}

impl Device {
    /// Opens the GPU of this number.
    pub fn open(ordinal: usize) -> Result<Self> {
        let known = devices()?;
        let Some(info) = known.get(ordinal) else {
            let remedy =
                format!("there are {} here, counted from 0: see `steinflow devices`", known.len());
            return Err(Error::setting("device", format!("cuda:{ordinal}"), remedy));
        };
        let arch = match info.capability {
            (9.., _) => "compute_90",
            (8, _) => "compute_80",
            (major, minor) => {
                let remedy = format!(
                    "{} has compute capability {major}.{minor}, and 8.0 (Ampere) is the least; run with device cpu",
                    info.name
                );
                return Err(Error::setting("device", format!("cuda:{ordinal}"), remedy));
            }
        };
        let context = context(ordinal)?;
        let stream = context.new_stream().map_err(failed)?;
        let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        let processors = context.attribute(attribute).map_err(failed)?;
        let processors = usize::try_from(processors).unwrap_or(1);
        Ok(Self { context, stream, arch, processors })
    }

    fn info(context: &CudaContext) -> Result<DeviceInfo> {
        let (free, total) = context.mem_get_info().map_err(failed)?;
        Ok(DeviceInfo {
            ordinal: context.ordinal(),
            name: context.name().map_err(failed)?,
            capability: context.compute_capability().map_err(failed)?,
            memory: (free as u64, total as u64),
        })
    }

    /// Bytes that are free.
    pub(crate) fn free_memory(&self) -> Result<u64> {
        Ok(self.context.mem_get_info().map_err(failed)?.0 as u64)
    }

    /// A kernel by the name of its function.
    pub(crate) fn kernel(&self, source: &Source, name: &'static str) -> Result<CudaFunction> {
        let key = (self.context.ordinal(), source.clone());
        let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept().modules.get(&key).cloned();
        let module = if let Some(module) = known {
            module
        } else {
            let module = self.context.load_module(source.compile(self.arch)?).map_err(failed)?;
            kept().modules.insert(key, Arc::clone(&module));
            module
        };
        module.load_function(name).map_err(failed)
    }

    /// Lets a kernel have this much shared memory a block.
    pub(crate) fn allow_shared(function: &CudaFunction, bytes: usize) -> Result<()> {
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        function.set_attribute(attribute, i32::try_from(bytes).unwrap_or(i32::MAX)).map_err(failed)
    }

    /// Starts a kernel of `grid` blocks of `block` threads, with `shared` bytes of dynamic shared memory.
    pub(crate) fn launch(
        &self,
        function: &CudaFunction,
        grid: (usize, usize),
        block: (u32, u32),
        shared: usize,
        arguments: &[Argument],
    ) -> Result<()> {
        let config = LaunchConfig {
            grid_dim: (grid.0 as u32, grid.1 as u32, 1),
            block_dim: (block.0, block.1, 1),
            shared_mem_bytes: shared as u32,
        };
        launch::launch(&self.stream, function, config, arguments).map_err(failed)
    }

    /// Zeros.
    pub(crate) fn zeros(&self, bytes: usize) -> Result<Buffer> {
        let bytes = self.stream.alloc_zeros::<u8>(bytes.max(16)).map_err(failed)?;
        let address = bytes.device_ptr(&self.stream).0;
        Ok(Buffer { bytes, address })
    }

    /// Sets every byte to 0.
    pub(crate) fn clear(&self, buffer: &mut Buffer) -> Result<()> {
        self.stream.memset_zeros(&mut buffer.bytes).map_err(failed)
    }

    /// Fills a buffer that is at least as long.
    pub(crate) fn put_bytes(&self, bytes: &[u8], buffer: &mut Buffer) -> Result<()> {
        self.put_bytes_at(bytes, 0, buffer)
    }

    /// Fills a part of a buffer.
    pub(crate) fn put_bytes_at(&self, bytes: &[u8], at: usize, buffer: &mut Buffer) -> Result<()> {
        let mut to = buffer.bytes.slice_mut(at..at + bytes.len());
        self.stream.memcpy_htod(bytes, &mut to).map_err(failed)
    }

    /// Fills a buffer with numbers.
    pub(crate) fn put<T: Real>(&self, values: &[T], buffer: &mut Buffer) -> Result<()> {
        let mut bytes = Vec::with_capacity(size_of_val(values));
        for value in values {
            if size_of::<T>() == 4 {
                bytes.extend_from_slice(&(value.as_f64() as f32).to_ne_bytes());
            } else {
                bytes.extend_from_slice(&value.as_f64().to_ne_bytes());
            }
        }
        self.put_bytes(&bytes, buffer)
    }

    /// The first `count` bytes, when all work before is done.
    pub(crate) fn bytes(&self, buffer: &Buffer, count: usize) -> Result<Vec<u8>> {
        let bytes = self.stream.clone_dtoh(&buffer.bytes.slice(0..count)).map_err(failed)?;
        self.stream.synchronize().map_err(failed)?;
        Ok(bytes)
    }

    /// The first `count` numbers, when all work before is done.
    pub(crate) fn get<T: Real>(&self, buffer: &Buffer, count: usize) -> Result<Vec<T>> {
        let bytes = self.bytes(buffer, count * size_of::<T>())?;
        Ok(if size_of::<T>() == 4 {
            let (numbers, _) = bytes.as_chunks::<4>();
            numbers.iter().map(|x| T::of(f64::from(f32::from_ne_bytes(*x)))).collect()
        } else {
            let (numbers, _) = bytes.as_chunks::<8>();
            numbers.iter().map(|x| T::of(f64::from_ne_bytes(*x))).collect()
        })
    }

    /// Waits until all work is done.
    pub fn synchronize(&self) -> Result<()> {
        self.stream.synchronize().map_err(failed)
    }

    /// From now on work is recorded instead of started.
    pub(crate) fn begin_recording(&self) -> Result<()> {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        self.stream.begin_capture(mode).map_err(failed)
    }

    /// What was recorded.
    pub(crate) fn end_recording(&self) -> Result<Option<CudaGraph>> {
        self.stream.end_capture(CUgraphInstantiate_flags(0)).map_err(failed)
    }
}
