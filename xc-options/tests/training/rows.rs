//! Rows of settings say what they are.

use xc_options::settings::Setting;

#[test]
fn names_are_unique_in_a_table_and_every_row_says_what_it_means() {
    let tables = xc_options::KINDS.into_iter().flat_map(xc_options::tables);
    for table in tables {
        for row in table.rows {
            let place = row.place.name();
            let is_same = |other: &&Setting| other.name == row.name || place.is_some() && other.place.name() == place;
            let same = table.rows.iter().filter(is_same).count();
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
