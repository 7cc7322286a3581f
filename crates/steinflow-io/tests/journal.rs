//! Journals survive kills, and never mix the results of different settings.

use std::fs;

use steinflow_io::{Error, Journal};

fn journal_with_two() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/jobs.jsonl");
    let journal = Journal::open(&path, "a = 1\n").unwrap();
    journal.record("one", &Some(0.1 + 0.2)).unwrap();
    journal.record("two", &None::<f64>).unwrap();
    (folder, path)
}

#[test]
fn results_come_back_to_the_same_bits() {
    let (_folder, path) = journal_with_two();
    let journal = Journal::open(&path, "a = 1\n").unwrap();
    assert_eq!(journal.found(), 2);
    assert_eq!(journal.find::<Option<f64>>("one"), Some(Some(0.1 + 0.2)));
    assert_eq!(journal.find::<Option<f64>>("two"), Some(None));
    journal.delete().unwrap();
    assert!(!path.exists());
}

#[test]
fn a_line_that_was_cut_short_at_any_byte_is_dropped() {
    let (_folder, path) = journal_with_two();
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let journal = Journal::open(&path, "a = 1\n").unwrap();
        let before = journal.found();
        assert!(before < 2 || length == whole.len());
        journal.record("three", &3).unwrap();
        drop(journal);
        let journal = Journal::open(&path, "a = 1\n").unwrap();
        assert_eq!((journal.found(), journal.find::<i32>("three")), (before + 1, Some(3)));
    }
}

#[test]
fn a_line_that_was_cut_short_inside_a_character_is_dropped() {
    let (_folder, path) = journal_with_two();
    let journal = Journal::open(&path, "a = 1\n").unwrap();
    journal.record("μ", &"αβγ").unwrap();
    drop(journal);
    let whole = fs::read(&path).unwrap();
    let start = whole[..whole.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
    for length in start..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let journal = Journal::open(&path, "a = 1\n").unwrap();
        assert_eq!(journal.found(), 2, "{length}");
    }
}

#[test]
fn a_file_that_is_no_journal_is_never_erased() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes");
    for content in
        [&b"notes without a line's end"[..], b"\xff\xfe", b"{", b"a,b\n1,2\n", b"\n", b"{}\n"]
    {
        let is_beginning = content == b"{";
        fs::write(&path, content).unwrap();
        let opened = Journal::open(&path, "a = 1\n");
        if is_beginning {
            // A first line that was cut short after one byte looks like this.
            opened.unwrap();
            continue;
        }
        let error = opened.unwrap_err();
        assert!(matches!(error, Error::NotAJournal { .. }) && error.is_usage(), "{error}");
        assert_eq!(fs::read(&path).unwrap(), content);
    }
}

#[test]
fn other_settings_damage_and_a_second_writer_are_refused_and_nothing_is_lost() {
    let (_folder, path) = journal_with_two();
    let whole = fs::read_to_string(&path).unwrap();
    assert!(matches!(Journal::open(&path, "a = 2\n"), Err(Error::OtherJournal { .. })));

    let first = Journal::open(&path, "a = 1\n").unwrap();
    let second = Journal::open(&path, "a = 1\n");
    assert!(matches!(second, Err(Error::JournalInUse { .. })));
    drop(first);

    let damaged = whole.replacen("\"one\"", "one", 1);
    fs::write(&path, &damaged).unwrap();
    let error = Journal::open(&path, "a = 1\n").unwrap_err();
    assert!(error.to_string().contains("line 2"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
}
