//! Line by line comparison of two answers.

/// Whether the answers differ, and if so both side by side: `-` kernel only, `+` engine
/// only, two spaces where they agree.
pub fn diff(kernel: &str, engine: &str) -> Option<String> {
    if kernel == engine {
        return None;
    }
    let (a, b): (Vec<&str>, Vec<&str>) = (kernel.lines().collect(), engine.lines().collect());
    let common = lcs(&a, &b);
    let mut out = String::new();
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let (mark, line) = if i < a.len() && j < b.len() && a[i] == b[j] {
            i += 1;
            j += 1;
            (' ', a[i - 1])
        } else if j >= b.len() || (i < a.len() && common[i + 1][j] >= common[i][j + 1]) {
            i += 1;
            ('-', a[i - 1])
        } else {
            j += 1;
            ('+', b[j - 1])
        };
        out.push_str(&format!("  {mark} {line}\n"));
    }
    Some(out)
}

/// Lengths of the longest common subsequences of all suffixes.
fn lcs(a: &[&str], b: &[&str]) -> Vec<Vec<usize>> {
    let mut t = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            t[i][j] = if a[i] == b[j] { t[i + 1][j + 1] + 1 } else { t[i + 1][j].max(t[i][j + 1]) };
        }
    }
    t
}
