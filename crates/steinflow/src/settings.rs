//! Settings that have a name: what a flag, a line of a config and a keyword argument have in common.
//!
//! A list of settings is written once, with [`settings!`](crate::settings!): name, type and the words
//! that explain it. From it come a struct of optional values, a table that front ends make their flags
//! and keyword arguments from, and access by name.

use std::fmt;
use std::path::PathBuf;

/// A value as it comes from a command line, a config or Python.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number, zero or more.
    Count(u64),
    /// Any other number.
    Number(f64),
    /// Yes or no.
    Switch(bool),
    /// A word, or anything that is written as text.
    Text(String),
    /// Several values.
    List(Vec<Value>),
    /// Values with names.
    Table(Vec<(String, Value)>),
}

impl Value {
    /// The value of a name in a table.
    pub fn entry(&self, name: &str) -> Option<&Value> {
        let Self::Table(entries) = self else { return None };
        entries.iter().find_map(|(own, value)| (own == name).then_some(value))
    }
}

/// As a config writes it.
impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(formatter, "{count}"),
            // Always with a point or an exponent, so that it reads back as a number.
            Self::Number(number) if number.is_nan() => formatter.write_str("nan"),
            Self::Number(number) => write!(formatter, "{number:?}"),
            Self::Switch(switch) => write!(formatter, "{switch}"),
            Self::Text(text) => write_quoted(formatter, text),
            Self::List(values) => {
                formatter.write_str("[")?;
                for (place, value) in values.iter().enumerate() {
                    let comma = if place == 0 { "" } else { ", " };
                    write!(formatter, "{comma}{value}")?;
                }
                formatter.write_str("]")
            }
            Self::Table(entries) => {
                formatter.write_str("{")?;
                for (place, (name, value)) in entries.iter().enumerate() {
                    let comma = if place == 0 { " " } else { ", " };
                    write!(formatter, "{comma}{name} = {value}")?;
                }
                formatter.write_str(" }")
            }
        }
    }
}

fn write_quoted(formatter: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    formatter.write_str("\"")?;
    for character in text.chars() {
        match character {
            '"' => formatter.write_str("\\\"")?,
            '\\' => formatter.write_str("\\\\")?,
            control if control.is_control() => write!(formatter, "\\u{:04X}", control as u32)?,
            plain => write!(formatter, "{plain}")?,
        }
    }
    formatter.write_str("\"")
}

/// What kind of value a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number.
    Count,
    /// A number.
    Number,
    /// A word.
    Text,
    /// A number, or a word in its place.
    NumberOrWord,
    /// One number or several, or a word in their place.
    NumbersOrWord,
    /// A file or folder.
    Path,
    /// Yes or no.
    Switch,
    /// Whole numbers.
    Counts,
    /// Numbers.
    Numbers,
    /// Words.
    Words,
    /// Phases of a run.
    Phases,
}

impl Kind {
    /// Whether several values can be given.
    pub fn is_list(self) -> bool {
        matches!(self, Self::Counts | Self::Numbers | Self::Words | Self::Phases)
    }

    /// Reads the value that a flag was given.
    pub fn parse(self, text: &str) -> Result<Value, String> {
        let list = |kind: Self| -> Result<Vec<Value>, String> {
            text.split(',').map(|part| kind.parse(part.trim())).collect()
        };
        match self {
            Self::Count => u64::read(&Value::Text(text.to_owned())).map(Value::Count),
            Self::Number => f64::read(&Value::Text(text.to_owned())).map(Value::Number),
            Self::Switch => bool::read(&Value::Text(text.to_owned())).map(Value::Switch),
            Self::Text | Self::NumberOrWord | Self::NumbersOrWord | Self::Path | Self::Phases => {
                Ok(Value::Text(text.to_owned()))
            }
            Self::Counts => list(Self::Count).map(Value::List),
            Self::Numbers => list(Self::Number).map(Value::List),
            Self::Words => list(Self::Text).map(Value::List),
        }
    }
}

/// A type that settings have. An error says what to give instead.
pub trait SettingType: Sized {
    /// Its kind.
    const KIND: Kind;
    /// Reads it.
    fn read(value: &Value) -> Result<Self, String>;
    /// Writes it, so that it reads back as itself.
    fn write(&self) -> Value;
}

impl SettingType for u64 {
    const KIND: Kind = Kind::Count;

    fn read(value: &Value) -> Result<Self, String> {
        let count = match value {
            Value::Count(count) => Some(*count),
            Value::Text(text) => text.parse().ok(),
            // Whole numbers that no integer of ours holds.
            Value::Number(large) if *large >= 2_f64.powi(63) => Some(u64::MAX),
            _ => None,
        };
        match count {
            Some(count) if count < 1 << 63 => Ok(count),
            Some(_) => Err("give a number below 2^63".to_owned()),
            None => Err("give a whole number, zero or more".to_owned()),
        }
    }

    fn write(&self) -> Value {
        Value::Count(*self)
    }
}

impl SettingType for usize {
    const KIND: Kind = Kind::Count;

    fn read(value: &Value) -> Result<Self, String> {
        Self::try_from(u64::read(value)?).map_err(|_| "give a smaller number".to_owned())
    }

    fn write(&self) -> Value {
        Value::Count(*self as u64)
    }
}

impl SettingType for f64 {
    const KIND: Kind = Kind::Number;

    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Count(count) => Some(*count as f64),
            Value::Number(number) => Some(*number),
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
        .ok_or_else(|| "give a number".to_owned())
    }

    fn write(&self) -> Value {
        Value::Number(*self)
    }
}

impl SettingType for bool {
    const KIND: Kind = Kind::Switch;

    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Switch(switch) => Some(*switch),
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
        .ok_or_else(|| "give true or false".to_owned())
    }

    fn write(&self) -> Value {
        Value::Switch(*self)
    }
}

impl SettingType for String {
    const KIND: Kind = Kind::Text;

    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) => Ok(text.clone()),
            _ => Err("give a word".to_owned()),
        }
    }

    fn write(&self) -> Value {
        Value::Text(self.clone())
    }
}

/// A number or a word, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberOrWord(pub String);

impl SettingType for NumberOrWord {
    const KIND: Kind = Kind::NumberOrWord;

    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) => Ok(Self(text.clone())),
            Value::Count(count) => Ok(Self(count.to_string())),
            Value::Number(number) => Ok(Self(number.to_string())),
            _ => Err("give one number, or a word".to_owned()),
        }
    }

    fn write(&self) -> Value {
        Value::Text(self.0.clone())
    }
}

/// Numbers or a word, as they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumbersOrWord(pub String);

impl SettingType for NumbersOrWord {
    const KIND: Kind = Kind::NumbersOrWord;

    fn read(value: &Value) -> Result<Self, String> {
        let Value::List(values) = value else {
            return NumberOrWord::read(value).map(|one| Self(one.0));
        };
        let parts: Result<Vec<String>, String> =
            values.iter().map(|value| NumberOrWord::read(value).map(|one| one.0)).collect();
        let parts = parts?;
        if parts.is_empty() {
            Err("give one or more".to_owned())
        } else {
            Ok(Self(parts.join(",")))
        }
    }

    fn write(&self) -> Value {
        Value::Text(self.0.clone())
    }
}

impl SettingType for PathBuf {
    const KIND: Kind = Kind::Path;

    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) => Ok(text.into()),
            _ => Err("give a path".to_owned()),
        }
    }

    fn write(&self) -> Value {
        Value::Text(self.to_string_lossy().into_owned())
    }
}

/// A type of which a setting can have several.
pub trait ListItem: Sized {
    /// The kind of several.
    const KIND: Kind;
    /// Reads one.
    fn read_item(value: &Value) -> Result<Self, String>;
    /// Writes one.
    fn write_item(&self) -> Value;
}

impl ListItem for usize {
    const KIND: Kind = Kind::Counts;

    fn read_item(value: &Value) -> Result<Self, String> {
        Self::read(value)
    }

    fn write_item(&self) -> Value {
        self.write()
    }
}

impl ListItem for f64 {
    const KIND: Kind = Kind::Numbers;

    fn read_item(value: &Value) -> Result<Self, String> {
        Self::read(value)
    }

    fn write_item(&self) -> Value {
        self.write()
    }
}

impl ListItem for String {
    const KIND: Kind = Kind::Words;

    fn read_item(value: &Value) -> Result<Self, String> {
        Self::read(value)
    }

    fn write_item(&self) -> Value {
        self.write()
    }
}

impl<T: ListItem> SettingType for Vec<T> {
    const KIND: Kind = T::KIND;

    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::List(values) if values.is_empty() => {
                Err("give one or more, or leave it out".to_owned())
            }
            Value::List(values) => values.iter().map(T::read_item).collect(),
            single => Ok(vec![T::read_item(single)?]),
        }
    }

    fn write(&self) -> Value {
        Value::List(self.iter().map(T::write_item).collect())
    }
}

/// A setting, as front ends show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name, in words joined by `_` as Python writes it.
    pub name: &'static str,
    /// What stands for its value in a help text.
    pub placeholder: &'static str,
    /// What it does, and its default.
    pub help: &'static str,
    /// The heading it stands under.
    pub group: &'static str,
    /// What it takes.
    pub kind: Kind,
}

impl Setting {
    /// The name as flags and configs write it.
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }
}

/// Declares settings: a struct with an optional value for each, a table of them, and access by name.
/// Structs that were declared before can be parts of it.
///
/// ```
/// steinflow::settings! {
///     /// What an oven takes.
///     pub struct Oven {
///         "Baking" {
///             /// Degrees of the oven.
///             heat: f64 as "CELSIUS",
///         }
///     }
/// }
/// steinflow::settings! {
///     /// What a cake takes.
///     pub struct Cake {
///         ..oven: Oven,
///         "Dough" {
///             /// Eggs [default: 3].
///             eggs: u64 as "COUNT",
///         }
///     }
/// }
/// use steinflow::settings::Value;
/// let mut cake = Cake::default();
/// cake.set("eggs", &Value::Count(4)).unwrap().unwrap();
/// cake.set("heat", &Value::Text("180".into())).unwrap().unwrap();
/// assert_eq!((cake.eggs, cake.oven.heat), (Some(4), Some(180.0)));
/// assert_eq!(Cake::table()[0].help, "Degrees of the oven.");
/// assert!(cake.set("eggs", &Value::Text("many".into())).unwrap().is_err());
/// assert!(cake.set("sugar", &Value::Count(1)).is_none());
/// ```
#[macro_export]
macro_rules! settings {
    (
        $(#[$outer:meta])*
        $visibility:vis struct $type:ident {
            $( ..$part:ident: $part_type:ty, )*
            $( $group:literal {
                $( $(#[doc = $help:literal])+ $name:ident: $kind:ty as $placeholder:literal, )*
            } )*
        }
    ) => {
        $(#[$outer])*
        #[derive(Clone, Debug, Default, PartialEq)]
        $visibility struct $type {
            $(
                #[doc = concat!("See [`", stringify!($part_type), "`].")]
                pub $part: $part_type,
            )*
            $($( $(#[doc = $help])+ pub $name: Option<$kind>, )*)*
        }

        impl $type {
            /// What there is to set.
            pub fn table() -> Vec<$crate::settings::Setting> {
                let mut table = Vec::new();
                $( table.extend(<$part_type>::table()); )*
                $($( table.push($crate::settings::Setting {
                    name: stringify!($name),
                    placeholder: $placeholder,
                    help: concat!($($help),+).trim_start(),
                    group: $group,
                    kind: <$kind as $crate::settings::SettingType>::KIND,
                }); )*)*
                table
            }

            /// Sets what has this name; none if nothing has, an error if the value does not fit.
            pub fn set(
                &mut self,
                name: &str,
                value: &$crate::settings::Value,
            ) -> Option<Result<(), String>> {
                match name {
                    $($( stringify!($name) => {
                        let read = <$kind as $crate::settings::SettingType>::read(value);
                        return Some(read.map(|value| self.$name = Some(value)));
                    } )*)*
                    _ => {}
                }
                $( if let Some(done) = self.$part.set(name, value) {
                    return Some(done);
                } )*
                None
            }

            /// The value of what has this name, if it is set.
            pub fn get(&self, name: &str) -> Option<$crate::settings::Value> {
                match name {
                    $($( stringify!($name) => {
                        return self.$name.as_ref().map($crate::settings::SettingType::write);
                    } )*)*
                    _ => {}
                }
                $( if let Some(value) = self.$part.get(name) {
                    return Some(value);
                } )*
                None
            }

            /// Forgets what has this name.
            pub fn clear(&mut self, name: &str) {
                match name {
                    $($( stringify!($name) => self.$name = None, )*)*
                    _ => {}
                }
                $( self.$part.clear(name); )*
            }

            /// Those that are set, in the order of the table.
            pub fn given(&self) -> Vec<($crate::settings::Setting, $crate::settings::Value)> {
                let value = |setting: $crate::settings::Setting| {
                    self.get(setting.name).map(|value| (setting, value))
                };
                Self::table().into_iter().filter_map(value).collect()
            }
        }
    };
}
