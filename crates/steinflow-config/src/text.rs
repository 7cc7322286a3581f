//! Settings as TOML.

use std::fmt::{self, Write as _};

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use steinflow::settings::{Kind, Value};

use crate::Settings;

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Given;
        impl<'de> Visitor<'de> for Given {
            type Value = Settings;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("settings of a run")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Settings, A::Error> {
                let mut settings = Settings::default();
                while let Some(name) = map.next_key::<String>()? {
                    let Plain(value) = map.next_value()?;
                    settings.put(&name, &value).map_err(|message| {
                        // In a config, names are written with `-`.
                        A::Error::custom(message.replace(&name.replace('-', "_"), &name))
                    })?;
                }
                Ok(settings)
            }
        }
        from.deserialize_map(Given)
    }
}

/// A value of any kind.
struct Plain(Value);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Plain;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a number, text, or several of them")
            }

            fn visit_bool<E>(self, value: bool) -> Result<Plain, E> {
                Ok(Plain(Value::Switch(value)))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Plain, E> {
                Ok(Plain(match u64::try_from(value) {
                    Ok(count) => Value::Count(count),
                    Err(_) => Value::Number(value as f64),
                }))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Plain, E> {
                Ok(Plain(Value::Count(value)))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Plain, E> {
                Ok(Plain(Value::Number(value)))
            }

            fn visit_str<E>(self, value: &str) -> Result<Plain, E> {
                Ok(Plain(Value::Text(value.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Plain, A::Error> {
                let mut list = Vec::new();
                while let Some(Plain(value)) = values.next_element()? {
                    list.push(value);
                }
                Ok(Plain(Value::List(list)))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Plain, A::Error> {
                let mut entries = Vec::new();
                while let Some((name, Plain(value))) = map.next_entry::<String, Plain>()? {
                    entries.push((name, value));
                }
                Ok(Plain(Value::Table(entries)))
            }
        }
        from.deserialize_any(Any)
    }
}

impl Settings {
    /// The text of a config: a line a setting, then the phases.
    pub fn to_toml(&self) -> String {
        let (phases, lines): (Vec<_>, Vec<_>) =
            self.given().into_iter().partition(|(setting, _)| setting.kind == Kind::Phases);
        let mut text = String::new();
        for (setting, value) in lines {
            let _ = writeln!(text, "{} = {value}", setting.flag());
        }
        for (setting, value) in phases {
            let Value::List(tables) = value else { continue };
            for table in tables {
                let Value::Table(entries) = table else { continue };
                let _ = writeln!(text, "\n[[{}]]", setting.flag());
                for (name, value) in entries {
                    let _ = writeln!(text, "{name} = {value}");
                }
            }
        }
        text
    }
}
