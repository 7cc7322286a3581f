//! A compiled Stan program through BridgeStan's C interface, version 2: the one place that calls foreign code.

// Functions of a foreign library cannot be called otherwise; every block says why it is sound.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::io::Write as _;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The version of the interface that is spoken here.
const MAJOR: c_int = 2;

// As in `bridgestan.h`; models and generators are opaque.
type Construct = unsafe extern "C" fn(*const c_char, c_uint, *mut *mut c_char) -> *mut c_void;
type Destruct = unsafe extern "C" fn(*mut c_void);
type FreeError = unsafe extern "C" fn(*mut c_char);
type Text = unsafe extern "C" fn(*const c_void) -> *const c_char;
type Names = unsafe extern "C" fn(*const c_void, bool, bool) -> *const c_char;
type Gradient = unsafe extern "C" fn(
    *const c_void,
    bool,
    bool,
    *const f64,
    *mut f64,
    *mut f64,
    *mut *mut c_char,
) -> c_int;
type Constrain = unsafe extern "C" fn(
    *const c_void,
    bool,
    bool,
    *const f64,
    *mut f64,
    *mut c_void,
    *mut *mut c_char,
) -> c_int;
type Unconstrain =
    unsafe extern "C" fn(*const c_void, *const f64, *mut f64, *mut *mut c_char) -> c_int;
type Printer = extern "C" fn(*const c_char, usize);
type SetPrinter = unsafe extern "C" fn(Printer, *mut *mut c_char) -> c_int;

/// What is called again and again.
struct Functions {
    free_error: FreeError,
    gradient: Gradient,
    constrain: Constrain,
    unconstrain: Unconstrain,
    destruct: Destruct,
}

/// A Stan program with its data.
pub(super) struct Program {
    model: NonNull<c_void>,
    functions: Functions,
    /// The names of all that is shown: parameters, then transformed parameters.
    pub(super) names: Vec<String>,
    /// The names of the coordinates, which have no limits.
    pub(super) coordinates: Vec<String>,
    /// Held for every call of a library whose memory for derivatives is one for all threads.
    turn: Option<Mutex<()>>,
    /// Never unloaded: threads may still hold memory that it frees when they end.
    _library: ManuallyDrop<libloading::Library>,
}

// SAFETY: a model is not changed after it was made, and BridgeStan lets threads share it; where the library was
// built without threads, `turn` lets one in at a time.
unsafe impl Send for Program {}
// SAFETY: as above.
unsafe impl Sync for Program {}

impl Program {
    /// Loads a library and gives it its data, as JSON.
    pub(super) fn load(path: &Path, data: &str) -> Result<Self, String> {
        // SAFETY: loading runs the library's own start-up code; whoever names a program to sample wants it run.
        let library = unsafe { libloading::Library::new(path) }
            .map_err(|error| format!("it cannot be loaded: {}", innermost(&error)))?;
        let library = ManuallyDrop::new(library);
        // SAFETY: BridgeStan declares these as constant `int`s.
        let version = unsafe { *symbol::<*const c_int>(&library, "bs_major_version")? };
        if version != MAJOR {
            return Err(format!(
                "it was made by version {version} of BridgeStan, and {MAJOR} is spoken here: compile it again \
                 with BridgeStan {MAJOR}"
            ));
        }
        // SAFETY: the types are those of `bridgestan.h`, whose version was just compared.
        let (functions, construct, info, names, coordinates) = unsafe {
            let functions = Functions {
                free_error: symbol(&library, "bs_free_error_msg")?,
                gradient: symbol(&library, "bs_log_density_gradient")?,
                constrain: symbol(&library, "bs_param_constrain")?,
                unconstrain: symbol(&library, "bs_param_unconstrain")?,
                destruct: symbol(&library, "bs_model_destruct")?,
            };
            let construct: Construct = symbol(&library, "bs_model_construct")?;
            let info: Text = symbol(&library, "bs_model_info")?;
            let names: Names = symbol(&library, "bs_param_names")?;
            let coordinates: Text = symbol(&library, "bs_param_unc_names")?;
            (functions, construct, info, names, coordinates)
        };
        // SAFETY: the type is that of `bridgestan.h`, and the function may be called at any time. What a program
        // prints would otherwise stand among our own output.
        unsafe {
            if let Ok(set_printer) = symbol::<SetPrinter>(&library, "bs_set_print_callback") {
                let _ = functions.said(|error| set_printer(print, error));
            }
        }
        let data = CString::new(data).map_err(|_| "its data has a zero byte".to_owned())?;
        let mut model = null_mut();
        functions.said(|error| {
            // SAFETY: the text ends in a zero byte and outlives the call; 0 is the seed of what a program draws
            // in its `transformed data`, the same in every run.
            model = unsafe { construct(data.as_ptr(), 0, error) };
            c_int::from(model.is_null())
        })?;
        let model = NonNull::new(model).ok_or("BridgeStan made no model of it")?;
        // SAFETY: the model is the one just made; texts are the library's own and live as long as it.
        let (info, names, coordinates) = unsafe {
            let model = model.as_ptr();
            let info = CStr::from_ptr(info(model)).to_string_lossy().into_owned();
            (info, list(names(model, true, false)), list(coordinates(model)))
        };
        let has_threads = info.contains("STAN_THREADS=true");
        Ok(Self {
            model,
            functions,
            names,
            coordinates,
            turn: (!has_threads).then(Mutex::default),
            _library: library,
        })
    }

    /// log π(θ) with the Jacobian, without constants; writes the score. An error is what Stan says.
    pub(super) fn log_density_gradient(
        &self,
        theta: &[f64],
        score: &mut [f64],
    ) -> Result<f64, String> {
        assert_eq!((theta.len(), score.len()), (self.coordinates.len(), self.coordinates.len()));
        let _turn = self.turn();
        let mut value = f64::NAN;
        self.functions.said(|error| {
            let (theta, score) = (theta.as_ptr(), score.as_mut_ptr());
            // SAFETY: the model lives, and both slices have as many numbers as it has coordinates.
            unsafe {
                let gradient = self.functions.gradient;
                gradient(self.model.as_ptr(), true, true, theta, &raw mut value, score, error)
            }
        })?;
        Ok(value)
    }

    /// Parameters and transformed parameters of θ.
    pub(super) fn constrain(&self, theta: &[f64], shown: &mut [f64]) -> Result<(), String> {
        assert_eq!((theta.len(), shown.len()), (self.coordinates.len(), self.names.len()));
        let _turn = self.turn();
        self.functions.said(|error| {
            let (theta, shown) = (theta.as_ptr(), shown.as_mut_ptr());
            // SAFETY: the model lives, the slices have as many numbers as it has coordinates and names, and
            // without generated quantities no generator is asked for.
            unsafe {
                let constrain = self.functions.constrain;
                constrain(self.model.as_ptr(), true, false, theta, shown, null_mut(), error)
            }
        })
    }

    /// The way back.
    pub(super) fn unconstrain(&self, shown: &[f64], theta: &mut [f64]) -> Result<(), String> {
        assert_eq!((theta.len(), shown.len()), (self.coordinates.len(), self.names.len()));
        let _turn = self.turn();
        self.functions.said(|error| {
            let (theta, shown) = (theta.as_mut_ptr(), shown.as_ptr());
            // SAFETY: the model lives; it reads its parameters, which come first, and writes all coordinates.
            unsafe { (self.functions.unconstrain)(self.model.as_ptr(), shown, theta, error) }
        })
    }

    fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        self.turn.as_ref().map(|turn| turn.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: it was made by this library, and nobody has it after this.
        unsafe { (self.functions.destruct)(self.model.as_ptr()) }
    }
}

impl Functions {
    /// Makes a call that returns 0 or leaves a message.
    fn said(&self, call: impl FnOnce(*mut *mut c_char) -> c_int) -> Result<(), String> {
        let mut message = null_mut();
        let code = call(&raw mut message);
        let mut text = None;
        if !message.is_null() {
            // SAFETY: BridgeStan leaves a text that ends in a zero byte, which is ours to free, once.
            unsafe {
                text = Some(CStr::from_ptr(message).to_string_lossy().trim().to_owned());
                (self.free_error)(message);
            }
        }
        match code {
            0 => Ok(()),
            _ => Err(text.unwrap_or_else(|| "it failed and does not say why".to_owned())),
        }
    }
}

/// # Safety
///
/// `T` must be the type that the library has under this name.
unsafe fn symbol<T: Copy>(library: &libloading::Library, name: &str) -> Result<T, String> {
    // SAFETY: the caller's promise; what is found outlives every use, since the library is never unloaded.
    let found = unsafe { library.get::<T>(name) };
    found.map(|found| *found).map_err(|_| {
        format!(
            "it has no `{name}`, so BridgeStan {MAJOR} has not made it: give the program itself, or compile it \
             with BridgeStan {MAJOR}"
        )
    })
}

/// Names of a text that separates them by commas.
///
/// # Safety
///
/// The text must end in a zero byte.
unsafe fn list(text: *const c_char) -> Vec<String> {
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    text.split(',').filter(|name| !name.is_empty()).map(stan_name).collect()
}

/// `theta.1.2` as Stan's users write it: `theta[1,2]`.
fn stan_name(name: &str) -> String {
    match name.split_once('.') {
        Some((base, places)) if places.starts_with(|c: char| c.is_ascii_digit()) => {
            format!("{base}[{}]", places.replace('.', ","))
        }
        _ => name.to_owned(),
    }
}

/// What a program prints, beside all else that is told while a run is under way.
extern "C" fn print(text: *const c_char, length: usize) {
    if !text.is_null() {
        // SAFETY: BridgeStan gives so many bytes, for the time of the call.
        let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
        let _ = std::io::stderr().write_all(bytes);
    }
}

/// The last of the causes, which has the system's own words.
fn innermost(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), innermost)
}

#[cfg(test)]
mod tests {
    use super::stan_name;

    #[test]
    fn places_are_written_in_brackets() {
        let names = ["mu", "theta.1", "L.2.1", "pair.1:2"].map(stan_name);
        assert_eq!(names, ["mu", "theta[1]", "L[2,1]", "pair[1:2]"]);
    }
}
