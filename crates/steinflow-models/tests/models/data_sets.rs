//! Data sets by name: found where they are, refused where they are something else.

use std::io::Write as _;
use std::path::Path;

use steinflow_models::data::{Place, RegressionData, data_sets, find};

#[test]
fn the_built_in_set_needs_no_file() {
    let penguins = find("penguins", None).unwrap();
    assert_eq!(penguins.place(), &Place::BuiltIn);
    let table = penguins.table().unwrap();
    assert_eq!((table.values().rows(), table.columns().len()), (333, 7));
    // Adelie 146, Chinstrap 68, Gentoo 119.
    let count = |column| {
        let column = table.position(Some(column)).unwrap();
        (0..333).filter(|&row| table.values().row(row)[column] == 1.0).count()
    };
    assert_eq!((count("chinstrap"), count("gentoo"), count("male")), (68, 119, 168));
    for index in 0..20 {
        RegressionData::new(&table, None, &penguins.split(index).unwrap()).unwrap();
    }
}

#[test]
fn entries_are_complete() {
    for set in data_sets() {
        assert!(set.rows > 0 && !set.features.is_empty(), "{}", set.name);
        for text in [set.title, set.target_meaning, set.licence, set.citation, set.page] {
            assert!(!text.is_empty(), "{}", set.name);
        }
        for archive in set.archives {
            assert!(archive.target < archive.columns && set.features.len() < archive.columns);
        }
    }
}

#[test]
fn a_set_that_is_nowhere_says_how_to_get_it() {
    // `year` is the only set that the test machine's own folders are not likely to hold.
    let folder = tempfile::tempdir().unwrap();
    let Err(error) = find("year", Some(folder.path())) else {
        let _ = writeln!(std::io::stderr(), "skipped: year is here");
        return;
    };
    let message = error.to_string();
    let folder = folder.path().display().to_string();
    for words in ["`year`", "YearPredictionMSD.txt", &folder, "data fetch year", "STEINFLOW_DATA"] {
        assert!(message.contains(words), "`{words}` is not in: {message}");
    }
    let message = find("bostn", None).unwrap_err().to_string();
    assert!(message.contains("did you mean `boston`?"), "{message}");
}

/// Whatever else calls itself by a benchmark's name is not taken for it.
#[test]
fn files_of_other_content_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let header = "longitudinal_position,prismatic_coefficient,length_displacement_ratio,\
                  beam_draught_ratio,length_beam_ratio,froude_number,target\n";
    let row = "1,2,3,4,5,6,7\n";
    let made_up = format!("{header}{}", row.repeat(308));
    for (text, words) in [
        ("x,target\n1,2\n", "its columns are x,target, expected longitudinal_position"),
        (&format!("{header}{row}"), "it has 1 rows, expected 308"),
        (&made_up, "the SHA-256 of its numbers is"),
    ] {
        std::fs::write(folder.path().join("yacht.csv"), text).unwrap();
        let message = find("yacht", Some(folder.path())).unwrap().table().unwrap_err().to_string();
        assert!(message.contains(words), "`{words}` is not in: {message}");
        assert!(message.contains("data fetch yacht --force"), "{message}");
        assert!(message.contains("--data FILE"), "{message}");
    }
}

#[test]
fn every_set_of_the_data_folder_is_what_its_name_says() {
    let Some(folder) = std::env::var_os("STEINFLOW_DATA") else {
        let _ = writeln!(std::io::stderr(), "skipped: STEINFLOW_DATA is not set");
        return;
    };
    let mut found = 0;
    for set in data_sets() {
        let Ok(located) = find(set.name, Some(Path::new(&folder))) else { continue };
        let table = located.table().unwrap();
        let data = RegressionData::new(&table, Some(set.target), &located.split(0).unwrap());
        let data = data.unwrap();
        assert_eq!(data.standardisation().feature_names, set.features);
        assert_eq!(data.train_inputs().rows() + data.test_inputs().rows(), set.rows);
        found += 1;
    }
    assert!(found > 1, "there are no data sets in STEINFLOW_DATA");
}
