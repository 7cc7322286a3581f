//! Every format and every failure, from a server on this computer, with a small set made up for it.

use std::io::Write as _;

use steinflow_models::data::{Layout, Splits, Table, content_sha256};

use super::fixtures::{published, xlsx, zip};
use super::*;
use server::{Answer, Server};

#[path = "../../../tests/support/server.rs"]
mod server;

/// Rows of the set: two features and the target.
const ROWS: [[f64; 3]; 4] =
    [[1.0, 0.5, 10.0], [2.0, -0.25, 20.0], [3.0, 1e-3, 35.5], [4.0, 0.0, 5.0]];

fn own_form(rows: &[[f64; 3]]) -> String {
    let rows: Vec<String> = rows.iter().map(|[a, b, y]| format!("{a},{b},{y}\n")).collect();
    format!("a,b,target\n{}", rows.concat())
}

fn set() -> DataSet {
    let table = Table::from_reader(own_form(&ROWS).as_bytes(), "made-up.csv").unwrap();
    let fingerprint = Fingerprint::Numbers(content_sha256(table.values()).leak());
    DataSet {
        name: "made-up",
        title: "",
        rows: 4,
        features: &["a", "b"],
        target: "target",
        target_meaning: "",
        licence: "",
        citation: "",
        page: "",
        splits: Splits::Standard(1),
        fingerprint,
        archives: &[],
    }
}

const CSV: Archive =
    Archive { url: "", sha256: None, member: None, layout: Layout::Csv, columns: 3, target: 2 };

/// A folder, and what a fetch left in it.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("made-up.csv.gz")
    }

    fn fetch(&self, url: String, archive: Archive) -> Result<(), Trouble> {
        let source = Source { place: Place::Url(url), archive };
        fetch(&set(), &source, &self.file(), true)
    }

    fn listing(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The set is there, right and alone.
    fn holds_the_set(&self) {
        let table = Table::read(self.file()).unwrap();
        set().check(&table).unwrap();
        assert_eq!(self.listing(), ["made-up.csv.gz"]);
    }
}

fn serve(body: Vec<u8>) -> Server {
    Server::start(move |_, _| Answer::new(200, &body))
}

#[test]
fn every_format_gives_the_same_table() {
    let target_first = "RMSD,F1,F2\r\n10,1,0.50\r\n20,2,-0.25\r\n35.5,3,1e-3\r\n5,4,-0\r\n";
    let spaced = "A story\nin two lines\n 1 0.5\n  10.0\n2 -0.25\n20\n3 .001\n35.5 \n4 0\n5\n\n";
    let arff = "% robot\n@relation x\n@attribute a numeric\n@DATA\n1,0.5,10\n% half\n2,-0.25,20\n\
                3,1.0e-03,35.5\n4,0,5\n";
    let cooling = |row: &[f64; 3]| vec![row[0], row[1], row[2], 99.0];
    let right: Vec<Vec<f64>> = ROWS.iter().map(cooling).collect();
    let shuffled: Vec<Vec<f64>> = ROWS.iter().rev().map(cooling).collect();
    let sheets = xlsx(&[shuffled, right]);
    let first = Archive { target: 0, ..CSV };
    let member = Some("data.bin");
    let sheet = Archive { layout: Layout::Sheet, columns: 4, ..CSV };
    let formats: Vec<(&str, Vec<u8>, Archive)> = vec![
        ("csv", target_first.into(), first),
        (
            "zip",
            zip(&[("readme", b"x"), ("A/DATA.bin", target_first.as_bytes())]),
            Archive { member, ..first },
        ),
        (
            "zip in zip",
            zip(&[("old.zip", &zip(&[("data.bin", target_first.as_bytes())]))]),
            Archive { member, ..first },
        ),
        ("spaced", spaced.into(), Archive { layout: Layout::Spaced { prose: 2 }, ..CSV }),
        ("arff", arff.into(), Archive { layout: Layout::Arff, ..CSV }),
        ("xlsx", sheets.clone(), sheet),
        ("xlsx in zip", zip(&[("CCPP/data.bin", &sheets)]), Archive { member, ..sheet }),
        ("own form", own_form(&ROWS).into(), sheet),
    ];
    for (name, body, archive) in formats {
        let desk = Desk::new();
        desk.fetch(serve(body).url("x"), archive)
            .unwrap_or_else(|trouble| panic!("{name}: {trouble}"));
        desk.holds_the_set();
    }
}

#[test]
fn a_file_that_is_here_is_taken_and_stays() {
    let desk = Desk::new();
    let mine = Desk::new();
    let file = mine.0.path().join("mine.csv");
    std::fs::write(&file, own_form(&ROWS)).unwrap();
    let source = Source { place: Place::File(file.clone()), archive: CSV };
    fetch(&set(), &source, &desk.file(), true).unwrap();
    desk.holds_the_set();
    assert!(file.exists());
}

/// Sends the rest when asked for the rest of the version that it has.
fn ranged(body: &[u8], request: &server::Request, version: &str) -> Answer {
    let tag = format!("\"{version}\"");
    let answer = match request.range() {
        Some(from) if request.header("if-range") == Some(&tag) => Answer::new(206, &body[from..])
            .header(format!("content-range: bytes {from}-{}/{}", body.len() - 1, body.len())),
        _ => Answer::new(200, body),
    };
    answer.header(format!("etag: {tag}"))
}

#[test]
fn a_broken_connection_goes_on_from_where_it_broke() {
    let body = own_form(&ROWS).into_bytes();
    let server = Server::start(move |count, request| {
        let answer = ranged(&body, request, "1");
        if count < 2 { answer.break_off_after(10) } else { answer }
    });
    let desk = Desk::new();
    desk.fetch(server.url("x"), CSV).unwrap();
    desk.holds_the_set();
    let ranges: Vec<_> = server.requests().iter().map(server::Request::range).collect();
    assert_eq!(ranges, [None, Some(10), Some(20)]);
}

#[test]
fn a_later_command_goes_on_too_but_not_with_another_version_or_address() {
    let desk = Desk::new();
    let body = own_form(&ROWS).into_bytes();
    let halves = body.clone();
    // The first answer brings ten bytes, the others none.
    let poor = Server::start(move |count, request| {
        ranged(&halves, request, "1").break_off_after(if count == 0 { 10 } else { 0 })
    });
    let trouble = desk.fetch(poor.url("x"), CSV).unwrap_err();
    assert!(matches!(trouble, Trouble::BrokeOff(_)), "{trouble}");
    assert_eq!(desk.listing(), ["made-up.part", "made-up.version"]);
    assert_eq!(std::fs::read(desk.0.path().join("made-up.part")).unwrap(), body[..10]);

    // Another address: from the beginning.
    let good = Server::start(move |_, request| ranged(&body, request, "2"));
    desk.fetch(good.url("x"), CSV).unwrap();
    assert_eq!(good.requests()[0].range(), None);
    desk.holds_the_set();

    // The same address with another version: the server sends all of it, and the old part is dropped.
    let part = desk.0.path().join("made-up.part");
    std::fs::write(&part, "a,c,tar").unwrap();
    std::fs::write(part.with_extension("version"), format!("{}\n\"1\"", good.url("x"))).unwrap();
    std::fs::remove_file(desk.file()).unwrap();
    desk.fetch(good.url("x"), CSV).unwrap();
    assert_eq!(good.requests()[1].range(), Some(7));
    desk.holds_the_set();
}

#[test]
fn without_a_version_a_rest_is_not_trusted() {
    let body = own_form(&ROWS).into_bytes();
    let server = Server::start(move |count, _| {
        let answer = Answer::new(200, &body);
        if count == 0 { answer.break_off_after(10) } else { answer }
    });
    let desk = Desk::new();
    desk.fetch(server.url("x"), CSV).unwrap();
    desk.holds_the_set();
    assert_eq!(server.requests()[1].range(), None);
}

#[test]
fn redirects_are_followed_and_refusals_reported() {
    let body = own_form(&ROWS).into_bytes();
    let server = Server::start(move |_, request| match request.path.as_str() {
        "/old" => Answer::new(302, b"").header("location: /new"),
        "/new" => Answer::new(200, &body),
        _ => Answer::new(404, b"nothing here"),
    });
    let desk = Desk::new();
    desk.fetch(server.url("old"), CSV).unwrap();
    desk.holds_the_set();
    let desk = Desk::new();
    assert!(matches!(desk.fetch(server.url("none"), CSV), Err(Trouble::Status(404))));
    assert!(desk.listing().is_empty());
}

#[test]
fn wrong_content_is_named_and_leaves_nothing() {
    let mut wrong = ROWS;
    wrong[2][1] += 1e-9;
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (own_form(&wrong).into(), "the SHA-256 of its numbers is"),
        (own_form(&ROWS[..3]).into(), "it has 3 rows, expected 4"),
        (b"a,b,target\n1,2\n".to_vec(), "2 numbers in line 2, expected 3"),
        (b"x,y,z\n1,two,3\n".to_vec(), "line 2: `two` is not a number"),
        (b"<!doctype html>\n<p>Sorry</p>\n".to_vec(), "line 2: `<p>Sorry</p>` is not a number"),
        (zip(&[("readme", b"x")]), "the archive holds no `data.bin`, only readme"),
        (zip(&[("data.bin", b"x,y,z\n1,2,3\n")])[..40].to_vec(), "cannot be unpacked"),
        (vec![0xd0, 0xcf, 0x11, 0xe0, 0xa1], "old Excel file"),
    ];
    for (body, words) in cases {
        let desk = Desk::new();
        let archive = Archive { member: Some("data.bin"), ..CSV };
        let message = desk.fetch(serve(body).url("x"), archive).unwrap_err().to_string();
        assert!(message.contains(words), "`{words}` is not in: {message}");
        assert!(desk.listing().is_empty(), "{:?}", desk.listing());
    }
}

#[test]
fn nothing_grows_beyond_its_limit() {
    let desk = Desk::new();
    let part = desk.0.path().join("x.part");
    // Announced, and found out.
    for body in [vec![b'1'; 1000], Vec::new()] {
        let announced = !body.is_empty();
        let server = Server::start(move |_, _| {
            if announced {
                return Answer::new(200, &body);
            }
            let chunk = format!("3e8\r\n{}\r\n", "1".repeat(1000));
            let answer = Answer::new(200, format!("{chunk}0\r\n\r\n").as_bytes());
            answer.header("transfer-encoding: chunked")
        });
        let done = download(&server.url("x"), &part, 999, true);
        assert!(matches!(done, Err(Trouble::TooLarge(999))), "{done:?}");
        assert!(!part.exists());
    }
    let bomb = desk.0.path().join("bomb.zip");
    std::fs::write(&bomb, zip(&[("data.bin", &vec![0; 1_000_000])])).unwrap();
    let mut out = Vec::new();
    let done = archive::unpack(&bomb, Some("data.bin"), 999_999, &mut out);
    assert!(matches!(done, Err(Trouble::TooLarge(_))), "{done:?}");
    let book = xlsx(&[vec![vec![1.0; 3]; 1000]]);
    let done = super::super::sheet::read(&book, 3, 10_000);
    assert!(matches!(done, Err(Trouble::TooLarge(_))), "{done:?}");
}

/// A set that is kept as it is published: hashed as it is unpacked.
#[test]
fn a_published_file_is_kept_to_the_byte_or_not_at_all() {
    let text = b"2001,1,2\n1999,3,4\n";
    let desk = Desk::new();
    std::fs::write(desk.file(), text).unwrap();
    let sha = file_sha256(desk.file()).unwrap().leak();
    let as_published =
        Archive { member: Some("songs.txt"), layout: Layout::Headerless, target: 0, ..CSV };
    for (bytes, right) in [(&text[..], true), (b"2001,1,2\n1999,3,5\n", false)] {
        let desk = Desk::new();
        let server = serve(zip(&[("songs.txt", bytes)]));
        let source = Source { place: Place::Url(server.url("x")), archive: as_published };
        let set = DataSet { fingerprint: Fingerprint::File(sha), ..set() };
        let file = desk.0.path().join("songs.txt");
        let done = fetch(&set, &source, &file, true);
        if right {
            done.unwrap();
            assert_eq!(std::fs::read(&file).unwrap(), text);
        } else {
            assert!(matches!(done, Err(Trouble::OtherBytes { .. })), "{done:?}");
            assert!(desk.listing().is_empty());
        }
    }
    // The archive's own fingerprint is asked for at its own address.
    let server = serve(zip(&[("songs.txt", text)]));
    let url: &'static str = server.url("x").leak();
    let archive = Archive { url, sha256: Some("00"), ..as_published };
    let done = fetch(
        &set(),
        &Source { place: Place::Url(url.to_owned()), archive },
        Path::new("no"),
        true,
    );
    assert!(matches!(done, Err(Trouble::OtherBytes { expected: "00", .. })), "{done:?}");
}

/// The registry's own entries: what the publishers' files look like, with the numbers of the data folder.
#[test]
fn every_set_is_read_in_its_publishers_format() {
    let Some(folder) = std::env::var_os("STEINFLOW_DATA") else {
        let _ = writeln!(io::stderr(), "skipped: STEINFLOW_DATA is not set");
        return;
    };
    let mut read = 0;
    for set in steinflow_models::data::data_sets() {
        let Ok(located) = find(set.name, Some(Path::new(&folder))) else { continue };
        let Fingerprint::Numbers(_) = set.fingerprint else { continue };
        let table = located.table().unwrap();
        for archive in set.archives {
            let desk = Desk::new();
            let server = serve(published(&table, archive));
            let source = Source { place: Place::Url(server.url("x")), archive: *archive };
            fetch(set, &source, &desk.file(), true)
                .unwrap_or_else(|trouble| panic!("{} {}: {trouble}", set.name, archive.url));
            assert_eq!(Table::read(desk.file()).unwrap().values(), table.values());
            read += 1;
        }
    }
    assert!(read > 0, "there are no data sets in STEINFLOW_DATA");
}
