use super::*;

fn linear(name: &str) -> Axis<'_> {
    Axis { name, scale: Scale::Linear }
}

/// A picture with one chart for each list of series.
fn picture<'a>(x: Axis<'a>, y: Axis<'a>, charts: &[&[Series<'a>]]) -> Picture<'a> {
    let charts = charts.iter().map(|series| Chart { y, series: series.to_vec() }).collect();
    Picture { title: "a title", x, charts }
}

/// The points of every path and polygon in a line's colour, marks left out.
fn drawn(svg: &str) -> Vec<Vec<(i32, i32)>> {
    let colours = COLOURS.map(|c| format!("\"#{:02X}{:02X}{:02X}\"", c.0, c.1, c.2));
    let shapes = svg.lines().filter(|l| l.starts_with("<polyline") || l.starts_with("<polygon"));
    let lines = shapes.filter(|l| colours.iter().any(|c| l.contains(c.as_str())));
    let points = |line: &str| -> Vec<(i32, i32)> {
        let list = line.split_once("points=\"").unwrap().1.split_once('"').unwrap().0;
        list.split_whitespace()
            .map(|p| p.split_once(',').unwrap())
            .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
            .collect()
    };
    let is_mark = |line: &str, points: &[(i32, i32)]| line.starts_with("<polygon") && points.len() == 3;
    lines.map(|l| (l, points(l))).filter(|(l, points)| !is_mark(l, points)).map(|(_, points)| points).collect()
}

#[test]
fn a_picture_holds_every_point_inside_its_frame() {
    let axes = [linear("x"), Axis { name: "x", scale: Scale::Log }];
    for (x, y) in [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(x, y)| (axes[x], axes[y])) {
        for n in [0, 1, 2, 300, 5000] {
            let falling: Vec<_> = (1..=n).map(|i| (f64::from(i) * 10.0, 9.0 / f64::from(i))).collect();
            let other = [(10.0, f64::NAN), (f64::INFINITY, 1.0), (20.0, 3.5), (30.0, f64::NEG_INFINITY)];
            let series = [Series { name: "falling", points: &falling }, Series { name: "other", points: &other }];
            let svg = picture(x, y, &[&series, &series[..1]]).svg().unwrap();
            assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            let lines = drawn(&svg);
            let sizes: Vec<usize> = lines.iter().map(Vec::len).collect();
            match n {
                0 => assert_eq!(sizes, [1]),
                5000 => assert!(sizes.len() == 5 && sizes.iter().all(|&n| n <= 2 * STRETCHES), "{sizes:?}"),
                _ => assert_eq!(sizes, [n as usize, 1, n as usize]),
            }
            let right = WIDTH as i32 - 4 * MARGIN as i32;
            let (left, bottom) = (Y_NAME as i32, TITLE as i32 + 2 * HEIGHTS[1] as i32);
            for &(x, y) in lines.iter().flatten() {
                assert!((left..right).contains(&x) && (TITLE as i32..bottom).contains(&y), "{n}: {x}, {y}");
            }
        }
    }
}

#[test]
fn points_without_a_place_are_left_out_and_one_point_is_a_mark() {
    let log = Axis { name: "x", scale: Scale::Log };
    let points = [(0.0, 1.0), (-1.0, 1.0), (10.0, 0.5), (f64::NAN, 1.0)];
    let svg = picture(log, linear("y"), &[&[Series { name: "one", points: &points }]]).svg().unwrap();
    let lines = drawn(&svg);
    assert_eq!(lines.iter().map(Vec::len).collect::<Vec<_>>(), [1]);
    // One circle in the chart, at the point, and one in the legend.
    let (x, y) = lines[0][0];
    assert_eq!(svg.matches("<circle").count(), 2);
    assert!(svg.contains(&format!("<circle cx=\"{x}\" cy=\"{y}\"")), "{svg}");
}

#[test]
fn many_points_become_means_over_the_range_of_their_values() {
    let points: Vec<_> = (0..100_000).map(|i| (f64::from(i), f64::from(i % 2) * 2.0 + f64::from(i) / 1e5)).collect();
    let line = thinned("noisy".to_owned(), &points);
    assert_eq!((line.points.len(), line.range.len()), (STRETCHES, 2 * STRETCHES));
    for (at, &(x, y)) in line.points.iter().enumerate() {
        let trend = x / 1e5;
        assert!((y - trend - 1.0).abs() < 0.01, "{at}: {x}, {y}");
        let (high, low) = (line.range[at].1, line.range[2 * STRETCHES - 1 - at].1);
        assert!((high - trend - 2.0).abs() < 0.01 && (low - trend).abs() < 0.01, "{at}: {low} to {high}");
    }
    // The extremes are kept.
    let most = points.iter().map(|p| p.1).fold(0.0, f64::max);
    assert_eq!(line.range.iter().map(|p| p.1).fold(0.0, f64::max), most);
    let series = [Series { name: "noisy", points: &points }];
    let svg = picture(linear("x"), linear("y"), &[&series]).svg().unwrap();
    assert!(svg.len() < 30_000 && svg.contains("noisy (mean, range)"), "{} bytes", svg.len());
    // All at one place.
    let same = thinned("same".to_owned(), &[(3.0, 1.0), (3.0, 2.0)]);
    assert_eq!((same.points, same.range), (vec![(3.0, 1.5)], vec![(3.0, 2.0), (3.0, 1.0)]));
}

#[test]
fn names_are_escaped_and_cut() {
    let long = "é".repeat(200);
    let names = ["<b>&\"'", "\u{1}\u{fffe}bell", &long];
    let series = names.map(|name| Series { name, points: &[(1.0, 1.0)] });
    let mut picture = picture(linear("<x>"), linear("<y>"), &[&series]);
    picture.title = "<title>";
    let svg = picture.svg().unwrap();
    for text in ["&lt;b&gt;&amp;&quot;&apos;", "&lt;x&gt;", "&lt;y&gt;", "&lt;title&gt;", "  bell"] {
        assert!(svg.contains(&format!(">\n{text}\n</text>")), "{text}: {svg}");
    }
    assert!(svg.contains(&format!("{}…", "é".repeat(MOST_NAME - 1))) && !svg.contains(&"é".repeat(MOST_NAME)));
    assert!(svg.chars().all(|c| c == '\n' || !c.is_control()));
}

#[test]
fn the_same_picture_gives_the_same_bytes_in_a_file_that_is_whole() {
    let points: Vec<_> = (0..2000).map(|i| (f64::from(i), f64::from(i * 7 % 13))).collect();
    let series = [Series { name: "a", points: &points }, Series { name: "b", points: &points[..50] }];
    let picture = picture(linear("x"), linear("y"), &[&series]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("picture.svg");
    for _ in 0..2 {
        picture.write(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), picture.svg().unwrap());
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(picture.write(&folder.path().join("absent/picture.svg")).is_err());
}

#[test]
fn lines_beyond_the_number_of_colours_differ_by_their_marks() {
    let looks: std::collections::BTreeSet<_> = (0..21).map(|nth| (nth % COLOURS.len(), nth % 3)).collect();
    assert_eq!(looks.len(), 21);
    let names: Vec<String> = (0..9).map(|i| format!("line {i}")).collect();
    let series: Vec<_> = names.iter().map(|name| Series { name, points: &[(1.0, 1.0), (2.0, 2.0)] }).collect();
    let svg = picture(linear("x"), linear("y"), &[&series]).svg().unwrap();
    assert!(names.iter().all(|name| svg.contains(name.as_str())));
}
