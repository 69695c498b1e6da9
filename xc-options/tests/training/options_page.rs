//! docs/options.md is what the tables of settings say. XC_WRITE_DOCS=1 writes it anew.

use std::fmt::Write as _;
use xc_hash::text::PipelineParams;
use xc_model::classifier::InputKind;
use xc_options::settings::text::{self, TextSettings};
use xc_options::settings::{
    Setting, Table, Values, astra, candidates, data, input, mach, network, serialised, transformer, tree, uniform,
    wide, words,
};
use xc_train::network::{NetworkParams, TextEncoder};
use xc_train::preset;
use xc_train::skipgram::WordsParams;

/// What stands behind the name of an option.
fn values(row: &Setting) -> String {
    match (row.names(), row.values) {
        (Some(names), _) => format!(" {}", names.join("|")),
        (None, Values::Switch) => String::new(),
        (None, Values::Bool) => " true|false".to_owned(),
        (None, _) => format!(" {}", row.unit),
    }
}

fn section(out: &mut String, title: &str, of: &str, table: &Table, usual: impl Fn(&Setting) -> Option<String>) {
    writeln!(out, "\n## {title}\n\n{of}\n").unwrap();
    for row in table.rows {
        let (text, in_text) = match row.help.rsplit_once(" [default: ") {
            Some((text, rest)) => (text, Some(rest.trim_end_matches(']').to_owned())),
            None => (row.help, None),
        };
        let usual = usual(row).or(in_text).map_or_else(String::new, |usual| format!(" [{usual}]"));
        let needs = table.needs(row).map_or_else(String::new, |needs| format!(" Needs `{needs}`."));
        let tried = row.searched.map_or_else(String::new, |of| format!(" `xc tune`: {}.", of.values.join(", ")));
        writeln!(out, "- `--{}{}`{usual}: {text}.{needs}{tried}", row.name, values(row)).unwrap();
    }
}

fn page() -> String {
    let mut out =
        "# Options of training\n\nWritten from the tables of `xc_options::settings`. Options of files and of the machine: \
                   `xc train KIND --help`. In brackets: the default, where it is not that of the kind.\n"
            .to_owned();
    let none = |_: &Setting| None;
    section(&mut out, "Label trees", "`xc train tree`, `xc tune tree`.", &tree::TABLE, tree::usual);
    let of = "Of trees, beside their parameters.";
    section(&mut out, "Presets of trees", of, &tree::OWN, |row| (row.name == "preset").then(|| "default".to_owned()));
    let of = "`xc train mach`, `dense`, `uniform`, `lns`, `astra`, `skipgram`; defaults by kind.";
    section(&mut out, "All networks", of, &network::TABLE, none);
    let of = "`xc train dense`, `uniform`, `lns`, `astra`.";
    section(&mut out, "Wide term", of, &wide::TABLE, |row| {
        let usual = row.shown_in(&NetworkParams::of(&preset::dense(), InputKind::Sparse));
        Some(usual.unwrap_or_else(|| row.none.to_owned()))
    });
    let of = "`xc train dense`, `uniform`, `lns`, `astra`; of `mach` the first four, without `transformer`. Feature `transformer`.";
    section(&mut out, "Transformers", of, &transformer::TABLE, |row| row.shown_in(&TextEncoder::default()));
    section(&mut out, "MACH", "`xc train mach`.", &mach::TABLE, none);
    section(&mut out, "Sparse output layers", "`xc train uniform`.", &uniform::TABLE, none);
    section(&mut out, "Sampled output layers", "`xc train lns`, `xc train skipgram`.", &candidates::TABLE, none);
    section(&mut out, "ASTRA", "`xc train astra`.", &astra::TABLE, none);
    let of = "`xc train skipgram`.";
    section(&mut out, "Words", of, &words::TABLE, |row| row.shown_in(&WordsParams::default()));
    let all = "All kinds but skipgram.";
    section(&mut out, "Rows of features", all, &data::TABLE, none);
    section(&mut out, "Text", all, &text::TABLE, |row| row.shown(&serialised(&TextSettings::default())));
    let tokens = |row: &Setting| row.shown_in(&PipelineParams::default());
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
    let tables = xc_options::KINDS.into_iter().flat_map(xc_options::tables);
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
