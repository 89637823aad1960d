//! The report in a browser: nothing overflows a phone's width or a desktop's, no plot is missing, no error is logged.

use anyring_lab::arm::{latencies, Kind, Sample};
use anyring_lab::experiments::{Experiment, ALL};
use anyring_lab::machine::Machine;
use anyring_lab::report::html::{page, About};
use anyring_lab::run::{compare, ArmResult, Outcome};
use anyring_lab::usage::Usage;
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
        let usage = Usage { voluntary: 100 * name.len() as u64, ..Usage::default() };
        Sample { value, ops: 2000, usage, latency: Some(latency), ..Sample::default() }
    };
    let kind = |name: &str| match name {
        n if n.starts_with("user") => Kind::User,
        n if n.starts_with("kernel") => Kind::Kernel,
        n if n.contains("limit") => Kind::Limit,
        _ => Kind::Peer,
    };
    let arm = |name: &&str| ArmResult {
        name: name.to_string(),
        kind: kind(name),
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

/// Of each experiment its samples and latencies, and its comparisons if there are any.
fn plots() -> usize {
    2 * ALL.len() + ALL.iter().filter(|experiment| !experiment.ratios.is_empty()).count()
}

#[test]
fn one_file_without_network() {
    let page = report();
    for word in ["http:", "https:", "src=", "@import", "url(", "<script", "NaN", "inf"] {
        assert!(!page.contains(word), "{word}");
    }
    for experiment in ALL {
        let (_, section) =
            page.split_once(&format!("<section id=\"{}\">", experiment.name)).unwrap();
        let section = section.split_once("</section>").unwrap().0;
        let parts =
            ["class=\"finding\"", "<svg class=\"plot\"", "class=\"legend\"", "<table>", "Linux"];
        for part in parts {
            assert!(section.contains(part), "{}: {part}", experiment.name);
        }
        assert!(section.contains(&format!("<pre>anyring bench {} --quick</pre>", experiment.name)));
    }
    assert_eq!(page.matches("<svg class=\"plot\"").count(), plots());
}

/// The browser: the one that ANYRING_TEST_BROWSER names, which has to be there, or Debian's.
fn browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("ANYRING_TEST_BROWSER") {
        return Some(named.into());
    }
    let found = Some(PathBuf::from("/usr/bin/chromium")).filter(|path| path.exists());
    if found.is_none() {
        eprintln!("skipped: no browser; 'apt-get install chromium' brings one");
    }
    found
}

/// Tells about the page, which is in a frame of a given width, in the title of the page around it.
const CHECK: &str = "<script>onload = () => {
    const d = document.querySelector('iframe').contentDocument, e = d.documentElement;
    const plots = [...d.querySelectorAll('svg.plot')];
    const small = plots.filter(s => s.getBoundingClientRect().height < 40);
    const text = [...d.querySelectorAll('svg.plot text')];
    const out = text.filter(t => {
        const r = t.getBoundingClientRect(), s = t.ownerSVGElement.getBoundingClientRect();
        return r.left < s.left - 1 || r.right > s.right + 1 || r.bottom > s.bottom + 1;
    });
    const fits = e.scrollWidth <= e.clientWidth;
    document.title = `fits ${fits} plots ${plots.length} small ${small.length} cut ${out.length}`;
}</script>";

/// What [`CHECK`] tells of a page in a frame of this width, and the lines of the browser's console.
fn look(browser: &Path, page: &str, width: u32) -> (String, Vec<String>) {
    let name = format!("anyring-report-{}-{width}-{}", std::process::id(), page.len());
    let dir = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&dir).unwrap();
    let frame = dir.join("frame.html");
    let inner = page.replace('&', "&amp;").replace('"', "&quot;");
    let text = format!("<meta charset=utf-8><link rel=icon href=data:,>{CHECK}<iframe style=\"width:{width}px;height:640px;border:0\" srcdoc=\"{inner}\"></iframe>");
    std::fs::write(&frame, text).unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"])
        .args(["--virtual-time-budget=2000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", dir.display()))
        .arg(format!("file://{}", frame.display()))
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", browser.display()));
    std::fs::remove_dir_all(&dir).unwrap();
    let (dom, log) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let title = dom.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    let console = log.lines().filter(|line| line.contains("CONSOLE")).map(String::from).collect();
    (title.map_or("no answer", |title| title.0).to_owned(), console)
}

#[test]
fn fits_a_phone_and_a_desktop_in_a_real_browser() {
    let Some(browser) = browser() else { return };
    let page = report();
    for width in [360, 1280] {
        let (told, console) = look(&browser, &page, width);
        assert_eq!(told, format!("fits true plots {} small 0 cut 0", plots()), "{width}");
        assert_eq!(console, [""; 0]);
    }
}

#[test]
fn the_browser_sees_what_is_broken() {
    let Some(browser) = browser() else { return };
    let page = report();
    let wide = "<div style=\"width:30rem;height:1px\"></div></body>";
    let broken = page.replace("</body>", wide).replacen("class=\"plot\"", "class=\"none\"", 1);
    let (before, last) = broken.rsplit_once("<text class=\"axis\" x=\"").unwrap();
    let broken = format!("{before}<text class=\"axis\" x=\"9{last}");
    let broken = broken.replace("</body>", "<script>console.error('broken')</script></body>");
    let (told, console) = look(&browser, &broken, 360);
    assert_eq!(told, format!("fits false plots {} small 0 cut 1", plots() - 1));
    assert_eq!(console.len(), 1, "{console:?}");
}
