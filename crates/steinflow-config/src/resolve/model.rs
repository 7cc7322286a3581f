//! What a model would assume, written down so that the config says it.

use steinflow::Error as LibraryError;
use steinflow_models::data::is_name;
use steinflow_models::density::{self, DENSITY};
use steinflow_models::network::{Architecture, DEFAULT_DATA};
use steinflow_models::{NETWORK, regression};

use crate::{Result, Settings};

/// Writes down what the model would assume, so that the config says it, and from any folder.
pub(super) fn record_model_defaults(settings: &mut Settings) -> Result<()> {
    let seed = settings.seed.unwrap_or(0);
    let spec = &mut settings.spec;
    let file = spec.data.as_mut().filter(|data| !is_name(data));
    let paths = [file, spec.data_dir.as_mut(), spec.split_file.as_mut(), spec.program.as_mut()];
    for path in paths.into_iter().flatten() {
        if let Ok(absolute) = std::path::absolute(&*path) {
            *path = absolute;
        }
        if path.to_str().is_none() {
            let remedy = "a config can only hold paths in Unicode; rename it";
            return Err(LibraryError::setting("path", path.display(), remedy).into());
        }
    }
    let info = spec.info()?;
    if info.name == NETWORK {
        spec.data.get_or_insert_with(|| DEFAULT_DATA.into());
        spec.hidden.get_or_insert_with(|| Architecture::default().hidden);
        spec.activation.get_or_insert_with(|| "relu".to_owned());
        if spec.split.is_none() && spec.split_file.is_none() {
            spec.test_fraction.get_or_insert(0.1);
            spec.split_seed.get_or_insert(seed);
        }
    }
    if info.name == DENSITY {
        spec.density.get_or_insert_with(|| density::EXAMPLE.to_owned());
    }
    if info.takes("missing") {
        spec.missing.get_or_insert_with(|| "drop".to_owned());
    }
    if info.takes("components") {
        spec.components.get_or_insert(regression::DEFAULT_COMPONENTS);
    }
    if info.takes("prior_sd") {
        spec.prior_sd.get_or_insert(regression::DEFAULT_PRIOR_SD);
    }
    Ok(())
}
