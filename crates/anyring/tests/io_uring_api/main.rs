//! The public API is that of the crate io-uring: each expression here is compiled against both
//! crates, so that a missing item or another signature does not compile, and what both give is
//! compared.

mod generic;
mod signatures;
mod sqes;
mod values;

#[test]
fn entries_are_the_same_bytes() {
    for (ours, theirs) in sqes::ours().into_iter().zip(sqes::theirs()) {
        assert!(ours.len() > 250, "only {} entries were built", ours.len());
        let mut wrong = Vec::new();
        for ((label, ours), (_, theirs)) in ours.iter().zip(&theirs) {
            if ours != theirs {
                wrong.push(format!("{label}\n  ours   {ours:?}\n  theirs {theirs:?}"));
            }
        }
        assert_eq!(ours.len(), theirs.len());
        assert!(wrong.is_empty(), "{} entries differ:\n{}", wrong.len(), wrong.join("\n"));
    }
}

#[test]
fn values_are_the_same() {
    let (ours, theirs) = (values::ours(), values::theirs());
    assert_eq!(ours.len(), theirs.len());
    let wrong: Vec<_> = ours.iter().zip(&theirs).filter(|(ours, theirs)| ours != theirs).collect();
    assert!(wrong.is_empty(), "ours and theirs differ:\n{wrong:#?}");
}

#[test]
fn signatures_are_the_same() {
    for check in [
        signatures::ours::cqueue,
        signatures::ours::squeue,
        signatures::ours::register,
        signatures::ours::types,
        signatures::ours::root,
        signatures::theirs::cqueue,
        signatures::theirs::squeue,
        signatures::theirs::register,
        signatures::theirs::types,
        signatures::theirs::root,
    ] {
        check();
    }
}

#[test]
fn generic_items_are_the_same() {
    generic::ours();
    if generic::kernel_works() {
        generic::theirs();
    }
}
