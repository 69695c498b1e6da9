//! docs/options.md is what the tables of settings say. XC_WRITE_DOCS=1 writes it anew.

use std::fmt::Write as _;
use xc_train::settings::text::{self, TextSettings, TokenSettings};
use xc_train::settings::words::{self, WordSettings};
use xc_train::settings::{
    Setting, Table, Values, astra, candidates, data, input, mach, network, serialised, tree, uniform,
};

fn values(row: &Setting) -> String {
    match (row.names(), row.values) {
        (Some(names), _) => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
        (None, Values::Switch) => "switch".to_owned(),
        (None, Values::Bool) => "`true`, `false`".to_owned(),
        (None, Values::Size) => "integer".to_owned(),
        (None, Values::Sizes) => "integers".to_owned(),
        (None, Values::F32 | Values::F64) => "number".to_owned(),
        (None, _) => row.unit.to_owned(),
    }
}

/// The text of a setting without its default, and the default.
fn said(row: &Setting, usual: Option<String>) -> (String, String) {
    let (text, in_text) = match row.help.rsplit_once(" [default: ") {
        Some((text, rest)) => (text, Some(rest.trim_end_matches(']').to_owned())),
        None => (row.help, None),
    };
    (text.replace('|', "\\|"), usual.or(in_text).unwrap_or_else(|| "by kind".to_owned()))
}

fn section(out: &mut String, title: &str, of: &str, table: &Table, usual: impl Fn(&Setting) -> Option<String>) {
    writeln!(out, "\n## {title}\n\n{of}\n").unwrap();
    let needs = |row: &Setting| table.needs(row).map_or_else(String::new, |needs| format!("`{needs}`"));
    let tried = |row: &Setting| row.searched.map_or_else(String::new, |searched| searched.values.join(", "));
    let mut more = vec![
        ("needs", table.rows.iter().map(needs).collect::<Vec<_>>()),
        ("`xc tune` tries", table.rows.iter().map(tried).collect()),
    ];
    more.retain(|(_, cells)| cells.iter().any(|cell| !cell.is_empty()));
    let heads = more.iter().map(|(name, _)| format!(" {name} |")).collect::<String>();
    let rule = "---|".repeat(more.len());
    writeln!(out, "| option | values | default | meaning |{heads}\n|---|---|---|---|{rule}").unwrap();
    for (at, row) in table.rows.iter().enumerate() {
        let (text, usual) = said(row, usual(row));
        let values = values(row).replace('|', "\\|");
        let more = more.iter().map(|(_, cells)| format!(" {} |", cells[at])).collect::<String>();
        writeln!(out, "| `--{}` | {values} | {usual} | {text} |{more}", row.name).unwrap();
    }
}

fn page() -> String {
    let mut out =
        "# Options of training\n\nWritten from the tables of `xc_train::settings`. Options of files and of the machine: \
                   `xc train KIND --help`.\n"
            .to_owned();
    let none = |_: &Setting| None;
    section(&mut out, "Label trees", "`xc train tree`, `xc tune tree`.", &tree::TABLE, tree::usual);
    let of = "Of trees, beside their parameters.";
    section(&mut out, "Presets of trees", of, &tree::OWN, |row| (row.name == "preset").then(|| "default".to_owned()));
    let of = "`xc train mach`, `dense`, `uniform`, `lns`, `astra`, `skipgram`; defaults by kind.";
    section(&mut out, "All networks", of, &network::TABLE, none);
    section(&mut out, "MACH", "`xc train mach`.", &mach::TABLE, none);
    section(&mut out, "Sparse output layers", "`xc train uniform`.", &uniform::TABLE, none);
    section(&mut out, "Sampled output layers", "`xc train lns`, `xc train skipgram`.", &candidates::TABLE, none);
    section(&mut out, "ASTRA", "`xc train astra`.", &astra::TABLE, none);
    let of = "`xc train skipgram`.";
    section(&mut out, "Words", of, &words::TABLE, |row| row.shown(&serialised(&WordSettings::default())));
    let all = "All kinds but skipgram.";
    section(&mut out, "Rows of features", all, &data::TABLE, none);
    section(&mut out, "Text", all, &text::TABLE, |row| row.shown(&serialised(&TextSettings::default())));
    let tokens = |row: &Setting| row.shown(&serialised(&TokenSettings::default()));
    section(&mut out, "Words of a text", "All kinds; skipgram keeps words of one character.", &text::TOKENS, tokens);
    let of = "Every command that reads instances; what a model was trained with is kept in it.";
    section(&mut out, "Input", of, &input::TABLE, |row| (row.name == "unseen").then(|| "ignore".to_owned()));
    out
}

#[test]
fn the_page_of_options_is_that_of_the_tables() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/options.md");
    let page = page();
    if std::env::var_os("XC_WRITE_DOCS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(page == kept, "docs/options.md is not what the tables say: XC_WRITE_DOCS=1 writes it anew");
}

#[test]
fn names_are_unique_in_a_table_and_every_row_says_what_it_means() {
    let tables = xc_train::fit::KINDS.into_iter().flat_map(xc_train::fit::tables);
    for table in tables {
        for row in table.rows {
            let same = table.rows.iter().filter(|other| other.name == row.name || other.field == row.field).count();
            assert!(same == 1 && !row.help.is_empty(), "{}", row.name);
            if let Some((other, values)) = row.belongs_to {
                let names = table.row(other).unwrap_or_else(|| panic!("{}: {other}", row.name)).names();
                assert!(values.iter().all(|value| names.as_ref().unwrap().contains(value)), "{}", row.name);
            }
            if let Some(searched) = row.searched {
                assert!(searched.default < searched.values.len(), "{}", row.name);
                let others = searched.values.iter().enumerate().filter(|(at, _)| *at != searched.default);
                others.for_each(|(_, value)| assert!(row.parse(value).is_ok(), "{}: {value}", row.name));
            }
        }
    }
}
