//! The report in a browser: nothing overflows a phone's width, no plot is missing, no error is logged.

use anyring_lab::arm::{latencies, Kind, Sample};
use anyring_lab::experiments::{Experiment, ALL};
use anyring_lab::machine::Machine;
use anyring_lab::report::html::{page, About};
use anyring_lab::run::{compare, ArmResult, Outcome};
use std::path::{Path, PathBuf};
use std::process::Command;

/// An outcome with made-up samples for all arms that the ratios name.
fn outcome(experiment: &'static Experiment) -> Outcome {
    let mut names: Vec<&str> = experiment.ratios.iter().flat_map(|r| [r.first, r.second]).collect();
    names.push("a-limit-with-a-rather-long-name");
    names.sort();
    names.dedup();
    let sample = |name: &str, run: usize| {
        let mut latency = latencies();
        (1..2000u64).for_each(|i| latency.record(i * i * name.len() as u64).unwrap());
        let value = 123_456.0 * name.len() as f64 + 1000.0 * run as f64;
        Sample { value, ops: 2000, latency: Some(latency), ..Sample::default() }
    };
    let arm = |name: &&str| ArmResult {
        name: name.to_string(),
        kind: Kind::User,
        policy: String::new(),
        samples: (0..8).map(|run| sample(name, run)).collect(),
    };
    let arms: Vec<ArmResult> = names.iter().map(arm).collect();
    let ratios = compare(experiment.ratios, &arms);
    let skipped = vec![("peer".into(), "is not there: <how> to get it & why".into())];
    Outcome { experiment, arms, ratios, skipped, rounds: 8 }
}

fn report() -> String {
    let outcomes: Vec<Outcome> = ALL.iter().map(outcome).collect();
    let machine = Machine::read(Path::new("/"));
    page(&outcomes, &About { machine: &machine, options: " --quick" })
}

#[test]
fn one_file_without_network() {
    let page = report();
    for word in ["http:", "https:", "src=", "@import", "<script", "NaN", "inf"] {
        assert!(!page.contains(word), "{word}");
    }
    for experiment in ALL {
        assert!(page.contains(&format!("<section id=\"{}\">", experiment.name)));
    }
    assert_eq!(page.matches("<svg").count(), 2 * ALL.len());
}

fn browser() -> Option<PathBuf> {
    let places = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].map(PathBuf::from);
    places.into_iter().find(|path| path.exists())
}

/// Tells the widths and the sizes of the plots in the title of the page that holds the report in a frame.
const CHECK: &str = "<script>onload = () => {
    const d = document.querySelector('iframe').contentDocument, e = d.documentElement;
    const small = [...d.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().height < 40);
    document.title = `fits ${e.scrollWidth <= e.clientWidth} plots ${d.querySelectorAll('svg').length} small ${small.length}`;
}</script>";

#[test]
fn fits_a_phone_in_a_real_browser() {
    let Some(browser) = browser() else {
        eprintln!("skipped: no browser; 'apt-get install chromium' brings one");
        return;
    };
    let dir = std::env::temp_dir().join(format!("anyring-report-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let frame = dir.join("frame.html");
    let inner = report().replace('&', "&amp;").replace('"', "&quot;");
    let text = format!("<meta charset=utf-8><link rel=icon href=data:,>{CHECK}<iframe style=\"width:360px;height:640px;border:0\" srcdoc=\"{inner}\"></iframe>");
    std::fs::write(&frame, text).unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"])
        .args(["--virtual-time-budget=2000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", dir.display()))
        .arg(format!("file://{}", frame.display()))
        .output()
        .unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    let (dom, log) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let title = dom.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    let told = title.map_or("no answer", |title| title.0);
    assert_eq!(told, format!("fits true plots {} small 0", 2 * ALL.len()));
    assert!(!log.contains("CONSOLE"), "{log}");
}
