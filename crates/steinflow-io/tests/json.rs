//! Summaries have the same bytes each time and no words that JSON does not know.

use std::collections::HashMap;

use serde::Serialize;
use steinflow_io::write_json;

#[derive(Serialize)]
struct Summary {
    steps: u64,
    mean: Vec<f64>,
    by_name: HashMap<String, f32>,
}

#[test]
fn keys_are_sorted_and_floats_without_a_word_are_null() {
    let by_name = (0..20).map(|k| (format!("k{k:02}"), f32::INFINITY)).collect();
    let summary =
        Summary { steps: u64::MAX, mean: vec![0.1, f64::NAN, f64::NEG_INFINITY], by_name };
    let mut bytes = Vec::new();
    write_json(&summary, &mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();

    let compact: String = text.split_whitespace().collect();
    assert!(compact.ends_with(r#""mean":[0.1,null,null],"steps":18446744073709551615}"#), "{text}");
    let keys: Vec<usize> =
        (0..20).map(|k| text.find(&format!("\"k{k:02}\": null")).unwrap()).collect();
    assert!(keys.is_sorted(), "{text}");
    assert!(text.ends_with("}\n"));
}

#[test]
fn a_full_disk_is_an_error() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("disk full"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let error = write_json(&[1.0], Full).unwrap_err();
    assert!(error.to_string().contains("disk full"), "{error}");
}
