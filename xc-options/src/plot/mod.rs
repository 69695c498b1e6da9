//! Pictures: named lines over a common x axis, in charts one below the other, as SVG.
//!
//! ```text
//!   points ──> coordinates (the value, or its decimal logarithm) ──> thinned out ──> plotters ──> SVG
//! ```
//!
//! Coordinates, ticks and their labels are chosen here; `plotters` lays out and draws. The same
//! picture gives the same bytes. Why so: `bench/decisions/crates-or-own-code.md`.

mod span;
#[cfg(test)]
mod tests;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use span::Span;
use std::io::{self, Write as _};
use std::path::Path;
use xc_store::atomic::{WriteFileError, write_file};

/// Charts one below the other that share their x axis.
#[derive(Clone, Debug)]
pub struct Picture<'a> {
    /// What stands above it.
    pub title: &'a str,
    /// The common axis.
    pub x: Axis<'a>,
    /// From top to bottom.
    pub charts: Vec<Chart<'a>>,
}

/// The lines of one frame.
#[derive(Clone, Debug)]
pub struct Chart<'a> {
    /// Its own axis.
    pub y: Axis<'a>,
    /// The lines.
    pub series: Vec<Series<'a>>,
}

/// What an axis shows.
#[derive(Clone, Copy, Debug)]
pub struct Axis<'a> {
    /// What it is called.
    pub name: &'a str,
    /// Where a value lies on it.
    pub scale: Scale,
}

/// How the values of an axis become coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// At itself.
    Linear,
    /// At its logarithm.
    Log,
}

/// A line through points (x, y) in the order given. Points that are not finite are left out, and on
/// a logarithmic axis those that are not positive.
///
/// More than 1,000 are grouped in 400 equal stretches of the axis, from left to
/// right: the line goes through their means, over the range of their values.
#[derive(Clone, Copy, Debug)]
pub struct Series<'a> {
    /// What the legend calls it.
    pub name: &'a str,
    /// Its points.
    pub points: &'a [(f64, f64)],
}

/// Points of a line that is not thinned out.
const MOST_POINTS: usize = 1000;
/// Points of a line that is.
const STRETCHES: usize = 400;
/// Points that each have a mark. Longer lines have [`MARKS`] marks.
const MOST_MARKED: usize = 60;
const MARKS: usize = 12;
/// Beyond this values count as infinite: sums and differences of smaller ones stay finite.
const LARGEST: f64 = 1e100;

// Plotters places points at whole units: the picture is large, so that steps do not show.
const WIDTH: u32 = 1200;
const TITLE: u32 = 52;
const MARGIN: u32 = 20;
const X_LABELS: u32 = 76;
/// Room of the y axis beside the labels of its ticks.
const Y_NAME: u32 = 54;
/// Height of a chart that is alone, and of one of several.
const HEIGHTS: [u32; 2] = [520, 330];
const FONT: u32 = 23;
/// Width of a character, on average.
const CHARACTER: f64 = 10.5;
const LEGEND_LINE: i32 = 30;
/// Characters of a name in the legend; what is longer is cut.
const MOST_NAME: usize = 32;
const MOST_TITLE: usize = 90;

/// Colours that the colour-blind tell apart, from Okabe and Ito (2008), without yellow.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    RGBColor(230, 159, 0),
];

type Backend<'b> = SVGBackend<'b>;
type Area<'b> = DrawingArea<Backend<'b>, Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<io::Error>>;

/// A series in coordinates.
#[derive(Debug)]
struct Line {
    name: String,
    points: Vec<(f64, f64)>,
    /// The outline of the values that the points are means of.
    range: Vec<(f64, f64)>,
}

impl Picture<'_> {
    /// Writes the picture to a file, which is there whole or not at all.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), WriteFileError> {
        write_file(path, |file| file.write_all(self.svg()?.as_bytes()))
    }

    /// The picture as text.
    ///
    /// # Errors
    /// It cannot be drawn.
    pub fn svg(&self) -> io::Result<String> {
        let mut out = String::new();
        self.draw_in(&mut out).map_err(io::Error::other)?;
        Ok(out)
    }

    fn draw_in(&self, out: &mut String) -> Drawn {
        let root = Backend::with_string(out, (WIDTH, self.height())).into_drawing_area();
        root.fill(&WHITE)?;
        self.draw(&root)?;
        root.present()
    }

    /// Height of a chart: at least that of its legend.
    fn chart_height(&self) -> u32 {
        let most = self.charts.iter().map(|chart| chart.series.len()).max().unwrap_or(0);
        HEIGHTS[usize::from(self.charts.len() > 1)].max(most as u32 * LEGEND_LINE as u32 + MARGIN)
    }

    fn height(&self) -> u32 {
        TITLE + self.charts.len() as u32 * self.chart_height() + X_LABELS
    }

    /// Draws the picture on an area of its height.
    fn draw(&self, root: &Area<'_>) -> Drawn {
        let charts: Vec<Vec<Line>> = self.charts.iter().map(|chart| self.lines(chart)).collect();
        let x = Span::new(self.x.scale, charts.iter().flatten().flat_map(Line::all).map(|p| p.0), 12);
        let longest = charts.iter().flatten().map(|line| line.name.chars().count()).max().unwrap_or(0);
        let legend = (longest as f64 * CHARACTER) as u32 + 4 * MARGIN;
        let height = self.chart_height();
        let y_of = |(chart, lines): (&Chart<'_>, &Vec<Line>)| {
            Span::new(chart.y.scale, lines.iter().flat_map(Line::all).map(|p| p.1), 6)
        };
        let ys: Vec<Span> = self.charts.iter().zip(&charts).map(y_of).collect();
        let widest = ys.iter().flat_map(|y| &y.ticks).map(|tick| tick.1.len()).max().unwrap_or(0);
        let y_labels = (widest as f64 * CHARACTER) as u32 + Y_NAME;
        let style = font(FONT * 5 / 4, HPos::Center, VPos::Center);
        root.draw_text(&shown(self.title, MOST_TITLE), &style, (WIDTH as i32 / 2, TITLE as i32 / 2))?;
        let mut below = root.split_vertically(TITLE).1;
        let mut nth = 0;
        for (i, (lines, y)) in charts.iter().zip(ys).enumerate() {
            let is_last = i + 1 == charts.len();
            let x_labels = if is_last { X_LABELS } else { 0 };
            let (area, rest) = below.split_vertically(height + x_labels);
            let (left, right) = area.split_horizontally(WIDTH - legend);
            draw_chart(&left, (x.clone(), self.x.name), (y, self.charts[i].y.name), [x_labels, y_labels], lines, nth)?;
            // Charts of the same lines have the same colours, named once.
            let names = |at: usize| -> Option<Vec<&str>> {
                self.charts.get(at).map(|chart| chart.series.iter().map(|line| line.name).collect())
            };
            if i == 0 || names(i) != names(i - 1) {
                draw_legend(&right, lines, nth)?;
            }
            nth += if names(i) == names(i + 1) { 0 } else { lines.len() };
            below = rest;
        }
        Ok(())
    }

    /// The lines of a chart, in coordinates.
    fn lines(&self, chart: &Chart<'_>) -> Vec<Line> {
        let line = |series: &Series<'_>| {
            let place = |&(x, y): &(f64, f64)| Some((self.x.scale.coordinate(x)?, chart.y.scale.coordinate(y)?));
            let points: Vec<_> = series.points.iter().filter_map(place).collect();
            let name = shown(series.name, MOST_NAME);
            if points.len() <= MOST_POINTS { Line { name, points, range: Vec::new() } } else { thinned(name, &points) }
        };
        chart.series.iter().map(line).collect()
    }
}

impl Scale {
    /// Where a value lies; nothing for what has no place.
    fn coordinate(self, value: f64) -> Option<f64> {
        match self {
            Self::Linear => (value.abs() <= LARGEST).then_some(value),
            Self::Log => (value > 0.0 && value.is_finite()).then(|| value.log10()),
        }
    }
}

impl Line {
    /// Everything that has to lie inside the frame.
    fn all(&self) -> impl Iterator<Item = (f64, f64)> {
        self.points.iter().chain(&self.range).copied()
    }
}

/// A line through the means of stretches of the x axis.
fn thinned(name: String, points: &[(f64, f64)]) -> Line {
    #[derive(Clone, Copy)]
    struct Stretch {
        n: f64,
        sums: (f64, f64),
        low: f64,
        high: f64,
    }
    let ends = |(a, b): (f64, f64), p: &(f64, f64)| (a.min(p.0), b.max(p.0));
    let (first, last) = points.iter().fold((f64::INFINITY, f64::NEG_INFINITY), ends);
    let none = Stretch { n: 0.0, sums: (0.0, 0.0), low: f64::INFINITY, high: f64::NEG_INFINITY };
    let mut stretches = [none; STRETCHES];
    for &(x, y) in points {
        // All at one place give NaN, which becomes the first stretch.
        let at = ((x - first) / (last - first) * STRETCHES as f64) as usize;
        let stretch = &mut stretches[at.min(STRETCHES - 1)];
        stretch.n += 1.0;
        stretch.sums = (stretch.sums.0 + x, stretch.sums.1 + y);
        (stretch.low, stretch.high) = (stretch.low.min(y), stretch.high.max(y));
    }
    let filled = || stretches.iter().filter(|s| s.n > 0.0);
    // Rounding may push a mean past the values.
    let x = |s: &Stretch| (s.sums.0 / s.n).clamp(first, last);
    let points = filled().map(|s| (x(s), (s.sums.1 / s.n).clamp(s.low, s.high))).collect();
    let range = filled().map(|s| (x(s), s.high)).chain(filled().rev().map(|s| (x(s), s.low))).collect();
    Line { name: format!("{name} (mean, range)"), points, range }
}

/// Draws axes and lines; the colours begin with number `nth`.
fn draw_chart(
    area: &Area<'_>,
    (x, x_name): (Span, &str),
    (y, y_name): (Span, &str),
    [x_labels, y_labels]: [u32; 2],
    lines: &[Line],
    nth: usize,
) -> Drawn {
    let mut frame = ChartBuilder::on(area)
        .margin_top(MARGIN / 2)
        .margin_bottom(MARGIN / 2)
        .margin_left(MARGIN / 2)
        .set_label_area_size(LabelAreaPosition::Left, y_labels)
        .set_label_area_size(LabelAreaPosition::Bottom, x_labels)
        .build_cartesian_2d(x, y)?;
    let (grid, axis) = (RGBColor(221, 221, 221), RGBColor(102, 102, 102));
    frame
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(grid)
        .axis_style(axis)
        .label_style(("sans-serif", FONT))
        .axis_desc_style(("sans-serif", FONT))
        .x_desc(shown(x_name, MOST_TITLE))
        .y_desc(shown(y_name, MOST_NAME))
        .draw()?;
    let inside = frame.plotting_area();
    for (i, line) in lines.iter().enumerate().filter(|(_, line)| !line.range.is_empty()) {
        inside.draw(&Polygon::new(line.range.clone(), colour(nth + i).mix(0.25).filled()))?;
    }
    for (i, Line { points, .. }) in lines.iter().enumerate().filter(|(_, line)| !line.points.is_empty()) {
        inside.draw(&PathElement::new(points.clone(), colour(nth + i).stroke_width(2)))?;
        let every = if points.len() <= MOST_MARKED { 1 } else { points.len().div_ceil(MARKS) };
        // Marks of neighbouring lines do not fall on one another.
        for &at in points.iter().skip((nth + i) * every / 3 % every).step_by(every) {
            inside.draw(&mark(nth + i, at))?;
        }
    }
    Ok(())
}

/// Names the lines, beside their chart.
fn draw_legend(area: &Area<'_>, lines: &[Line], nth: usize) -> Drawn {
    let left = MARGIN as i32;
    for (i, line) in lines.iter().enumerate() {
        let y = MARGIN as i32 + i as i32 * LEGEND_LINE;
        // A rectangle: paths are lines of the chart.
        area.draw(&Rectangle::new([(left, y - 1), (left + 30, y + 1)], colour(nth + i).filled()))?;
        area.draw(&mark(nth + i, (left + 15, y)))?;
        area.draw_text(&line.name, &font(FONT, HPos::Left, VPos::Center), (left + 40, y))?;
    }
    Ok(())
}

/// The mark of a line: with its colour it says twice which line it is.
fn mark<'b, C: Clone + 'static>(nth: usize, at: C) -> DynElement<'static, Backend<'b>, C> {
    let colour = colour(nth);
    match nth % 3 {
        0 => Circle::new(at, 4, colour.filled()).into_dyn(),
        1 => TriangleMarker::new(at, 6, colour.filled()).into_dyn(),
        _ => Cross::new(at, 5, colour.stroke_width(2)).into_dyn(),
    }
}

fn colour(nth: usize) -> RGBColor {
    COLOURS[nth % COLOURS.len()]
}

fn font(size: u32, h: HPos, v: VPos) -> TextStyle<'static> {
    ("sans-serif", size).into_text_style(&(WIDTH, WIDTH)).pos(Pos::new(h, v))
}

/// A text as a picture shows it: cut, and without characters that SVG cannot hold.
fn shown(text: &str, most: usize) -> String {
    let can = |c: char| if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') { ' ' } else { c };
    let is_cut = text.chars().count() > most;
    let kept = text.chars().map(can).take(if is_cut { most - 1 } else { most });
    kept.chain(is_cut.then_some('…')).collect()
}
