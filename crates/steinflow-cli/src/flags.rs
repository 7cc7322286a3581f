//! The settings of a run as flags: one for every row of their table.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, builder::ValueParser};
use steinflow::settings::{Kind, Setting, Value};
use steinflow_config::Settings;

/// Settings from the command line.
#[derive(Clone, Debug, Default)]
pub struct Flags(pub Settings);

/// Flags that are typed often.
const SHORT: [(&str, char); 2] = [("method", 'm'), ("particles", 'n')];

fn argument(setting: &Setting) -> Arg {
    let kind = setting.kind;
    let mut argument = Arg::new(setting.name)
        .value_name(setting.placeholder)
        .help(setting.help)
        .value_parser(ValueParser::from(move |text: &str| kind.parse(text)))
        .action(if kind == Kind::Phases { ArgAction::Append } else { ArgAction::Set });
    if !matches!(kind, Kind::Path | Kind::Switch | Kind::Phases) {
        // A formula may well begin with a minus.
        let begins_with_minus = kind == Kind::Numbers || setting.name == "density";
        argument = argument.allow_negative_numbers(true).allow_hyphen_values(begins_with_minus);
    }
    if kind == Kind::Switch {
        argument = argument.num_args(0..=1).require_equals(true).default_missing_value("true");
    }
    // The one that is not a flag.
    if setting.name == "model" {
        return argument;
    }
    if let Some((_, short)) = SHORT.iter().find(|(name, _)| *name == setting.name) {
        argument = argument.short(*short);
    }
    argument.long(&*setting.flag().leak()).help_heading(setting.group)
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        command.args(Settings::table().iter().map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for setting in Settings::table() {
            let mut given = matches.get_many::<Value>(setting.name).into_iter().flatten().cloned();
            let value = match setting.kind {
                Kind::Phases => {
                    let phases: Vec<Value> = given.collect();
                    (!phases.is_empty()).then_some(Value::List(phases))
                }
                _ => given.next(),
            };
            if let Some(value) = value
                && let Some(Err(remedy)) = self.0.set(setting.name, &value)
            {
                let message = format!("invalid value {value} for '--{}': {remedy}", setting.flag());
                return Err(clap::Error::raw(
                    clap::error::ErrorKind::ValueValidation,
                    message + "\n",
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: Flags,
    }

    fn given(words: &[&str]) -> Result<Settings, String> {
        let line = Line::try_parse_from([&["steinflow"], words].concat());
        line.map(|line| line.flags.0).map_err(|error| error.to_string())
    }

    #[test]
    fn every_setting_has_a_flag_and_reads_what_a_config_writes() {
        Line::command_for_test().debug_assert();
        let settings = given(&[
            "banana",
            "-m",
            "svgd",
            "-n",
            "7",
            "--start-mean",
            "-1,2",
            "--phase",
            "euler:1x2",
            "--phase",
            "euler:linear:2:1x3",
            "--hidden",
            "5,6",
            "--friction",
            "0.5",
        ])
        .unwrap();
        assert_eq!(settings.spec.model.as_deref(), Some("banana"));
        assert_eq!(settings.start_mean, Some(vec![-1.0, 2.0]));
        assert_eq!(settings.phase.as_ref().map(Vec::len), Some(2));
        let again: Settings = toml::from_str(&settings.to_toml()).unwrap();
        assert_eq!(again, settings);
    }

    #[test]
    fn a_value_that_does_not_fit_names_its_flag() {
        for (words, expected) in [
            (&["--steps", "many"][..], "'--steps <K>': give a whole number"),
            (&["--friction", "x"], "'--friction <A>': give a number"),
            (&["--phase", "euler"], "'--phase': write INTEGRATOR:EPSxSTEPS"),
            (&["--seed", "-1"], "'--seed <SEED>': give a whole number"),
        ] {
            let error = given(words).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    impl Line {
        fn command_for_test() -> Command {
            <Self as clap::CommandFactory>::command()
        }
    }
}
