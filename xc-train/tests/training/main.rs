//! Training: networks, calibration, the examples.

mod calibrate;
mod examples;
mod names;
mod networks;
