//! Files as publishers make them, for the tests.

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};

use steinflow_models::data::{Archive, Layout, Table};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// A zip archive.
pub fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// An `.xlsx` file with a header and these rows in every sheet, and a blank row at the end.
pub fn xlsx(sheets: &[Vec<Vec<f64>>]) -> Vec<u8> {
    const MAIN: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    const RELATIONS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    const PACKAGE: &str = "http://schemas.openxmlformats.org/package/2006";
    let mut files = vec![
        ("[Content_Types].xml".to_owned(), format!(r#"<Types xmlns="{PACKAGE}/content-types"/>"#)),
        (
            "_rels/.rels".to_owned(),
            format!(
                r#"<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r0" Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>"#
            ),
        ),
    ];
    let (mut book, mut relations) = (String::new(), String::new());
    for (k, rows) in sheets.iter().enumerate() {
        write!(book, r#"<sheet name="S{k}" sheetId="{}" r:id="r{k}"/>"#, k + 1).unwrap();
        write!(
            relations,
            r#"<Relationship Id="r{k}" Type="{RELATIONS}/worksheet" Target="worksheets/sheet{k}.xml"/>"#
        )
        .unwrap();
        let mut data =
            r#"<row r="1"><c r="A1" t="inlineStr"><is><t>X1</t></is></c></row>"#.to_owned();
        for (i, row) in rows.iter().enumerate() {
            let line = i + 2;
            write!(data, r#"<row r="{line}">"#).unwrap();
            for (column, value) in ('A'..).zip(row) {
                write!(data, r#"<c r="{column}{line}"><v>{value}</v></c>"#).unwrap();
            }
            data.push_str("</row>");
        }
        let last = rows.len() + 2;
        write!(data, r#"<row r="{last}"><c r="A{last}"/></row>"#).unwrap();
        files.push((
            format!("xl/worksheets/sheet{k}.xml"),
            format!(r#"<worksheet xmlns="{MAIN}"><sheetData>{data}</sheetData></worksheet>"#),
        ));
    }
    files.push((
        "xl/workbook.xml".to_owned(),
        format!(
            r#"<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><sheets>{book}</sheets></workbook>"#
        ),
    ));
    files.push((
        "xl/_rels/workbook.xml.rels".to_owned(),
        format!(r#"<Relationships xmlns="{PACKAGE}/relationships">{relations}</Relationships>"#),
    ));
    let files: Vec<(&str, &[u8])> =
        files.iter().map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
    zip(&files)
}

/// The table in the layout of `archive`, packed as it is packed there.
pub fn published(table: &Table, archive: &Archive) -> Vec<u8> {
    let values = table.values();
    let target = values.cols() - 1;
    let rows: Vec<Vec<f64>> = (0..values.rows())
        .map(|i| {
            let mut row = values.row(i)[..target].to_vec();
            row.insert(archive.target, values.row(i)[target]);
            row.resize(archive.columns, 0.5);
            row
        })
        .collect();
    let lines = |separator: &str| -> String {
        let line =
            |row: &Vec<f64>| row.iter().map(f64::to_string).collect::<Vec<_>>().join(separator);
        rows.iter().map(|row| line(row) + "\r\n").collect()
    };
    let bytes = match archive.layout {
        Layout::Csv => format!("first,second\r\n{}", lines(",")).into_bytes(),
        Layout::Headerless => lines(",").into_bytes(),
        Layout::Arff => format!("% 1996\n@relation 'x'\n@data\n{}", lines(",")).into_bytes(),
        Layout::Spaced { prose } => {
            // A word of the prose may be a number, and a row may take two lines.
            ("1978 was a year\n".repeat(prose) + &lines(" \n  ")).into_bytes()
        }
        Layout::Sheet => {
            let shuffled = rows.iter().rev().cloned().collect();
            xlsx(&[shuffled, rows])
        }
    };
    match archive.member {
        Some(member) => zip(&[("Readme.txt", b"read me"), (&format!("folder/{member}"), &bytes)]),
        None => bytes,
    }
}
