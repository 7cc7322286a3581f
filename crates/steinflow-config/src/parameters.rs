//! The parameters of methods among the settings of a run; what there is, the library's table says.

use steinflow::method::{Kind as ParameterKind, Parameter, Parameters, Value as ParameterValue};
use steinflow::settings::{Kind, Setting, SettingType, Value};

/// Values of [`Parameter`]s, where they are set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GivenParameters {
    given: Vec<(Parameter, ParameterValue)>,
}

fn named(name: &str) -> Option<Parameter> {
    Parameter::ALL.iter().copied().find(|parameter| parameter.name().replace('-', "_") == name)
}

impl GivenParameters {
    /// What there is to set.
    pub fn table() -> Vec<Setting> {
        // Made once: a handful of short texts.
        static TABLE: std::sync::LazyLock<Vec<Setting>> = std::sync::LazyLock::new(|| {
            let setting = |parameter: &Parameter| Setting {
                name: parameter.name().replace('-', "_").leak(),
                placeholder: parameter.symbol(),
                help: format!("{} [default: {}].", parameter.help(), parameter.default_text())
                    .leak(),
                group: "Method",
                kind: match parameter.kind() {
                    ParameterKind::Number => Kind::Number,
                    ParameterKind::WholeNumber => Kind::Count,
                    ParameterKind::Word(_) => Kind::Text,
                },
            };
            Parameter::ALL.iter().map(setting).collect()
        });
        TABLE.clone()
    }

    /// Sets what has this name; none if nothing has, an error if the value does not fit.
    pub fn set(&mut self, name: &str, value: &Value) -> Option<Result<(), String>> {
        let parameter = named(name)?;
        let value = match parameter.kind() {
            ParameterKind::Number => f64::read(value).map(ParameterValue::Number),
            ParameterKind::WholeNumber => u64::read(value).map(ParameterValue::WholeNumber),
            ParameterKind::Word(_) => String::read(value).map(ParameterValue::Word),
        };
        Some(value.map(|value| self.put(parameter, value)))
    }

    /// Sets a parameter.
    pub fn put(&mut self, parameter: Parameter, value: ParameterValue) {
        self.given.retain(|(own, _)| *own != parameter);
        self.given.push((parameter, value));
        // In one order, so that equal settings are equal.
        self.given.sort_by_key(|(own, _)| Parameter::ALL.iter().position(|other| other == own));
    }

    /// Sets a parameter that is not set.
    pub fn fill(&mut self, parameter: Parameter, value: ParameterValue) {
        if !self.given.iter().any(|(own, _)| *own == parameter) {
            self.put(parameter, value);
        }
    }

    /// A parameter that is a number.
    pub fn number(&self, parameter: Parameter) -> Option<f64> {
        self.given.iter().find_map(|(own, value)| match value {
            ParameterValue::Number(number) if *own == parameter => Some(*number),
            _ => None,
        })
    }

    /// The value of what has this name, if it is set.
    pub fn get(&self, name: &str) -> Option<Value> {
        let parameter = named(name)?;
        let (_, value) = self.given.iter().find(|(own, _)| *own == parameter)?;
        Some(match value {
            ParameterValue::Number(number) => Value::Number(*number),
            ParameterValue::WholeNumber(count) => Value::Count(*count),
            ParameterValue::Word(word) => Value::Text(word.clone()),
        })
    }

    /// Forgets what has this name.
    pub fn clear(&mut self, name: &str) {
        let parameter = named(name);
        self.given.retain(|(own, _)| Some(*own) != parameter);
    }

    /// The values of all parameters, those that are not set at their defaults.
    pub fn values(&self) -> steinflow::Result<Parameters> {
        let mut parameters = Parameters::default();
        for (parameter, value) in &self.given {
            parameters.set(*parameter, value)?;
        }
        Ok(parameters)
    }
}
