//! Training: settings and their page, networks and their wide term, calibration.

mod calibrate;
mod idle_settings;
mod networks;
mod options_page;
mod wide;
