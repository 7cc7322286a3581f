//! Tables as people keep them: what is made of every kind of column, and what new rows become.

use std::path::{Path, PathBuf};

use steinflow_models::data::{Choices, Missing, Recipe, Table, read_new_rows, read_table};
use steinflow_models::{ModelSpec, TableError, build};

fn choose(text: &str, choices: &Choices) -> Table {
    Table::choose_from_reader(text.as_bytes(), "data.csv", choices).unwrap()
}

fn refuse(text: &str, choices: &Choices) -> TableError {
    Table::choose_from_reader(text.as_bytes(), "data.csv", choices).unwrap_err()
}

fn words(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// One of everything.
const HOMES: &str = "\u{feff}# by hand\nid;district;area;garden;built;country;note;price\n\
                     7;north;50,5;yes;2001-01-01;DE;a;1.100,5\n\
                     8;south;60;no;2001-01-02;DE;b;1.200\n\
                     9;east;NA;no;2001-01-03;DE;c;1.300\n\
                     # doubtful\n\
                     10;south;70;yes;2001-01-05;DE;d;1.400\n";

#[test]
fn every_kind_of_column_becomes_numbers() {
    let table = choose(HOMES, &Choices::default());
    assert_eq!(table.columns(), ["district[south]", "area", "garden", "built", "price"]);
    assert_eq!(table.values().rows(), 3);
    assert_eq!(table.values().row(0), [0.0, 50.5, 1.0, 11_323.0, 1100.5]);
    assert_eq!(table.values().row(2), [1.0, 70.0, 1.0, 11_327.0, 1400.0]);
    // The lines and numbers of the file.
    assert_eq!((table.line(0), table.line(2), table.number(2)), (3, 7, 3));
    let notes = table.notes().join("\n");
    for note in [
        "read 3 rows, 5 columns, with semicolons and decimal commas; 1 rows with missing cells left out",
        "id: left out, every row has its own: an identifier",
        "district: a category of 2 levels, each against `north`",
        "garden: yes is 1, no is 0",
        "built: dates, as days since 1970-01-01",
        "country: left out, it is the same in every row",
        "note: left out, every row has its own: an identifier",
    ] {
        assert!(notes.contains(note), "`{note}` is not in:\n{notes}");
    }
}

#[test]
fn tables_of_spreadsheets_are_read() {
    let text = "größe;code;month;price;\n1;02139;2024-01;1.100,50 €;\n2;10001;2024-02;900,00 €;\n\
                3;02139;2024-03;1.000,00 €;\n4;10001;2024-03;950,00 €;\n";
    let bytes: Vec<u8> = text.chars().map(|c| if c == '€' { 0x80 } else { c as u8 }).collect();
    let table = Table::choose_from_reader(&bytes[..], "data.csv", &Choices::default()).unwrap();
    assert_eq!(table.columns(), ["größe", "code[10001]", "month", "price"]);
    assert_eq!(table.values().row(0), [1.0, 0.0, 19_723.0, 1100.5]);
    let notes = table.notes().join("\n");
    for note in [
        "read 4 rows, 4 columns, with semicolons and decimal commas, in Windows-1252",
        "code: a category of 2 levels, each against `02139`",
        "month: dates",
        "price: numbers, without their €",
    ] {
        assert!(notes.contains(note), "`{note}` is not in:\n{notes}");
    }
    // Cells that no column has must be empty.
    let error = refuse("a,y,\n1,2,\n3,4,5\n", &Choices::default());
    assert!(matches!(error, TableError::RaggedRow { line: 3, .. }), "{error}");
}

#[test]
fn classes_stand_in_the_order_that_is_given() {
    let text = "x,y\n1,low\n2,high\n3,medium\n4,low\n";
    let with = |order: &[&str]| Choices { order: Some(words(order)), ..Choices::default() };
    let table = choose(text, &with(&["low", "medium", "high"]));
    let classes: Vec<f64> = (0..4).map(|i| table.values().row(i)[1]).collect();
    assert_eq!(classes, [0.0, 2.0, 1.0, 0.0]);
    assert_eq!(choose(text, &with(&["low", "medium", "high", "none"])).values(), table.values());
    for order in [&["low", "high"][..], &["low", "medium", "low", "high"]] {
        let error = refuse(text, &with(order)).to_string();
        assert!(error.contains("name each class once"), "{error}");
    }
    let numbers = choose("x,y\n1,3\n2,1\n3,2\n", &with(&["3", "2", "1"]));
    assert_eq!(numbers.recipe().levels("y").unwrap(), ["3", "2", "1"]);
}

#[test]
fn what_is_said_goes_before_what_is_found() {
    let features = Choices { features: Some(words(&["id", "area"])), ..Choices::default() };
    assert_eq!(choose(HOMES, &features).columns(), ["id", "area", "price"]);
    let dropped = Choices { drop: words(&["area", "district"]), ..Choices::default() };
    let table = choose(HOMES, &dropped);
    assert_eq!(table.columns(), ["garden", "built", "price"]);
    assert_eq!(table.values().rows(), 4, "no row lacks anything else");
    let codes = "code,y\n10,1\n9,2\n10,3\n";
    let choices = Choices { categorical: words(&["code"]), ..Choices::default() };
    let table = choose(codes, &choices);
    assert_eq!(table.columns(), ["code[10]", "y"], "levels stand in the order of their numbers");
    assert_eq!(choose(codes, &Choices::default()).columns(), ["code", "y"]);
    let choices = Choices { drop: words(&["aera"]), ..Choices::default() };
    assert!(refuse(HOMES, &choices).to_string().contains("did you mean `area`?"));
}

#[test]
fn missing_cells_are_left_out_filled_or_refused() {
    let text = "a,c,y\n1,u,1\n,v,2\n4,,3\n1,v,\n";
    let rows = |missing| {
        let table = choose(text, &Choices { missing, ..Choices::default() });
        (0..table.values().rows()).map(|i| table.values().row(i).to_vec()).collect::<Vec<_>>()
    };
    // One row has all, in which nothing varies: without the first column there are two, and `c` does.
    assert_eq!(rows(Missing::Drop), [[0.0, 1.0], [1.0, 2.0]]);
    // Without the row that has no target: the mean of 1 and 4, and the first of two equal levels.
    assert_eq!(rows(Missing::Mean), [[1.0, 0.0, 1.0], [2.5, 1.0, 2.0], [4.0, 0.0, 3.0]]);
    let error = refuse(text, &Choices { missing: Missing::Error, ..Choices::default() });
    assert!(matches!(error, TableError::MissingCell { line: 3, .. }), "{error}");
    let error = refuse("a,y\n,1\n2,\n", &Choices::default());
    assert!(matches!(error, TableError::NoWholeRows { .. }), "{error}");
}

#[test]
fn a_slip_among_numbers_is_no_category() {
    let error = refuse("a,y\n1,2\n2,3\nthree,4\n", &Choices::default());
    assert!(matches!(error, TableError::NotANumber { line: 4, .. }), "{error}");
    assert!(error.to_string().contains("--categorical a"), "{error}");
}

#[test]
fn a_target_of_words_is_the_number_of_its_level() {
    let table = choose("a,y\n1,yes\n2,no\n", &Choices::default());
    assert_eq!(table.values().as_slice(), [1.0, 1.0, 2.0, 0.0]);
    let table = choose("a,y\n1,late\n2,early\n4,late\n", &Choices::default());
    assert_eq!(table.values().as_slice(), [1.0, 1.0, 2.0, 0.0, 4.0, 1.0]);
    assert_eq!(table.recipe().levels("y"), Some(&words(&["early", "late"])[..]));
}

fn new_rows(recipe: &Recipe, text: &str) -> steinflow_models::Result<Table> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("new.csv");
    std::fs::write(&file, text).unwrap();
    read_new_rows(&file, None, recipe)
}

#[test]
fn new_rows_go_the_same_way() {
    let table = choose(HOMES, &Choices { drop: words(&["area"]), ..Choices::default() });
    let recipe = table.recipe();
    // In another order, another dialect, without the target, with a column that is not asked for.
    let new = "built,district,garden,colour\n2001-01-05,east,no,red\n,east,no,red\n1970-01-02,north,yes,blue\n";
    let table = new_rows(recipe, new).unwrap();
    assert_eq!(table.columns(), ["district[north]", "district[south]", "garden", "built"]);
    assert_eq!(table.values().row(0), [0.0, 0.0, 0.0, 11_327.0]);
    assert_eq!((table.values().row(1), table.number(1)), (&[1.0, 0.0, 1.0, 1.0][..], 2));
    let unknown = new_rows(recipe, "built,district,garden\n2001-01-05,west,no\n").unwrap_err();
    let message = unknown.to_string();
    assert!(message.contains("line 2, column `district`: `west` is a level"), "{message}");
    assert!(message.contains("known: east, north, south"), "{message}");
    let message = new_rows(recipe, "built,garden\n2001-01-05,no\n").unwrap_err().to_string();
    assert!(message.contains("no column `district`"), "{message}");
    let message =
        new_rows(recipe, "built,district,garden\nsoon,east,no\n").unwrap_err().to_string();
    assert!(message.contains("`soon` is not a date"), "{message}");
}

#[test]
fn a_data_set_with_a_name_can_be_chosen_from() {
    let all = read_table(Path::new("penguins"), None, &Choices::default()).unwrap().0;
    let choices = Choices { drop: words(&["male"]), ..Choices::default() };
    let fewer = read_table(Path::new("penguins"), None, &choices).unwrap().0;
    assert_eq!((all.columns().len(), fewer.columns().len()), (7, 6));
    assert_eq!(fewer.values().rows(), 333);
}

#[test]
fn a_formula_multiplies_columns_and_new_rows_go_the_same_way() {
    let text = "price,area,district,age,id\n1,10,2,3,7\n2,20,1,4,8\n4,30,2,6,9\n5,15,3,7,5\n";
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("formula.csv");
    std::fs::write(&path, text).unwrap();
    let spec = |formula: &str| ModelSpec {
        data: Some(path.clone()),
        formula: Some(formula.to_owned()),
        ..ModelSpec::named("linear-regression")
    };
    let fit = |formula: &str| build::<f64>(&spec(formula));
    let model = fit("price ~ area + C(district):age").unwrap();
    // Without `age` by itself, every district has a slope.
    let ages = ["district[1]:age", "district[2]:age", "district[3]:age"];
    let names = [&["intercept", "area"][..], &ages, &["noise"]].concat();
    assert_eq!(model.parameter_names(), names);
    let fitted = model.fitted().unwrap();
    let new = path.with_file_name("formula-new.csv");
    std::fs::write(&new, "age,district,area\n5,3,12\n").unwrap();
    let table = read_new_rows(&new, None, fitted.recipe()).unwrap();
    assert_eq!(table.columns(), [&["area"][..], &ages].concat());
    assert_eq!(table.values().row(0), [12.0, 0.0, 0.0, 5.0]);
    assert_eq!(
        fit("price ~ age + C(district):age").unwrap().parameter_names(),
        ["intercept", "age", ages[1], ages[2], "noise"]
    );
    assert_eq!(
        fit("price ~ area*age").unwrap().parameter_names(),
        ["intercept", "area", "age", "area:age", "noise"]
    );
    assert_eq!(
        fit("price ~ . - id").unwrap().parameter_names(),
        ["intercept", "area", "district", "age", "noise"]
    );
    for (formula, expected) in
        [("price ~ aria", "did you mean `area`?"), ("price ~ area:agee", "did you mean `age`?")]
    {
        let error = fit(formula).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let both = ModelSpec { target: Some("price".into()), ..spec("price ~ area") };
    let error = build::<f64>(&both).err().unwrap().to_string();
    assert!(error.contains("leave those out"), "{error}");
}
