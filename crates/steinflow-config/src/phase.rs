//! A phase of a run: so many steps with one integrator.

use steinflow::integrator::{self, StepSize};
use steinflow::settings::{Kind, ListItem, NumberOrWord, SettingType as _, Value};

/// One phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Its name: see [`integrator::named`].
    pub integrator: String,
    /// A number or a schedule: see [`StepSize::parse`].
    pub step_size: String,
    /// How many.
    pub steps: u64,
}

const HOW_TO_WRITE: &str = "write INTEGRATOR:EPSxSTEPS, for example euler:1.3x300";

impl Phase {
    /// An integrator or a step size that is left to the default of a run without phases.
    pub const OPEN: &str = "default";

    /// Checks that the words mean something.
    pub(crate) fn validate(&self) -> steinflow::Result<()> {
        integrator::named::<f64>(&self.integrator)?;
        StepSize::parse(&self.step_size)?.validate(self.steps)
    }

    fn from_text(text: &str) -> Option<Self> {
        let (integrator, rest) = text.split_once(':')?;
        let (step_size, steps) = rest.rsplit_once('x')?;
        let (integrator, step_size) = (integrator.to_owned(), step_size.to_owned());
        Some(Self { integrator, step_size, steps: steps.parse().ok()? })
    }
}

impl ListItem for Phase {
    const KIND: Kind = Kind::Phases;

    /// From `INTEGRATOR:EPSxSTEPS`, a table, or integrator, steps and step size in a row.
    fn read_item(value: &Value) -> Result<Self, String> {
        let parts = match value {
            Value::Text(text) => {
                return Self::from_text(text).ok_or_else(|| HOW_TO_WRITE.to_owned());
            }
            Value::List(parts) => match &parts[..] {
                [integrator, steps, step_size] => [integrator, step_size, steps],
                _ => return Err("a phase is (integrator, steps, step_size)".to_owned()),
            },
            Value::Table(entries) => {
                let names = ["integrator", "step-size", "steps"];
                if let Some((other, _)) =
                    entries.iter().find(|(name, _)| !names.contains(&name.as_str()))
                {
                    return Err(format!("a phase has no `{other}`; it has {}", names.join(", ")));
                }
                let missing = |name: &str| format!("a phase without `{name}`: give it");
                let part = |name: &str| value.entry(name).ok_or_else(|| missing(name));
                [part("integrator")?, part("step-size")?, part("steps")?]
            }
            _ => return Err(HOW_TO_WRITE.to_owned()),
        };
        Ok(Self {
            integrator: String::read(parts[0])?,
            step_size: NumberOrWord::read(parts[1])?.0,
            steps: u64::read(parts[2])?,
        })
    }

    fn write_item(&self) -> Value {
        Value::Table(vec![
            ("integrator".to_owned(), self.integrator.write()),
            ("step-size".to_owned(), self.step_size.write()),
            ("steps".to_owned(), self.steps.write()),
        ])
    }
}
